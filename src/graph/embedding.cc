#include "weir/embedding.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
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

// A sum over weighted rows by what its combiner divides it by, or zero where the weights come to
// nothing. There it is divided by 1, as NaN would stay NaN in the gradient of what is masked.
Output Divide(Output sum, Output weight_sum, Combiner combiner) {
  const Output nothing = Call("aten::eq", "Scalar", {weight_sum, Int(0)});
  const Output some = Call("aten::masked_fill", "Scalar", {weight_sum, nothing, Int(1)});
  const Output divisor = combiner == Combiner::kSqrtN ? ops::sqrt(some) : some;
  return Call("aten::masked_fill", "Scalar", {sum / divisor, nothing, Int(0)});
}

Output PowerFor(Output weights, Combiner combiner) {
  return combiner == Combiner::kSqrtN ? ops::square(weights) : weights;
}

// A weight of 1 for each id.
Output Ones(const Rows& rows) {
  return ops::to(Call("aten::ones_like", "", {rows.positions}), rows.rows.dtype());
}

// Bags in which there is an id, as the graph knows already.
bool HaveIds(const Rows& rows) {
  return rows.positions.shape() && rows.positions.shape()->back() > 0;
}

// Bags that are rows of a matrix: {bags, n, d} summed over n.
Output FixedBags(const Rows& rows, const EmbeddingBagOptions& options) {
  const Output all = PickRows(rows, "");
  if (!options.weights.valid()) {
    if (options.combiner == Combiner::kSum) return ops::sum(all, {1});
    if (options.combiner == Combiner::kMean && HaveIds(rows)) return ops::mean(all, {1});
    return Divide(ops::sum(all, {1}), ops::sum(Ones(rows), {1}, /*keepdim=*/true),
                  options.combiner);
  }
  // Fails for other weights than one for each id, which would be stretched over them.
  const Output weights = Call("aten::reshape_as", "", {options.weights, rows.positions});
  const Output column = Call("aten::unsqueeze", "", {weights, Int(-1)});
  const Output sum = ops::sum(column * all, {1});
  if (options.combiner == Combiner::kSum) return sum;
  return Divide(sum, ops::sum(PowerFor(column, options.combiner), {1}), options.combiner);
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
  const Output weights = options.weights.valid() ? options.weights : Ones(rows);
  const Output column = Call("aten::unsqueeze", "", {PowerFor(weights, options.combiner), Int(-1)});
  const Output own =
      Call("aten::cumsum", "", {Call("aten::ones_like", "", {rows.positions}), Int(0)});
  const Output each = Call("aten::sub", "Scalar", {own, Int(1)});
  return Divide(sum, SumBags(column, each, options.offsets, {}), options.combiner);
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

std::string Describe(Output output) {
  return absl::StrCat(DtypeName(output.dtype()), " ", ShapeToString(output.shape()));
}

bool HasAxes(Output output, std::size_t count) {
  return output.shape() && output.shape()->size() == count;
}

// One for each id, as far as the graph knows.
bool AreWeightsOf(Output weights, Output ids, Output rows) {
  return weights.dtype() == rows.dtype() && weights.shape() && ids.shape() &&
         std::ranges::equal(*weights.shape(), *ids.shape(),
                            [](auto a, auto b) { return a == b || a < 0 || b < 0; });
}

// Bags are cut out of ids of another rank without complaint, but wrongly.
absl::Status CheckBags(Output ids, Output rows, const EmbeddingBagOptions& options) {
  if (rows.shape() && rows.shape()->size() != 2)
    return absl::InvalidArgumentError("the table has not two axes");
  if (options.offsets.valid() && (!HasAxes(ids, 1) || !HasAxes(options.offsets, 1))) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ids are ", Describe(ids), " and the offsets ", Describe(options.offsets),
                     ": with offsets both must be lists, [ids] and [bags]"));
  }
  if (!options.offsets.valid() && !HasAxes(ids, 2)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ids are ", Describe(ids),
        ": without offsets they must be a matrix, [bags, ids], of which a row is a bag"));
  }
  if (options.weights.valid() && !AreWeightsOf(options.weights, ids, rows)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights are ", Describe(options.weights), " but must be ", DtypeName(rows.dtype()),
        " ", ShapeToString(ids.shape()), ": one for each id, of the dtype of the table"));
  }
  return absl::OkStatus();
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
  if (const absl::Status status = CheckBags(ids, rows.rows, options); !status.ok()) {
    graph.AddError(Annotate(status, absl::StrCat("EmbeddingBag of '", table.name(), "'")));
    return {};
  }
  const Output bags =
      options.offsets.valid() ? RaggedBags(rows, options) : FixedBags(rows, options);
  return graph.Identity(bags, name);
}

}  // namespace weir
