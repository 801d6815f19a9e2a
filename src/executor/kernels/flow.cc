// Kernels that pass values on.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"

namespace weir::executor {
namespace {

class ConstKernel final : public Kernel {
 public:
  explicit ConstKernel(at::Tensor value) : value_(std::move(value)) {}
  absl::Status Run(NodeContext& context) const override {
    context.SetOutput(0, {.tensor = value_});
    return absl::OkStatus();
  }

 private:
  const at::Tensor value_;
};

class IdentityKernel final : public Kernel {
 public:
  absl::Status Run(NodeContext& context) const override {
    Value value = context.input(0);
    // Autograd has to tell the two tensors apart, as somebody may ask the gradient of either.
    if (value.tensor.defined() && value.tensor.requires_grad() && at::GradMode::is_enabled()) {
      value.tensor = at::alias(value.tensor);
    }
    context.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }
  bool eager() const override { return true; }
};

class GroupKernel final : public Kernel {
 public:
  absl::Status Run(NodeContext&) const override { return absl::OkStatus(); }
  bool eager() const override { return true; }
};

}  // namespace

KernelOr MakeConst(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 0, 1));
  WEIR_ASSIGN_OR_RETURN(at::Tensor value, graph::GetAttr<at::Tensor>(node, "value"));
  if (!value.defined()) return absl::InvalidArgumentError("has no value");
  if (value.has_storage()) {
    context.program().constants.push_back(value.storage().data());
  }
  return std::make_unique<ConstKernel>(value.detach());
}

KernelOr MakeIdentity(CompileContext&, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 1, 1));
  return std::make_unique<IdentityKernel>();
}

KernelOr MakeGroup(CompileContext&, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 0, 0));
  return std::make_unique<GroupKernel>();
}

}  // namespace weir::executor
