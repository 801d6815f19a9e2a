// Kernels that change gradients on their way to the variables: sums, bounds, weight decay.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"

namespace weir::executor {
namespace {

// Contributions may be shared with others, so that only a sum made here is added to in place.
class SumGradientsKernel final : public Kernel {
 public:
  absl::Status Run(NodeContext& context) const override {
    Value sum;
    return CatchAs(absl::StatusCode::kInvalidArgument, "adding gradients", [&] {
      bool own = false;
      for (std::size_t i = 0; i < context.num_inputs(); ++i) {
        const Value& part = context.input(i);
        if (!part.tensor.defined()) continue;
        if (!sum.tensor.defined()) {
          sum = part;
          continue;
        }
        if (own) {
          sum.tensor.add_(part.tensor);
        } else {
          sum.tensor = at::add(sum.tensor, part.tensor);
        }
        own = true;
        // What is computed from several versions is as stale as the oldest of them.
        sum.version = std::min(sum.version, part.version);
      }
      context.SetOutput(0, std::move(sum));
    });
  }
  bool eager() const override { return true; }
};

/// One gradient for each input; absent ones stay absent.
class GradientsKernel : public Kernel {
 public:
  absl::Status Run(NodeContext& context) const final {
    return CatchAs(absl::StatusCode::kInvalidArgument, "clipping gradients", [&] {
      const double norm = GlobalNorm(context);
      for (std::size_t i = 0; i < context.num_inputs(); ++i) {
        Value value = context.input(i);
        if (value.tensor.defined()) value.tensor = Clip(value.tensor, norm);
        context.SetOutput(i, std::move(value));
      }
    });
  }

 protected:
  static double Norm(const at::Tensor& gradient) {
    return at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kDouble).item<double>();
  }

  /// `gradient` times bound / max(norm, bound). A norm that is not finite makes everything NaN, as
  /// clip_by_global_norm of the original: better seen than trained on.
  static at::Tensor Scale(const at::Tensor& gradient, double norm, double bound) {
    if (norm <= bound) return gradient;
    return gradient *
           (std::isfinite(norm) ? bound / norm : std::numeric_limits<double>::quiet_NaN());
  }

 private:
  virtual double GlobalNorm(const NodeContext&) const { return 0; }
  virtual at::Tensor Clip(const at::Tensor& gradient, double global_norm) const = 0;
};

class ClipByValueKernel final : public GradientsKernel {
 public:
  explicit ClipByValueKernel(double bound) : bound_(bound) {}

 private:
  at::Tensor Clip(const at::Tensor& gradient, double) const override {
    return at::clamp(gradient, -bound_, bound_);
  }
  const double bound_;
};

class ClipByNormKernel final : public GradientsKernel {
 public:
  explicit ClipByNormKernel(double bound) : bound_(bound) {}

 private:
  at::Tensor Clip(const at::Tensor& gradient, double) const override {
    return Scale(gradient, Norm(gradient), bound_);
  }
  const double bound_;
};

class ClipByGlobalNormKernel final : public GradientsKernel {
 public:
  explicit ClipByGlobalNormKernel(double bound) : bound_(bound) {}

 private:
  double GlobalNorm(const NodeContext& context) const override {
    double squares = 0;
    for (std::size_t i = 0; i < context.num_inputs(); ++i) {
      const at::Tensor& gradient = context.input(i).tensor;
      if (gradient.defined()) squares += std::pow(Norm(gradient), 2);
    }
    return std::sqrt(squares);
  }
  at::Tensor Clip(const at::Tensor& gradient, double global_norm) const override {
    return Scale(gradient, global_norm, bound_);
  }
  const double bound_;
};

/// gradient + rate * weight; an absent gradient stays absent.
class AddWeightDecayKernel final : public Kernel {
 public:
  explicit AddWeightDecayKernel(double rate) : rate_(rate) {}

  absl::Status Run(NodeContext& context) const override {
    return CatchAs(absl::StatusCode::kInvalidArgument, "adding weight decay", [&] {
      Value value = context.input(0);
      if (value.tensor.defined())
        value.tensor = at::add(value.tensor, context.input(1).tensor.detach(), rate_);
      context.SetOutput(0, std::move(value));
    });
  }

 private:
  const double rate_;
};

/// A dense gradient and one of some rows, both of one variable; either may be absent.
class AddRowsKernel final : public Kernel {
 public:
  explicit AddRowsKernel(std::vector<std::int64_t> shape) : shape_(std::move(shape)) {}

  absl::Status Run(NodeContext& context) const override {
    return CatchAs(absl::StatusCode::kInvalidArgument, "adding rows to a gradient", [&] {
      Value sum = context.input(0);
      const Value& rows = context.input(2);
      if (rows.tensor.defined()) {
        const at::Tensor dense =
            sum.tensor.defined() ? sum.tensor : at::zeros(shape_, rows.tensor.options());
        sum.version = std::min(sum.version, rows.version);
        sum.tensor = at::index_add(dense, 0, context.input(1).tensor, rows.tensor);
      }
      context.SetOutput(0, std::move(sum));
    });
  }

 private:
  const std::vector<std::int64_t> shape_;
};

}  // namespace

KernelOr MakeSumGradients(CompileContext&, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, graph::NumDataInputs(node), 1));
  return std::make_unique<SumGradientsKernel>();
}

KernelOr MakeClipGradients(CompileContext&, const Node& node) {
  const int inputs = graph::NumDataInputs(node);
  WEIR_RETURN_IF_ERROR(CheckArity(node, inputs, static_cast<std::size_t>(inputs)));
  WEIR_ASSIGN_OR_RETURN(const auto by, graph::GetAttr<std::string>(node, "by"));
  WEIR_ASSIGN_OR_RETURN(const auto bound, graph::GetAttr<double>(node, "bound"));
  if (!(bound > 0) || !std::isfinite(bound)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradients are clipped to ", bound, ", which must be more than 0"));
  }
  if (by == "value") return std::make_unique<ClipByValueKernel>(bound);
  if (by == "norm") return std::make_unique<ClipByNormKernel>(bound);
  if (by == "global_norm") return std::make_unique<ClipByGlobalNormKernel>(bound);
  return absl::InvalidArgumentError(absl::StrCat("cannot clip gradients by '", by, "'"));
}

KernelOr MakeAddWeightDecay(CompileContext&, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 2, 1));
  WEIR_ASSIGN_OR_RETURN(const auto rate, graph::GetAttr<double>(node, "rate"));
  return std::make_unique<AddWeightDecayKernel>(rate);
}

KernelOr MakeAddRows(CompileContext&, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 3, 1));
  if (!node.outputs[0].shape) return absl::InvalidArgumentError("the variable's shape is unknown");
  return std::make_unique<AddRowsKernel>(*node.outputs[0].shape);
}

}  // namespace weir::executor
