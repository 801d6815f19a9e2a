#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/device.h"
#include "cluster/text.h"
#include "graph/names.h"
#include "graph/op_registry.h"
#include "graph/op_rules.h"

namespace weir::graph {
namespace {

// A graph made to annoy can violate everything everywhere; the list must not be as large as it.
constexpr std::size_t kViolationsMax = 100;

bool IsVariable(const Node& node) {
  return node.op == "Variable";
}

class Validator {
 public:
  Validator(const GraphDef& graph, bool allow_internal)
      : graph_(graph), allow_internal_(allow_internal) {}

  absl::Status Run() {
    CheckNames();
    for (const Node& node : graph_.nodes) CheckNode(node);
    if (edges_in_range_) {
      if (const auto order = TopologicalOrder(graph_); !order.ok()) {
        Add(std::string(order.status().message()));
      }
    }
    return Result();
  }

 private:
  void Add(std::string violation) {
    if (++count_ <= kViolationsMax) violations_.push_back(std::move(violation));
  }
  template <typename... Parts>
  void Add(const Node& node, const Parts&... parts) {
    Add(absl::StrCat("node ", Quote(node.name), ": ", parts...));
  }

  absl::Status Result() const {
    if (count_ == 0) return absl::OkStatus();
    std::string text = absl::StrCat("the graph is not valid: ", absl::StrJoin(violations_, "; "));
    if (count_ > kViolationsMax) absl::StrAppend(&text, "; and ", count_ - kViolationsMax, " more");
    return absl::InvalidArgumentError(text);
  }

  void CheckNames() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const std::string& name = graph_.nodes[n].name;
      if (!IsNodeName(name)) {
        Add(absl::StrCat("node ", n, " has the name ", Quote(name), ", which is none"));
      }
      if (!by_name_.emplace(name, n).second) {
        Add(absl::StrCat("two nodes have the name ", Quote(name)));
      }
    }
  }

  void CheckNode(const Node& node) {
    const OpInfo* op = FindOp(node.op);
    if (op == nullptr) {
      Add(node, "unknown op ", Quote(node.op));
    } else if (op->internal && !allow_internal_) {
      Add(node, "op ", node.op, " is inserted when a graph is planned and cannot be given");
    }
    CheckPlace(node);
    CheckOutputs(node);
    CheckEdges(node, op);
    if (const OpRule* rule = FindRule(node.op)) CheckRule(node, *rule);
  }

  void CheckPlace(const Node& node) {
    if (const auto device = DeviceSpec::Parse(node.device); !device.ok()) {
      Add(node, std::string(device.status().message()));
    }
    if (!node.colocation.empty() && !by_name_.contains(node.colocation)) {
      Add(node, "is colocated with ", Quote(node.colocation), ", which does not exist");
    }
  }

  void CheckOutputs(const Node& node) {
    for (const OutputInfo& output : node.outputs) {
      if (!IsDtype(output.dtype)) Add(node, "an output has an unknown dtype");
      for (std::int64_t dim : output.shape.value_or(std::vector<std::int64_t>{})) {
        if (dim < -1) Add(node, "an output has the dimension ", dim);
      }
    }
  }

  static bool IsDtype(at::ScalarType dtype) {
    return dtype >= static_cast<at::ScalarType>(0) && dtype < at::ScalarType::NumOptions;
  }

