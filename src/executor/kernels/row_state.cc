// Kernels that read and write rows of variables.
#include <utility>

#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"

namespace weir::executor {
namespace {

using store::Variable;

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(std::shared_ptr<Variable> variable) : variable_(std::move(variable)) {}

  absl::Status Run(NodeContext& context) const override {
    WEIR_ASSIGN_OR_RETURN(store::Snapshot rows, variable_->ReadRows(context.input(1).tensor));
    context.SetOutput(0, {std::move(rows.tensor), rows.version});
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Variable> variable_;
};

using Scatter = absl::StatusOr<std::uint64_t> (Variable::*)(const at::Tensor& ids,
                                                            const at::Tensor& values,
                                                            bool use_locking);

class ScatterKernel final : public Kernel {
 public:
  ScatterKernel(std::shared_ptr<Variable> variable, Scatter scatter, bool use_locking)
      : variable_(std::move(variable)), scatter_(scatter), use_locking_(use_locking) {}

  absl::Status Run(NodeContext& context) const override {
    const at::Tensor& values = context.input(2).tensor;
    return ((*variable_).*scatter_)(context.input(1).tensor, values, use_locking_).status();
  }

 private:
  const std::shared_ptr<Variable> variable_;
  const Scatter scatter_;
  const bool use_locking_;
};

KernelOr MakeScatter(CompileContext& context, const Node& node, Scatter scatter) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 3, 0));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  return std::make_unique<ScatterKernel>(std::move(variable), scatter,
                                         graph::AttrOr(node, "use_locking", false));
}

}  // namespace

KernelOr MakeGather(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 2, 1));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  return std::make_unique<GatherKernel>(std::move(variable));
}

KernelOr MakeScatterAdd(CompileContext& context, const Node& node) {
  return MakeScatter(context, node, &Variable::ScatterAdd);
}

KernelOr MakeScatterUpdate(CompileContext& context, const Node& node) {
  return MakeScatter(context, node, &Variable::ScatterUpdate);
}

}  // namespace weir::executor
