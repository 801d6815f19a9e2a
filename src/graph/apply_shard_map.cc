#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/row_shards.h"
#include "graph/shape_inference.h"

namespace weir::graph {
namespace {

// One run of ApplyShardMap: writes a graph node by node, those of sliced variables as what they
// stand for.
class Expander {
 public:
  Expander(const GraphDef& graph, const ShardMap& map)
      : graph_(graph),
        map_(map),
        names_(graph),
        outputs_(graph.nodes.size()),
        controls_(graph.nodes.size()),
        slices_(graph.nodes.size()) {
    result_.seed = graph.seed;
  }

  absl::StatusOr<GraphDef> Run() {
    WEIR_ASSIGN_OR_RETURN(const std::vector<int> order, TopologicalOrder(graph_));
    for (const int n : order) {
      absl::Status status = Write(n);
      if (!status.ok()) return Annotate(status, absl::StrCat("node '", Old(n).name, "'"));
    }
    return std::move(result_);
  }

 private:
  const Node& Old(int n) const { return NodeAt(graph_, n); }

  const SlicedVariable* SlicingOf(const Node& variable) const {
    const auto found = map_.variables.find(variable.name);
    return found == map_.variables.end() ? nullptr : &found->second;
  }

  absl::Status Write(int n) {
    const Node& node = Old(n);
    if (node.op == "Variable") {
      const SlicedVariable* sliced = SlicingOf(node);
      return sliced == nullptr ? Copy(n) : WriteSlices(n, *sliced);
    }
    const OpInfo* op = FindOp(node.op);
    if (op == nullptr || !op->handle_input) return Copy(n);
    const Node& variable = Old(node.inputs[0].node);
    const SlicedVariable* sliced = SlicingOf(variable);
    if (node.op == "Lookup") return WriteLookup(n, variable, sliced);
    if (sliced == nullptr) return Copy(n);
    if (node.op == "Read") return WriteRead(n, variable, *sliced);
    if (node.op == "Gather") return WriteGather(n, variable, *sliced);
    if (node.op == "Assign" || node.op == "AssignAdd") return WriteDenseUpdates(n, *sliced);
    if (node.op == "ScatterAdd") return WriteSparseUpdates(n, *sliced, {1, 2}, "sum");
    if (node.op == "ScatterUpdate") return WriteSparseUpdates(n, *sliced, {1, 2}, "last");
    if (node.op == "Apply") {
      return AttrOr(node, "sparse", false) ? WriteSparseUpdates(n, *sliced, {2, 1}, "sum")
                                           : WriteDenseUpdates(n, *sliced);
    }
    if (node.op == "IsInitialized") return WriteIsInitialized(n);
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", variable.name, "' is cut into slices, and ", node.op, " needs a whole one"));
  }

  // ---- Nodes as they are.

  Edge NewEdge(const Edge& old) const {
    const auto at = static_cast<std::size_t>(old.node);
    return old.is_control() ? controls_[at] : outputs_[at][static_cast<std::size_t>(old.output)];
  }

  std::vector<Edge> Controls(const Node& node) const {
    std::vector<Edge> controls;
    for (const Edge& input : node.inputs)
      if (input.is_control()) controls.push_back(NewEdge(input));
    return controls;
  }

  // What shares the device of a sliced variable shares that of its first slice.
  std::string NewColocation(const Node& node) const {
    return map_.variables.contains(node.colocation) ? SliceName(node.colocation, 0)
                                                    : node.colocation;
  }

  absl::Status Copy(int n) {
    Node node = Old(n);
    for (Edge& input : node.inputs) input = NewEdge(input);
    node.colocation = NewColocation(node);
    const int at = Append(std::move(node));
    Stand(n, at);
    for (std::size_t o = 0; o < Old(n).outputs.size(); ++o)
      outputs_[static_cast<std::size_t>(n)].push_back({.node = at, .output = static_cast<int>(o)});
    return absl::OkStatus();
  }

  // ---- Making nodes.

  int Append(Node node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<int>(result_.nodes.size()) - 1;
  }

  // Whoever waits for node `n` of the old graph waits for node `at`.
  void Stand(int n, int at) { controls_[static_cast<std::size_t>(n)] = {at, Edge::kControl}; }

  // Adds a node and infers its outputs.
  absl::StatusOr<int> Add(Node node) {
    WEIR_ASSIGN_OR_RETURN(node.outputs, InferOutputs(result_, node));
    return Append(std::move(node));
  }

  static Node AtenNode(const std::string& name, const char* op, const std::string& device,
                       std::vector<Edge> inputs, AttrMap attrs) {
    Node node{.name = name, .op = "Aten", .inputs = std::move(inputs), .attrs = std::move(attrs)};
    node.attrs["operator"] = absl::StrCat("aten::", op);
    node.attrs.emplace("overload", "");
    node.device = device;
    return node;
  }