  void CheckEdges(const Node& node, const OpInfo* op) {
    bool control_seen = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Edge& edge = node.inputs[i];
      if (edge.node < 0 || static_cast<std::size_t>(edge.node) >= graph_.nodes.size()) {
        Add(node, "input ", i, " comes from node ", edge.node, ", which does not exist");
        edges_in_range_ = false;
        continue;
      }
      if (edge.is_control()) {
        control_seen = true;
        continue;
      }
      if (control_seen) Add(node, "data input ", i, " comes after a control input");
      const Node& producer = graph_.nodes[static_cast<std::size_t>(edge.node)];
      if (edge.output < 0 || static_cast<std::size_t>(edge.output) >= producer.outputs.size()) {
        Add(node, "input ", i, " is output ", edge.output, " of ", Quote(producer.name),
            ", which has ", producer.outputs.size());
        continue;
      }
      if (op != nullptr) CheckHandle(node, *op, i, producer);
    }
  }

  void CheckHandle(const Node& node, const OpInfo& op, std::size_t input, const Node& producer) {
    const bool wants_handle = input < static_cast<std::size_t>(op.handles);
    if (wants_handle && !IsVariable(producer)) {
      Add(node, "input ", input, " must be a variable, is ", Quote(producer.name), " (",
          producer.op, ")");
    } else if (!wants_handle && IsVariable(producer)) {
      Add(node, "input ", input, " is the variable ", Quote(producer.name),
          " itself, which is no tensor: take its Read");
    }
  }

  void CheckRule(const Node& node, const OpRule& rule) {
    const int inputs = NumDataInputs(node);
    if (inputs < rule.min_inputs || (rule.max_inputs != OpRule::kAny && inputs > rule.max_inputs)) {
      Add(node, node.op, " takes ", rule.min_inputs,
          rule.max_inputs == OpRule::kAny      ? " or more"
          : rule.max_inputs == rule.min_inputs ? ""
                                               : absl::StrCat(" to ", rule.max_inputs),
          " data inputs, has ", inputs);
    }
    const int outputs = ExpectedOutputs(node, rule);
    if (outputs != OpRule::kAny && static_cast<std::size_t>(outputs) != node.outputs.size()) {
      Add(node, node.op, " gives ", outputs, " outputs, has ", node.outputs.size());
    }
    for (const AttrRule& attr : rule.attrs) CheckAttr(node, attr);
    CheckValues(node);
  }

  static int ExpectedOutputs(const Node& node, const OpRule& rule) {
    if (node.op == "Gradients") return NumDataInputs(node) - 1;
    if (node.op == "Recv") return AttrOr<bool>(node, "control", false) ? 0 : 1;
    return rule.outputs;
  }

  void CheckAttr(const Node& node, const AttrRule& attr) {
    const auto found = node.attrs.find(std::string(attr.name));
    const std::string name(attr.name);
    const std::string wanted(AttrTypeNameOf(attr.type));
    if (found == node.attrs.end()) {
      Add(node, "has no attribute '", name, "' (", wanted, ")");
    } else if (found->second.index() != attr.type) {
      Add(node, "attribute '", name, "' is a ", std::string(AttrTypeName(found->second)),
          ", not a ", wanted);
    }
  }

  // What the op's rule cannot say.
  void CheckValues(const Node& node) {
    if (node.op == "Placeholder" || node.op == "Variable") CheckDeclared(node);
    if (node.op == "Const" && !AttrOr<at::Tensor>(node, "value", {}).defined()) {
      Add(node, "its value is no tensor");
    }
    if (node.op == "Backward") CheckBackward(node);
  }

  void CheckDeclared(const Node& node) {
    const auto dtype = AttrOr<at::ScalarType>(node, "dtype", at::ScalarType::Undefined);
    if (!IsDtype(dtype) || dtype == at::ScalarType::Undefined) Add(node, "has no dtype");
    const std::int64_t least = node.op == "Placeholder" ? -1 : 0;
    for (std::int64_t dim : AttrOr<std::vector<std::int64_t>>(node, "shape", {})) {
      if (dim < least) Add(node, "has the dimension ", dim, " in its shape");
    }
  }

  void CheckBackward(const Node& node) {
    const std::int64_t ys = AttrOr<std::int64_t>(node, "num_ys", 0);
    const std::int64_t xs = AttrOr<std::int64_t>(node, "num_xs", 0);
    const std::int64_t inputs = NumDataInputs(node);
    // Bounded first, so that the sum cannot overflow.
    if (ys < 1 || xs < 0 || ys > inputs || xs > inputs || 2 * ys + xs != inputs) {
      Add(node, "has ", inputs, " data inputs for ", ys, " outputs and ", xs,
          " inputs of a segment");
    }
    if (xs != static_cast<std::int64_t>(node.outputs.size())) {
      Add(node, "gives ", node.outputs.size(), " gradients for ", xs, " inputs of a segment");
    }
  }

  const GraphDef& graph_;
  const bool allow_internal_;
  absl::flat_hash_map<std::string, std::size_t> by_name_;
  std::vector<std::string> violations_;
  std::size_t count_ = 0;
  bool edges_in_range_ = true;
};

}  // namespace

absl::Status Validate(const GraphDef& graph, bool allow_internal) {
  return Validator(graph, allow_internal).Run();
}

}  // namespace weir::graph
