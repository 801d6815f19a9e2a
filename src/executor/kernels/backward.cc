// The kernel that asks autograd for the gradients of a segment.
#include <torch/csrc/autograd/autograd.h>

#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/kernels/kernels.h"

namespace weir::executor {
namespace {

/// Hands each gradient on once: from inside the backward call if a hook has it, else afterwards.
class GradientPublisher {
 public:
  GradientPublisher(NodeContext& context, const BackwardShape& shape)
      : context_(context), shape_(shape), published_(shape.num_xs, false) {}

  const Value& x(std::size_t index) const { return context_.input(2 * shape_.num_ys + index); }

  void Publish(std::size_t index, const at::Tensor& gradient) {
    if (published_[index]) return;
    published_[index] = true;
    context_.SetOutput(index, {gradient, x(index).version});
  }

  // A hook that runs for a gradient that autograd does not have is not the last word.
  void PublishFromHook(std::size_t index, const at::TensorBase& gradient) {
    if (!gradient.defined()) return;
    Publish(index, at::Tensor(gradient));
    context_.step().RunEager();
  }

  // What has no gradient gets an absent one.
  void PublishRest() {
    for (std::size_t i = 0; i < shape_.num_xs; ++i) Publish(i, {});
  }

 private:
  NodeContext& context_;
  const BackwardShape& shape_;
  std::vector<bool> published_;  // by x
};

/// Hooks on tensors that go on living: taken off again when the call is over, or the next backward
/// call of the segment would run them too.
class ScopedHooks {
 public:
  ScopedHooks() = default;
  ScopedHooks(const ScopedHooks&) = delete;
  ScopedHooks& operator=(const ScopedHooks&) = delete;
  ~ScopedHooks() {
    for (const auto& [tensor, position] : hooks_) tensor.remove_hook(position);
  }

  template <typename Function>
  void Add(const at::Tensor& tensor, Function&& function) {
    hooks_.emplace_back(tensor, tensor.register_hook(std::forward<Function>(function)));
  }

 private:
  std::vector<std::pair<at::Tensor, unsigned>> hooks_;
};

class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const BackwardShape& shape, std::uint32_t segment)
      : shape_(shape), segment_(segment) {}

  absl::Status Run(NodeContext& context) const override {
    const bool is_last = context.IsLastBackward(segment_);
    GradientPublisher publisher(context, shape_);
    WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, "backward",
                                 [&] { Differentiate(context, publisher, !is_last); }));
    publisher.PublishRest();
    return absl::OkStatus();
  }
  bool cheap() const override { return false; }

 private:
  void Differentiate(NodeContext& context, GradientPublisher& publisher, bool retain_graph) const {
    std::vector<at::Tensor> ys, gradients_of_ys, xs;
    for (std::size_t i = 0; i < shape_.num_ys; ++i) {
      const at::Tensor& y = context.input(i).tensor;
      const at::Tensor& gradient = context.input(shape_.num_ys + i).tensor;
      if (!y.defined() || !y.requires_grad() || !gradient.defined()) continue;
      ys.push_back(y);
      gradients_of_ys.push_back(gradient);
    }
    ScopedHooks hooks;
    std::vector<std::size_t> positions;  // of xs among the node's
    for (std::size_t i = 0; i < shape_.num_xs; ++i) {
      const at::Tensor& x = publisher.x(i).tensor;
      if (!x.defined() || !x.requires_grad()) continue;
      xs.push_back(x);
      positions.push_back(i);
    }
    if (ys.empty() || xs.empty()) return;
    for (const std::size_t position : positions) {
      hooks.Add(publisher.x(position).tensor,
                [&publisher, position](const at::TensorBase& gradient) {
                  publisher.PublishFromHook(position, gradient);
                });
    }
    const std::vector<at::Tensor> gradients =
        torch::autograd::grad(ys, xs, gradients_of_ys, retain_graph, /*create_graph=*/false,
                              /*allow_unused=*/true);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      publisher.Publish(positions[i], gradients[i]);
    }
  }

  const BackwardShape shape_;
  const std::uint32_t segment_;
};

}  // namespace

KernelOr MakeBackward(CompileContext& context, const Node& node) {
  WEIR_ASSIGN_OR_RETURN(const BackwardShape shape, BackwardShapeOf(node));
  return std::make_unique<BackwardKernel>(shape, context.segments().Of(shape.segment));
}

}  // namespace weir::executor
