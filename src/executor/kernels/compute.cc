// Kernels that compute: libtorch's operators and the user's functions.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stable_hash.h"
#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/aten_schema.h"
#include "graph/op_registry.h"

namespace weir::executor {
namespace {

std::vector<at::Tensor> Inputs(const NodeContext& context) {
  std::vector<at::Tensor> inputs;
  inputs.reserve(context.num_inputs());
  for (std::size_t i = 0; i < context.num_inputs(); ++i) inputs.push_back(context.input(i).tensor);
  return inputs;
}

// Some operators return their input itself where there is nothing to do, such as `to`. Recorded by
// autograd that would be one variable with one gradient, where the graph has two.
at::Tensor OfItsOwn(const NodeContext& context, at::Tensor output) {
  if (!at::GradMode::is_enabled() || !output.defined()) return output;
  for (std::size_t i = 0; i < context.num_inputs(); ++i) {
    if (output.is_same(context.input(i).tensor)) return at::alias(output);
  }
  return output;
}

absl::Status SetOutputs(NodeContext& context, std::vector<at::Tensor> outputs,
                        std::size_t expected) {
  if (outputs.size() != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("returned ", outputs.size(), " tensors, but the graph says ", expected));
  }
  for (std::size_t i = 0; i < expected; ++i)
    context.SetOutput(i, {.tensor = OfItsOwn(context, std::move(outputs[i]))});
  return absl::OkStatus();
}

class AtenKernel final : public Kernel {
 public:
  AtenKernel(graph::AtenCall call, std::size_t num_outputs, std::uint64_t seed)
      : call_(std::move(call)), num_outputs_(num_outputs), seed_(seed) {}

  absl::Status Run(NodeContext& context) const override {
    std::vector<at::Tensor> outputs;
    if (call_.needs_generator()) {
      const at::Generator generator =
          at::make_generator<at::CPUGeneratorImpl>(SplitMix64(seed_ + context.step().id().step));
      WEIR_RETURN_IF_ERROR(call_.Run(Inputs(context), &generator, outputs));
    } else {
      WEIR_RETURN_IF_ERROR(call_.Run(Inputs(context), nullptr, outputs));
    }
    return SetOutputs(context, std::move(outputs), num_outputs_);
  }
  bool names_node() const override { return true; }

 private:
  const graph::AtenCall call_;
  const std::size_t num_outputs_;
  const std::uint64_t seed_;  // of the graph and the node
};

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(TensorFunction function, std::vector<OutputInfo> outputs)
      : function_(std::move(function)), outputs_(std::move(outputs)) {}

  absl::Status Run(NodeContext& context) const override {
    const std::vector<at::Tensor> inputs = Inputs(context);
    for (const at::Tensor& input : inputs) {
      if (!input.defined()) return absl::InvalidArgumentError("an input is an absent gradient");
    }
    std::vector<at::Tensor> outputs;
    WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kUnknown, "the function threw",
                                 [&] { outputs = function_(inputs); }));
    for (std::size_t i = 0; i < std::min(outputs.size(), outputs_.size()); ++i) {
      if (!outputs[i].defined()) {
        return absl::InvalidArgumentError(absl::StrCat("output ", i, " is no tensor"));
      }
      WEIR_RETURN_IF_ERROR(
          Annotate(CheckTensor(outputs[i], outputs_[i], "what it returned"), OutputName(i)));
    }
    return SetOutputs(context, std::move(outputs), outputs_.size());
  }
  bool cheap() const override { return false; }

 private:
  static std::string OutputName(std::size_t i) { return absl::StrCat("output ", i); }

  const TensorFunction function_;
  const std::vector<OutputInfo> outputs_;
};

}  // namespace

KernelOr MakeAten(CompileContext& context, const Node& node) {
  WEIR_ASSIGN_OR_RETURN(graph::AtenCall call, graph::AtenCall::Build(node));
  return std::make_unique<AtenKernel>(std::move(call), node.outputs.size(),
                                      SplitMix64(context.graph().seed ^ Fnv1a(node.name)));
}

KernelOr MakeFunction(CompileContext& context, const Node& node) {
  WEIR_ASSIGN_OR_RETURN(const auto handle, graph::GetAttr<std::int64_t>(node, "handle"));
  const auto* functions = context.environment().functions;
  if (functions != nullptr) {
    if (const auto found = functions->find(handle); found != functions->end()) {
      return std::make_unique<FunctionKernel>(found->second, node.outputs);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("function ", handle,
                   " is not held by this process: a Function runs only in the process that built "
                   "the graph, on a task of that process"));
}

}  // namespace weir::executor