  std::string Fresh(const Node& node, const std::string& what) {
    return names_.Make(absl::StrCat(node.name, "/", what));
  }

  const std::vector<int>& SlicesOf(const Node& node) const {
    return slices_[static_cast<std::size_t>(node.inputs[0].node)];
  }

  // ---- Variables.

  absl::Status WriteSlices(int n, const SlicedVariable& sliced) {
    const auto axis = static_cast<std::size_t>(sliced.axis);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sliced.slices.size(); ++i) {
      const Slice& slice = sliced.slices[i];
      Node node = Old(n);
      node.name = slice.name;
      if (names_.Make(slice.name) != slice.name)
        return absl::InvalidArgumentError(absl::StrCat("the graph has another '", slice.name, "'"));
      node.device = slice.device;
      node.colocation.clear();
      for (const char* name : {"axis", "sizes", "layout", "slice_devices"}) node.attrs.erase(name);
      auto& shape = std::get<std::vector<std::int64_t>>(node.attrs["shape"]);
      shape[axis] = slice.size;
      if (auto* value = std::get_if<at::Tensor>(&node.attrs["initializer_value"])) {
        *value = PartOf(*value, sliced, i, begin);
      } else {
        node.attrs.erase("initializer_value");
      }
      begin += slice.size;
      slices_[static_cast<std::size_t>(n)].push_back(Append(std::move(node)));
    }
    Stand(n, slices_[static_cast<std::size_t>(n)].front());
    outputs_[static_cast<std::size_t>(n)] = {{slices_[static_cast<std::size_t>(n)].front(), 0}};
    return absl::OkStatus();
  }

  static at::Tensor PartOf(const at::Tensor& value, const SlicedVariable& sliced, std::size_t index,
                           std::int64_t begin) {
    const auto slice = static_cast<std::int64_t>(index);
    const at::Tensor part =
        sliced.layout == RowLayout::kMod
            ? value.slice(0, slice, std::nullopt, static_cast<std::int64_t>(sliced.slices.size()))
            : value.narrow(sliced.axis, begin, sliced.slices[index].size);
    return part.contiguous();
  }

  // ---- Reads.

  // A value that keeps the old node's name, for who fetches it.
  void Replace(int n, const std::vector<Edge>& outputs) {
    Stand(n, outputs.front().node);
    outputs_[static_cast<std::size_t>(n)] = outputs;
  }

  // Fetching a variable's name means its value.
  absl::Status AddAlias(const Node& variable, const Edge& value) {
    return Add({.name = variable.name, .op = "Identity", .inputs = {value}}).status();
  }

  absl::Status WriteRead(int n, const Node& variable, const SlicedVariable& sliced) {
    const Node& read = Old(n);
    Edge value;
    if (sliced.layout == RowLayout::kMod) {
      WEIR_ASSIGN_OR_RETURN(const int all, Add(AtenNode(Fresh(read, "rows"), "arange", read.device,
                                                        {}, {{"end", RowsOf(variable)}})));
      WEIR_ASSIGN_OR_RETURN(const Rows rows, AddRows(n, variable, &sliced, {all, 0}));
      WEIR_ASSIGN_OR_RETURN(value, AddPick(read, rows));
    } else {
      std::vector<Edge> parts;
      for (const int slice : SlicesOf(read)) {
        Node node = read;
        node.name = names_.Make(absl::StrCat(NodeAt(result_, slice).name, "/read"));
        node.inputs = {{slice, 0}};
        node.colocation.clear();
        WEIR_ASSIGN_OR_RETURN(const int at, Add(std::move(node)));
        parts.push_back({at, 0});
      }
      WEIR_ASSIGN_OR_RETURN(value, AddConcatenation(read.name, read.device, parts, sliced.axis));
    }
    WEIR_RETURN_IF_ERROR(AddAlias(variable, value));
    Replace(n, {value});
    return absl::OkStatus();
  }

  std::int64_t RowsOf(const Node& variable) const {
    return AttrOr<std::vector<std::int64_t>>(variable, "shape", {0}).front();
  }

  absl::StatusOr<Edge> AddConcatenation(const std::string& name, const std::string& device,
                                        const std::vector<Edge>& parts, int axis) {
    if (parts.size() == 1) {
      WEIR_ASSIGN_OR_RETURN(
          const int at, Add({.name = name, .op = "Identity", .inputs = parts, .device = device}));
      return Edge{at, 0};
    }
    WEIR_ASSIGN_OR_RETURN(const int at,
                          Add(AtenNode(name, "cat", device, parts,
                                       {{"tensors.size", static_cast<std::int64_t>(parts.size())},
                                        {"dim", static_cast<std::int64_t>(axis)}})));
    return Edge{at, 0};
  }

