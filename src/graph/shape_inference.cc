#include "graph/shape_inference.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "graph/op_registry.h"
#include "graph/row_shards.h"
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
    if (op == "Assign" || op == "AssignAdd") return Update();
    if (op == "Apply") return Apply();
    if (op == "Average") return Average();
    if (op == "Ticket" || op == "CompleteStep") return CountStep();
    if (op == "Gradients") return Gradients();
    if (op == "Lookup") return Lookup();
    if (op == "Gather") return Gather();
    if (op == "ScatterAdd" || op == "ScatterUpdate") return Scatter();
    if (op == "ShardIds") return ShardIds();
    if (op == "SumRows") return SumRows();
    if (op == "AddRows") return Undifferentiable(One(InputInfo(0)));
    if (op == "Split") return Split();
    if (op == "ClipGradients") return Undifferentiable(InputInfos());
    if (op == "AddWeightDecay") return Undifferentiable(One(InputInfo(0)));
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
    if (inputs < static_cast<std::size_t>(op->handles)) return Error("has no variable");
    for (std::size_t i = 0; i < inputs; ++i) {
      const bool wanted = i < static_cast<std::size_t>(op->handles);
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
    return UpdateBy(InputInfo(1), variable);
  }

  // Data inputs: variable, gradient, the indices of a sparse one, the number of the step.
  absl::StatusOr<std::vector<OutputInfo>> Apply() const {
    const bool is_sparse = AttrOr(node_, "sparse", false);
    const bool has_step = AttrOr(node_, "step", false);
    const std::size_t inputs = 2U + (is_sparse ? 1U : 0U) + (has_step ? 1U : 0U);
    if (static_cast<std::size_t>(NumDataInputs(node_)) != inputs)
      return Error(absl::StrCat("takes ", inputs, " tensors"));
    if (is_sparse && !IsListOfIds(InputInfo(2))) return Error("its indices are no list of int64");
    if (has_step && !IsStepNumber(InputInfo(inputs - 1)))
      return Error("the number of its step is no int64 scalar");
    WEIR_ASSIGN_OR_RETURN(const OutputInfo target,
                          is_sparse ? RowsOfVariable(-1) : FromAttrs(Producer(0)));
    return UpdateBy(InputInfo(1), target);
  }

  absl::StatusOr<std::vector<OutputInfo>> Average() const {
    const bool has_step = AttrOr(node_, "step", false);
    const std::size_t inputs = has_step ? 3 : 2;
    if (static_cast<std::size_t>(NumDataInputs(node_)) != inputs)
      return Error(absl::StrCat("takes ", inputs, " tensors"));
    if (has_step && !IsStepNumber(InputInfo(2)))
      return Error("the number of its step is no int64 scalar");
    WEIR_ASSIGN_OR_RETURN(const OutputInfo average, FromAttrs(Producer(0)));
    WEIR_ASSIGN_OR_RETURN(const OutputInfo variable, FromAttrs(Producer(1)));
    return UpdateBy(variable, average);
  }

  static bool IsListOfIds(const OutputInfo& info) {
    return info.dtype == at::kLong && (!info.shape || info.shape->size() == 1);
  }

  static bool IsStepNumber(const OutputInfo& info) {
    return info.dtype == at::kLong && (!info.shape || info.shape->empty());
  }

  absl::StatusOr<std::vector<OutputInfo>> UpdateBy(const OutputInfo& value,
                                                   const OutputInfo& variable) const {
    if (!IsTensorOfVariable(value, variable)) {
      return Error(absl::StrCat("variable '", Producer(0).name, "' is ", DtypeName(variable.dtype),
                                " ", ShapeText(variable.shape), ", the tensor for it ",
                                DtypeName(value.dtype), " ", ShapeText(value.shape)));
    }
    return std::vector<OutputInfo>();
  }

  // What a row of the variable looks like, `count` of them. A list of ids goes with it.
  absl::StatusOr<OutputInfo> RowsOfVariable(std::int64_t count) const {
    WEIR_ASSIGN_OR_RETURN(OutputInfo rows, FromAttrs(Producer(0)));
    if (!rows.shape || rows.shape->empty())
      return Error(absl::StrCat("'", Producer(0).name, "' is a scalar and has no rows"));
    rows.shape->front() = count;
    return rows;
  }

  absl::Status CheckInputs(std::size_t inputs) const {
    if (static_cast<std::size_t>(NumDataInputs(node_)) == inputs) return absl::OkStatus();
    return Error(absl::StrCat("takes ", inputs, " inputs"));
  }

  absl::Status CheckIds(const OutputInfo& ids) const {
    if (ids.dtype == at::kLong) return absl::OkStatus();
    return Error(absl::StrCat("its ids are ", DtypeName(ids.dtype), ", not int64"));
  }

  static OutputInfo IdsOf(Shape shape) {
    return {.dtype = at::kLong, .shape = std::move(shape), .differentiable = false};
  }

  static OutputInfo SomeIds() { return IdsOf(std::vector<std::int64_t>{-1}); }

  absl::StatusOr<std::vector<OutputInfo>> Lookup() const {
    WEIR_RETURN_IF_ERROR(CheckInputs(2));
    WEIR_RETURN_IF_ERROR(CheckIds(InputInfo(1)));
    WEIR_ASSIGN_OR_RETURN(OutputInfo rows, RowsOfVariable(-1));
    return std::vector<OutputInfo>{std::move(rows), IdsOf(InputInfo(1).shape), SomeIds()};
  }

  absl::StatusOr<std::int64_t> NumberOfIds() const {
    WEIR_RETURN_IF_ERROR(CheckIds(InputInfo(1)));
    if (!IsListOfIds(InputInfo(1))) return Error("its ids are no list");
    return InputInfo(1).shape ? InputInfo(1).shape->front() : -1;
  }

  absl::StatusOr<std::vector<OutputInfo>> Gather() const {
    WEIR_RETURN_IF_ERROR(CheckInputs(2));
    WEIR_ASSIGN_OR_RETURN(const std::int64_t count, NumberOfIds());
    WEIR_ASSIGN_OR_RETURN(OutputInfo rows, RowsOfVariable(count));
    return One(std::move(rows));
  }

  absl::StatusOr<std::vector<OutputInfo>> Scatter() const {
    WEIR_RETURN_IF_ERROR(CheckInputs(3));
    WEIR_ASSIGN_OR_RETURN(const std::int64_t count, NumberOfIds());
    WEIR_ASSIGN_OR_RETURN(const OutputInfo rows, RowsOfVariable(count));
    return UpdateBy(InputInfo(2), rows);
  }

  absl::StatusOr<std::vector<OutputInfo>> ShardIds() const {
    WEIR_RETURN_IF_ERROR(CheckIds(InputInfo(0)));
    WEIR_ASSIGN_OR_RETURN(const RowShards shards, ShardsFromAttrs(node_));
    std::vector<OutputInfo> infos(static_cast<std::size_t>(shards.count()), SomeIds());
    infos.push_back(IdsOf(InputInfo(0).shape));
    infos.push_back(SomeIds());
    return infos;
  }

  absl::StatusOr<std::vector<OutputInfo>> SumRows() const {
    const auto inputs = static_cast<std::size_t>(NumDataInputs(node_));
    if (inputs < 2 || inputs % 2 != 0) return Error("takes pairs of ids and values");
    WEIR_ASSIGN_OR_RETURN(const RowShards shards, ShardsFromAttrs(node_));
    OutputInfo values = InputInfo(1);
    if (values.shape && !values.shape->empty()) values.shape->front() = -1;
    values.differentiable = false;
    std::vector<OutputInfo> infos;
    for (int shard = 0; shard < shards.count(); ++shard) {
      infos.push_back(SomeIds());
      infos.push_back(values);
    }
    return infos;
  }

  absl::StatusOr<std::vector<OutputInfo>> Split() const {
    WEIR_ASSIGN_OR_RETURN(const RowShards shards, ShardsFromAttrs(node_));
    WEIR_ASSIGN_OR_RETURN(const auto axis, GetAttr<std::int64_t>(node_, "axis"));
    std::vector<OutputInfo> infos(static_cast<std::size_t>(shards.count()), InputInfo(0));
    for (int shard = 0; shard < shards.count(); ++shard) {
      OutputInfo& info = infos[static_cast<std::size_t>(shard)];
      info.differentiable = false;
      if (!info.shape) continue;
      if (axis < 0 || axis >= static_cast<std::int64_t>(info.shape->size()))
        return Error(absl::StrCat("has no axis ", axis));
      (*info.shape)[static_cast<std::size_t>(axis)] = shards.begin(shard + 1) - shards.begin(shard);
    }
    return infos;
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

  static std::vector<OutputInfo> Undifferentiable(std::vector<OutputInfo> infos) {
    for (OutputInfo& info : infos) info.differentiable = false;
    return infos;
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
