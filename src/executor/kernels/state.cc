// Kernels that read and write variables.
#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"

namespace weir::executor {
namespace {

using store::Snapshot;
using store::Variable;

/// Stands in the graph for its variable; those who use its handle have found it already.
class VariableKernel final : public Kernel {
 public:
  absl::Status Run(NodeContext& context) const override {
    context.SetOutput(0, {});
    return absl::OkStatus();
  }
};

enum class ReadMode {
  kCopy,     // what is read does not change any more
  kForWire,  // the store's own buffer, on its way out of the process: the wire copies it
  kInPlace,  // the store's own buffer, as the user asked for
};

class ReadKernel final : public Kernel {
 public:
  ReadKernel(std::shared_ptr<Variable> variable, ReadMode mode)
      : variable_(std::move(variable)), mode_(mode) {}

  absl::Status Run(NodeContext& context) const override {
    WEIR_ASSIGN_OR_RETURN(Snapshot snapshot,
                          mode_ == ReadMode::kCopy ? variable_->ReadCopy() : variable_->Read());
    if (mode_ == ReadMode::kInPlace) context.step().NoteInPlaceRead(snapshot.tensor);
    context.SetOutput(0, {std::move(snapshot.tensor), snapshot.version});
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Variable> variable_;
  const ReadMode mode_;
};

absl::StatusOr<at::Tensor> DefinedInput(const NodeContext& context, std::size_t index) {
  const at::Tensor& tensor = context.input(index).tensor;
  if (!tensor.defined()) {
    return absl::InvalidArgumentError("the value to write is an absent gradient");
  }
  return tensor;
}

class AssignKernel final : public Kernel {
 public:
  explicit AssignKernel(std::shared_ptr<Variable> variable) : variable_(std::move(variable)) {}
  absl::Status Run(NodeContext& context) const override {
    WEIR_ASSIGN_OR_RETURN(const at::Tensor value, DefinedInput(context, 1));
    return variable_->Assign(value);
  }

 private:
  const std::shared_ptr<Variable> variable_;
};

class AssignAddKernel final : public Kernel {
 public:
  AssignAddKernel(std::shared_ptr<Variable> variable, bool use_locking)
      : variable_(std::move(variable)), use_locking_(use_locking) {}
  absl::Status Run(NodeContext& context) const override {
    WEIR_ASSIGN_OR_RETURN(const at::Tensor value, DefinedInput(context, 1));
    return variable_->AssignAdd(value, use_locking_).status();
  }

 private:
  const std::shared_ptr<Variable> variable_;
  const bool use_locking_;
};

class IsInitializedKernel final : public Kernel {
 public:
  explicit IsInitializedKernel(std::shared_ptr<Variable> variable)
      : variable_(std::move(variable)) {}
  absl::Status Run(NodeContext& context) const override {
    context.SetOutput(0, {.tensor = at::scalar_tensor(variable_->initialized(), at::kBool)});
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Variable> variable_;
};

ReadMode ModeOf(const CompileContext& context, const Node& read, const Variable& variable) {
  const auto is_read = [&](const Edge& edge) {
    return !edge.is_control() && &context.node(edge.node) == &read;
  };
  bool only_wire = true;
  for (const Node& node : context.graph().nodes) {
    if (std::none_of(node.inputs.begin(), node.inputs.end(), is_read)) continue;
    only_wire = only_wire && node.op == "Send" &&
                !context.IsSameTask(graph::AttrOr<std::string>(node, "to", ""));
  }
  if (only_wire) return ReadMode::kForWire;
  return variable.def().read_in_place ? ReadMode::kInPlace : ReadMode::kCopy;
}

}  // namespace

KernelOr MakeVariable(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 0, 1));
  WEIR_ASSIGN_OR_RETURN(
      const store::VariableDef def,
      VariableDefFromNode(node, context.graph().seed, context.environment().default_container));
  WEIR_RETURN_IF_ERROR(context.environment().store->Find(def.container, def.name).status());
  return std::make_unique<VariableKernel>();
}

KernelOr MakeRead(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 1, 1));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  const ReadMode mode = ModeOf(context, node, *variable);
  return std::make_unique<ReadKernel>(std::move(variable), mode);
}

KernelOr MakeAssign(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 2, 0));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  return std::make_unique<AssignKernel>(std::move(variable));
}

KernelOr MakeAssignAdd(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 2, 0));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  return std::make_unique<AssignAddKernel>(std::move(variable),
                                           graph::AttrOr(node, "use_locking", false));
}

KernelOr MakeIsInitialized(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 1, 1));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  return std::make_unique<IsInitializedKernel>(std::move(variable));
}

}  // namespace weir::executor