  // ---- Rows.

  // Rows of all slices, each once; the positions of the ids in them; their numbers.
  struct Rows {
    Edge rows;
    Edge positions;
    Edge numbers;
  };

  absl::StatusOr<Rows> AddRows(int n, const Node& variable, const SlicedVariable* sliced,
                               const Edge& ids) {
    const Node& node = Old(n);
    Node shard{.name = Fresh(node, "ids"), .op = "ShardIds", .inputs = {ids}};
    for (const Edge& control : Controls(node)) shard.inputs.push_back(control);
    shard.device = node.device;
    shard.attrs["variable"] = variable.name;
    SetShards(variable, sliced, shard);
    WEIR_ASSIGN_OR_RETURN(const int at, Add(std::move(shard)));
    const std::vector<int> whole = {
        outputs_[static_cast<std::size_t>(node.inputs[0].node)][0].node};
    const std::vector<int>& slices = sliced == nullptr ? whole : SlicesOf(node);
    std::vector<Edge> parts;
    for (const int slice : slices) {
      WEIR_ASSIGN_OR_RETURN(
          const int gather,
          Add({.name = names_.Make(absl::StrCat(NodeAt(result_, slice).name, "/gather")),
               .op = "Gather",
               .inputs = {{slice, 0}, {at, static_cast<int>(parts.size())}}}));
      parts.push_back({gather, 0});
    }
    const int count = static_cast<int>(parts.size());
    WEIR_ASSIGN_OR_RETURN(const Edge rows,
                          AddConcatenation(node.op == "Lookup" ? node.name : Fresh(node, "rows"),
                                           node.device, parts, 0));
    return Rows{.rows = rows, .positions = {at, count}, .numbers = {at, count + 1}};
  }

  void SetShards(const Node& variable, const SlicedVariable* sliced, Node& node) const {
    if (sliced == nullptr || sliced->axis != 0) {
      SetShardAttrs({RowsOf(variable)}, RowLayout::kDiv, node);
    } else {
      SetShardAttrs(sliced->sizes(), sliced->layout, node);
    }
  }

  static absl::Status CheckRows(const Node& variable, const SlicedVariable* sliced) {
    if (sliced == nullptr || sliced->axis == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("variable '", variable.name,
                                                   "' is cut along axis ", sliced->axis,
                                                   ": its rows cannot be looked up"));
  }

  absl::Status WriteLookup(int n, const Node& variable, const SlicedVariable* sliced) {
    WEIR_RETURN_IF_ERROR(CheckRows(variable, sliced));
    WEIR_ASSIGN_OR_RETURN(const Rows rows, AddRows(n, variable, sliced, NewEdge(Old(n).inputs[1])));
    Replace(n, {rows.rows, rows.positions, rows.numbers});
    return absl::OkStatus();
  }

  absl::StatusOr<Edge> AddPick(const Node& node, const Rows& rows) {
    WEIR_ASSIGN_OR_RETURN(const int at,
                          Add(AtenNode(node.name, "index_select", node.device,
                                       {rows.rows, rows.positions}, {{"dim", std::int64_t{0}}})));
    return Edge{at, 0};
  }

  absl::Status WriteGather(int n, const Node& variable, const SlicedVariable& sliced) {
    WEIR_RETURN_IF_ERROR(CheckRows(variable, &sliced));
    WEIR_ASSIGN_OR_RETURN(const Rows rows,
                          AddRows(n, variable, &sliced, NewEdge(Old(n).inputs[1])));
    WEIR_ASSIGN_OR_RETURN(const Edge value, AddPick(Old(n), rows));
    Replace(n, {value});
    return absl::OkStatus();
  }

  // ---- Updates.

  // The update of slice `i`, as of the whole variable but with `inputs` in their place.
  absl::StatusOr<Edge> AddUpdate(const Node& node, int slice, std::vector<Edge> inputs) {
    Node update = node;
    std::string op = node.op;
    std::ranges::transform(op, op.begin(), [](unsigned char c) { return std::tolower(c); });
    update.name = names_.Make(absl::StrCat(NodeAt(result_, slice).name, "/", op));
    update.colocation.clear();
    update.inputs = {{slice, 0}};
    update.inputs.insert(update.inputs.end(), inputs.begin(), inputs.end());
    for (const Edge& control : Controls(node)) update.inputs.push_back(control);
    WEIR_ASSIGN_OR_RETURN(const int at, Add(std::move(update)));
    return Edge{at, Edge::kControl};
  }

