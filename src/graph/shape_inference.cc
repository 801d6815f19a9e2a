#include "graph/shape_inference.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "graph/op_registry.h"
#include "tensor/dtype.h"

namespace weir::graph {
namespace {

std::string ShapeText(const Shape& shape) {
  return shape ? absl::StrCat("{", absl::StrJoin(*shape, ", "), "}") : "of unknown rank";
}

// Could a tensor described by `a` be one described by `b`?
bool Compatible(const Shape& a, const Shape& b) {
  if (!a || !b) return true;
  return std::ranges::equal(*a, *b, [](auto x, auto y) { return x == y || x < 0 || y < 0; });
}

bool IsTensorOfVariable(const OutputInfo& value, const OutputInfo& variable) {
  const bool same_dtype = value.dtype == variable.dtype || value.dtype == at::ScalarType::Undefined;
  return same_dtype && Compatible(value.shape, variable.shape);
}

class Inferer {
 public:
  Inferer(const GraphDef& graph, const Node& node) : graph_(graph), node_(node) {}

  absl::StatusOr<std::vector<OutputInfo>> Run() {
    WEIR_RETURN_IF_ERROR(CheckHandles());
    const std::string& op = node_.op;
    if (op == "Aten") return InferAten(node_, InputInfos());
    if (op == "Placeholder") return Declared();
    if (op == "Const") return Constant();
    if (op == "Variable") return One(OutputInfo());
    if (op == "Identity") return InputInfos();
    if (op == "Read") return ReadVariable();
    if (op == "IsInitialized") return Scalar(at::kBool);
    if (op == "Assign" || op == "AssignAdd" || op == "Apply") return Update();
    if (op == "Ticket" || op == "CompleteStep") return CountStep();
    if (op == "Gradients") return Gradients();
    return node_.outputs;
  }

 private:
  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("node '", node_.name, "': ", what));
  }

  static std::vector<OutputInfo> One(OutputInfo info) { return {std::move(info)}; }

  static std::vector<OutputInfo> Scalar(at::ScalarType dtype) {
    return One({.dtype = dtype, .shape = std::vector<std::int64_t>{}, .differentiable = false});
  }

  const Node& Producer(std::size_t input) const {
    return graph_.nodes[static_cast<std::size_t>(node_.inputs[input].node)];
  }

  const OutputInfo& InputInfo(std::size_t input) const {
    return Producer(input).outputs[static_cast<std::size_t>(node_.inputs[input].output)];
  }

  std::vector<OutputInfo> InputInfos() const {
    std::vector<OutputInfo> infos;
    for (std::size_t i = 0; i < static_cast<std::size_t>(NumDataInputs(node_)); ++i) {
      infos.push_back(InputInfo(i));
    }
    return infos;
  }

  // A variable's handle goes where one is taken, and nowhere else.
  absl::Status CheckHandles() const {
    const OpInfo* op = FindOp(node_.op);
    if (op == nullptr) return Error(absl::StrCat("unknown op '", node_.op, "'"));
    const auto inputs = static_cast<std::size_t>(NumDataInputs(node_));
    if (op->handle_input && inputs == 0) return Error("has no variable");
    for (std::size_t i = 0; i < inputs; ++i) {
      const bool wanted = op->handle_input && i == 0;
      const bool is_handle = Producer(i).op == "Variable";
      if (wanted && !is_handle) {
        return Error(absl::StrCat("'", Producer(i).name, "' is no variable"));
      }
      if (!wanted && is_handle) {
        return Error(absl::StrCat("takes a tensor, and '", Producer(i).name,
                                  "' is a variable's handle: take its read()"));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<OutputInfo> FromAttrs(const Node& node) const {
    OutputInfo info;
    WEIR_ASSIGN_OR_RETURN(info.dtype, GetAttr<at::ScalarType>(node, "dtype"));
    WEIR_ASSIGN_OR_RETURN(info.shape, GetAttr<std::vector<std::int64_t>>(node, "shape"));
    info.differentiable = at::isFloatingType(info.dtype);
    return info;
  }

  absl::StatusOr<std::vector<OutputInfo>> Declared() const {
    WEIR_ASSIGN_OR_RETURN(OutputInfo info, FromAttrs(node_));
    return One(std::move(info));
  }

  absl::StatusOr<std::vector<OutputInfo>> Constant() const {
    WEIR_ASSIGN_OR_RETURN(const at::Tensor value, GetAttr<at::Tensor>(node_, "value"));
    if (!value.defined()) return Error("its value is no tensor");
    return One({.dtype = value.scalar_type(),
                .shape = value.sizes().vec(),
                .differentiable = at::isFloatingType(value.scalar_type())});
  }

  absl::StatusOr<std::vector<OutputInfo>> ReadVariable() const {
    WEIR_ASSIGN_OR_RETURN(OutputInfo info, FromAttrs(Producer(0)));
    return One(std::move(info));
  }

  absl::StatusOr<std::vector<OutputInfo>> Update() const {
    if (NumDataInputs(node_) != 2) return Error("takes a variable and a tensor");
    WEIR_ASSIGN_OR_RETURN(const OutputInfo variable, FromAttrs(Producer(0)));
    const OutputInfo& value = InputInfo(1);
    if (!IsTensorOfVariable(value, variable)) {
      return Error(absl::StrCat("variable '", Producer(0).name, "' is ", DtypeName(variable.dtype),
                                " ", ShapeText(variable.shape), ", the tensor for it ",
                                DtypeName(value.dtype), " ", ShapeText(value.shape)));
    }
    return std::vector<OutputInfo>();
  }

  absl::StatusOr<std::vector<OutputInfo>> CountStep() const {
    WEIR_ASSIGN_OR_RETURN(const OutputInfo variable, FromAttrs(Producer(0)));
    if (variable.dtype != at::kLong || !variable.shape || !variable.shape->empty()) {
      return Error(absl::StrCat("steps are counted by an int64 scalar, and '", Producer(0).name,
                                "' is ", DtypeName(variable.dtype), " ",
                                ShapeText(variable.shape)));
    }
    return node_.op == "Ticket" ? Scalar(at::kLong) : std::vector<OutputInfo>();
  }

  // A gradient looks like what it is the gradient of.
  absl::StatusOr<std::vector<OutputInfo>> Gradients() const {
    std::vector<OutputInfo> infos = InputInfos();
    if (infos.size() < 2) return Error("takes a loss and at least one tensor");
    const OutputInfo& loss = infos[0];
    if (loss.shape && !loss.shape->empty()) {
      return Error(absl::StrCat("the loss must be a scalar, and '", Producer(0).name, "' is ",
                                ShapeText(loss.shape), "; take its mean or sum"));
    }
    if (!loss.differentiable) {
      return Error(absl::StrCat("no gradient flows back through '", Producer(0).name, "' (",
                                DtypeName(loss.dtype), ")"));
    }
    infos.erase(infos.begin());
    for (std::size_t i = 0; i < infos.size(); ++i) {
      if (infos[i].dtype != at::ScalarType::Undefined && !at::isFloatingType(infos[i].dtype)) {
        return Error(absl::StrCat("'", Producer(i + 1).name, "' is ", DtypeName(infos[i].dtype),
                                  ", which has no gradient"));
      }
      infos[i].differentiable = false;  // gradients of gradients are not made
    }
    return infos;
  }

  const GraphDef& graph_;
  const Node& node_;
};

}  // namespace

absl::StatusOr<std::vector<OutputInfo>> InferOutputs(const GraphDef& graph, const Node& node) {
  return Inferer(graph, node).Run();
}

}  // namespace weir::graph
