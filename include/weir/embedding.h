// Tables of rows that are looked up by number: embeddings.
//
// A lookup moves only what it needs. On the worker each id is counted once, however often it
// occurs, and goes to the slice of the table that holds it; these rows come back, once; what is
// computed from them is the worker's. The gradient is the same way back: summed for each id on the
// worker, then one row for each to the slice that holds it, where the optimizer updates it (see
// weir/optimizer.h for what becomes of the other rows).
//
//   auto table = graph.Variable("item", weir::Uniform({1'000'000, 32}, -0.1, 0.1),
//                               {.partitioner = weir::AutoPartitioner(ps_tasks)});
//   auto vectors = weir::EmbeddingLookup(table, ids);  // {batch} -> {batch, 32}
//   auto mean = weir::EmbeddingBag(table, tags, {.combiner = weir::Combiner::kMean,
//                                                .offsets = offsets});
//
// Ids are int64. One that is not in [0, rows) ends the step with InvalidArgument that names the id,
// the variable and its number of rows. A table is cut along axis 0, or whole.
#pragma once

#include <cstdint>
#include <string>

#include "weir/graph.h"

namespace weir {

/// Rows of `table`: for ids of shape S a tensor of shape S + the shape of a row. Differentiable.
/// TensorFlow's embedding_lookup and gather.
Output EmbeddingLookup(const Variable& table, Output ids, const std::string& name = "embedding");

/// How the rows of a bag become one: with weights w and rows e,
enum class Combiner : std::uint8_t {
  kSum = 0,    // sum(w * e)
  kMean = 1,   // sum(w * e) / sum(w)
  kSqrtN = 2,  // sum(w * e) / sqrt(sum(w^2))
};

struct EmbeddingBagOptions {
  Combiner combiner = Combiner::kMean;
  /// Of the shape of the ids and the dtype of the table; none: every weight is 1. Differentiable.
  Output weights = {};
  /// Where each bag begins in a list of ids, as of torch's embedding_bag; none: a row of a matrix
  /// of ids is a bag.
  Output offsets = {};
};

/// One row for each bag of ids: ids {bags, n}, or {n} with offsets {bags}; tables of two axes.
/// Other shapes are an error of the graph, as are weights of another shape or dtype. A bag without
/// ids is zero, and so is a kMean or kSqrtN by weights that come to nothing, with a gradient of
/// zero. TensorFlow's embedding_lookup_sparse.
Output EmbeddingBag(const Variable& table, Output ids, const EmbeddingBagOptions& options = {},
                    const std::string& name = "embedding_bag");

}  // namespace weir