  absl::Status AddGroup(int n, std::vector<Edge> updates) {
    WEIR_ASSIGN_OR_RETURN(const int at,
                          Add({.name = Old(n).name, .op = "Group", .inputs = std::move(updates)}));
    Stand(n, at);
    return absl::OkStatus();
  }

  // Data inputs from `first` on, which all slices share.
  std::vector<Edge> SharedInputs(const Node& node, std::size_t first) const {
    std::vector<Edge> shared;
    for (std::size_t i = first; i < static_cast<std::size_t>(NumDataInputs(node)); ++i)
      shared.push_back(NewEdge(node.inputs[i]));
    return shared;
  }

  absl::Status WriteDenseUpdates(int n, const SlicedVariable& sliced) {
    const Node& node = Old(n);
    Node split{.name = Fresh(node, "split"), .op = "Split", .inputs = {NewEdge(node.inputs[1])}};
    SetShardAttrs(sliced.sizes(), sliced.layout, split);
    split.attrs["axis"] = static_cast<std::int64_t>(sliced.axis);
    WEIR_ASSIGN_OR_RETURN(const int at, Add(std::move(split)));
    std::vector<Edge> updates;
    for (const int slice : SlicesOf(node)) {
      std::vector<Edge> inputs = SharedInputs(node, 2);
      inputs.insert(inputs.begin(), {at, static_cast<int>(updates.size())});
      WEIR_ASSIGN_OR_RETURN(const Edge update, AddUpdate(node, slice, std::move(inputs)));
      updates.push_back(update);
    }
    return AddGroup(n, std::move(updates));
  }

  // Which inputs of an update are the ids and the values.
  struct SparseInputs {
    std::size_t ids;
    std::size_t values;
  };

  absl::Status WriteSparseUpdates(int n, const SlicedVariable& sliced, SparseInputs at,
                                  const char* combine) {
    const Node& node = Old(n);
    WEIR_RETURN_IF_ERROR(CheckRows(Old(node.inputs[0].node), &sliced));
    Node sum{.name = Fresh(node, "rows"),
             .op = "SumRows",
             .inputs = {NewEdge(node.inputs[at.ids]), NewEdge(node.inputs[at.values])}};
    SetShardAttrs(sliced.sizes(), sliced.layout, sum);
    sum.attrs["combine"] = combine;
    sum.attrs["variable"] = Old(node.inputs[0].node).name;
    WEIR_ASSIGN_OR_RETURN(const int rows, Add(std::move(sum)));
    std::vector<Edge> updates;
    for (const int slice : SlicesOf(node)) {
      const int first = 2 * static_cast<int>(updates.size());
      std::vector<Edge> inputs = SharedInputs(node, 3);
      const Edge ids{rows, first};
      const Edge values{rows, first + 1};
      inputs.insert(inputs.begin(),
                    {at.ids < at.values ? ids : values, at.ids < at.values ? values : ids});
      WEIR_ASSIGN_OR_RETURN(const Edge update, AddUpdate(node, slice, std::move(inputs)));
      updates.push_back(update);
    }
    return AddGroup(n, std::move(updates));
  }

  absl::Status WriteIsInitialized(int n) {
    const Node& node = Old(n);
    std::vector<Edge> parts;
    for (const int slice : SlicesOf(node)) {
      WEIR_ASSIGN_OR_RETURN(
          const int at,
          Add({.name = names_.Make(absl::StrCat(NodeAt(result_, slice).name, "/is_initialized")),
               .op = "IsInitialized",
               .inputs = {{slice, 0}}}));
      parts.push_back({at, 0});
    }
    WEIR_ASSIGN_OR_RETURN(
        const int stack,
        Add(AtenNode(Fresh(node, "stack"), "stack", "", parts,
                     {{"tensors.size", static_cast<std::int64_t>(parts.size())}})));
    WEIR_ASSIGN_OR_RETURN(const int all, Add(AtenNode(node.name, "all", "", {{stack, 0}}, {})));
    Replace(n, {{all, 0}});
    return absl::OkStatus();
  }

  const GraphDef& graph_;
  const ShardMap& map_;
  FreshNames names_;
  GraphDef result_;
  // By node of the graph as it came: what stands for its outputs, for its having run, and for a
  // variable the nodes of its slices.
  std::vector<std::vector<Edge>> outputs_;
  std::vector<Edge> controls_;
  std::vector<std::vector<int>> slices_;
};

}  // namespace

absl::StatusOr<GraphDef> ApplyShardMap(GraphDef graph, const ShardMap& map) {
  const bool has_lookups =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == "Lookup"; });
  if (map.variables.empty() && !has_lookups) return graph;
  return Expander(graph, map).Run();
}

}  // namespace weir::graph
