#include "weir/embedding.h"

#include <ATen/Functions.h>

#include <utility>
#include <vector>

#include "weir/ops.h"

namespace weir {
namespace {

// Rows, each once, and where each id finds its own.
struct Rows {
  Output rows;
  Output positions;
};

Rows Lookup(const Variable& table, Output ids, const std::string& name) {
  Graph& graph = *table.handle().graph();
  Node node;
  node.name = name + "/lookup";
  node.op = "Lookup";
  node.inputs = {{table.handle().node(), 0}, {ids.node(), ids.index()}};
  node.outputs.resize(3);
  const Operation lookup = graph.AddNode(std::move(node));
  return {Output(&graph, lookup.node(), 0), Output(&graph, lookup.node(), 1)};
}

// Graph::Aten of one output.
Output Call(const char* op, const char* overload, std::vector<AtenArg> args,
            const std::string& name = "") {
  Graph* graph = nullptr;
  for (const AtenArg& arg : args)
    if (const auto* output = std::get_if<Output>(&arg); output != nullptr && output->valid())
      graph = output->graph();
  return graph->Aten(op, overload, std::move(args), name).front();
}

AttrValue Int(std::int64_t value) {
  return value;
}

// Advanced indexing takes rows of any shape, but its gradient is slower than embedding's.
Output PickRows(const Rows& rows, const std::string& name) {
  if (rows.rows.shape() && rows.rows.shape()->size() == 2)
    return Call("aten::embedding", "", {rows.rows, rows.positions}, name);
  return Call("aten::index", "Tensor", {rows.rows, std::vector<Output>{rows.positions}}, name);
}

// What a sum over weighted rows is divided by. 0 / 0 is to be 0.
Output Divisor(Output weight_sum, Combiner combiner) {
  const Output root = combiner == Combiner::kSqrtN ? ops::sqrt(weight_sum) : weight_sum;
  return root + ops::to(Call("aten::eq", "Scalar", {root, Int(0)}), root.dtype());
}

Output PowerFor(Output weights, Combiner combiner) {
  return combiner == Combiner::kSqrtN ? ops::square(weights) : weights;
}

// Bags that are rows of a matrix: {bags, n, d} summed over n.
Output FixedBags(const Rows& rows, const EmbeddingBagOptions& options) {
  const Output all = PickRows(rows, "");
  Output weights = options.weights;
  if (!weights.valid()) {
    if (options.combiner == Combiner::kSum) return ops::sum(all, {1});
    if (options.combiner == Combiner::kMean) return ops::mean(all, {1});
    weights = ops::to(Call("aten::ones_like", "", {rows.positions}), all.dtype());
  }
  const Output column = Call("aten::unsqueeze", "", {weights, Int(-1)});
  const Output sum = ops::sum(column * all, {1});
  if (options.combiner == Combiner::kSum) return sum;
  return sum / Divisor(ops::sum(PowerFor(column, options.combiner), {1}), options.combiner);
}

// Sums of rows of `weight` by torch's own operator, one fused pass forward and back.
Output SumBags(Output weight, Output positions, Output offsets, Output weights) {
  constexpr std::int64_t kSum = 0;
  Graph& graph = *weight.graph();
  return graph
      .Aten("aten::embedding_bag", "",
            {weight, positions, offsets, AttrValue(false), AttrValue(kSum), AttrValue(false),
             weights.valid() ? AtenArg(weights) : AtenArg(AttrValue())})
      .front();
}

Output RaggedBags(const Rows& rows, const EmbeddingBagOptions& options) {
  const Output sum = SumBags(rows.rows, rows.positions, options.offsets, options.weights);
  if (options.combiner == Combiner::kSum) return sum;
  const Output weights =
      options.weights.valid()
          ? options.weights
          : ops::to(Call("aten::ones_like", "", {rows.positions}), rows.rows.dtype());
  const Output column = Call("aten::unsqueeze", "", {PowerFor(weights, options.combiner), Int(-1)});
  const Output own =
      Call("aten::cumsum", "", {Call("aten::ones_like", "", {rows.positions}), Int(0)});
  const Output each = Call("aten::sub", "Scalar", {own, Int(1)});
  return sum / Divisor(SumBags(column, each, options.offsets, {}), options.combiner);
}

// Errors of the arguments end up in the graph; the result is then of no use.
bool Check(const Variable& table, Output ids) {
  if (!table.handle().valid()) return false;
  Graph& graph = *table.handle().graph();
  if (ids.valid() && ids.graph() == &graph) return true;
  graph.AddError(absl::InvalidArgumentError("the ids looked up in '" + table.name() +
                                            "' are not of its graph"));
  return false;
}

}  // namespace

Output EmbeddingLookup(const Variable& table, Output ids, const std::string& name) {
  if (!Check(table, ids)) return {};
  return PickRows(Lookup(table, ids, name), name);
}

Output EmbeddingBag(const Variable& table, Output ids, const EmbeddingBagOptions& options,
                    const std::string& name) {
  if (!Check(table, ids)) return {};
  Graph& graph = *table.handle().graph();
  const Rows rows = Lookup(table, ids, name);
  if (rows.rows.shape() && rows.rows.shape()->size() != 2) {
    graph.AddError(absl::InvalidArgumentError("EmbeddingBag: the table '" + table.name() +
                                              "' has not two axes"));
    return {};
  }
  const Output bags =
      options.offsets.valid() ? RaggedBags(rows, options) : FixedBags(rows, options);
  return graph.Identity(bags, name);
}

}  // namespace weir
