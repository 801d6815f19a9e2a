// Rules that treat every element of a variable alike: all but those that need a norm.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optim/dense_pass.h"
#include "optim/kernels/kernels.h"
#include "optim/rules.h"
#include "optim/sparse_pass.h"
#include "store/dense.h"

namespace weir::optim {

template <typename Step>
using SlotTensors = std::array<at::Tensor, Step::kSlots>;

/// The arrays of a pass over `w` and its slots.
template <typename Step>
Operands<Step> OperandsOf(const at::Tensor& w, const at::Tensor& g,
                          const SlotTensors<Step>& slots) {
  using T = typename Step::Number;
  Operands<Step> operands{.w = w.mutable_data_ptr<T>(), .g = g.const_data_ptr<T>()};
  for (std::size_t i = 0; i < slots.size(); ++i)
    operands.slots[i] = slots[i].template mutable_data_ptr<T>();
  return operands;
}

/// One update of every row of `w` by a gradient that is zero in most.
template <typename Step>
void PassEveryRow(const Passes<Step>& passes, const Step& step, const at::Tensor& w,
                  const SparseGradient& gradient, const SlotTensors<Step>& slots) {
  const std::int64_t rows = w.size(0);
  if (w.numel() == 0) return;
  const std::int64_t width = w.numel() / rows;
  const Operands<Step> operands = OperandsOf<Step>(w, gradient.values, slots);
  const std::span<const std::int64_t> touched(
      gradient.indices.template const_data_ptr<std::int64_t>(),
      static_cast<std::size_t>(gradient.indices.numel()));
  RunEveryRow(
      rows, width, touched,
      [&](std::int64_t k) { passes.rows(step, operands, touched.data(), width, k, k + 1); },
      [&](std::int64_t begin, std::int64_t end) {
        passes.idle(step, operands, begin * width, end * width);
      });
}

/// One update of the rows of `w` that have a gradient.
template <typename Step>
void PassTouchedRows(const Passes<Step>& passes, const Step& step, const at::Tensor& w,
                     const SparseGradient& gradient, const SlotTensors<Step>& slots) {
  const std::int64_t count = gradient.indices.numel();
  if (gradient.values.numel() == 0) return;
  const std::int64_t width = gradient.values.numel() / count;
  const Operands<Step> operands = OperandsOf<Step>(w, gradient.values, slots);
  const auto* const touched = gradient.indices.template const_data_ptr<std::int64_t>();
  RunRowRanges(count, width, [&](std::int64_t begin, std::int64_t end) {
    passes.rows(step, operands, touched, width, begin, end);
  });
}

/// Which rates an optimizer's numbers (below) can use.
template <typename Numbers>
inline constexpr RateKind kRates =
    requires { Numbers::kNeedsPositiveRate; } ? RateKind::kPositive : RateKind::kAny;

/// `Numbers` are an optimizer's, and make the step of each update:
///   using Step = ...;                                   one of kernels/steps.h
///   Step At(double rate, std::int64_t step) const;      by the learning rate and the global step
///   static constexpr bool kMovesEveryRow = true;        optional: a sparse gradient's zeros count
///   static constexpr bool kNeedsPositiveRate = true;    optional
///   static constexpr bool kCountsSteps = true;          optional: At looks at the step
///   void Applied() const;                               optional: called after each update
template <typename Numbers>
class ElementwiseRule final : public UpdateRule {
 public:
  using Step = typename Numbers::Step;

  ElementwiseRule(const RuleContext& context, Numbers numbers, SlotTensors<Step> slots)
      : variable_(context.variable),
        use_locking_(context.spec.use_locking),
        rate_(context.rate),
        numbers_(std::move(numbers)),
        slots_(std::move(slots)),
        passes_(FastestPasses<Step>()) {}

  bool counts_steps() const override {
    return !rate_.is_constant() || requires { Numbers::kCountsSteps; };
  }

  absl::StatusOr<std::uint64_t> ApplyDense(const at::Tensor& gradient, std::int64_t step) override {
    const at::Tensor g = store::ToPlain(gradient);
    return Update(step, [&](const Step& numbers, const at::Tensor& w) {
      const Operands<Step> operands = OperandsOf<Step>(w, g, slots_);
      RunPass(w.numel(), variable_->block_hook(), [&](std::int64_t begin, std::int64_t end) {
        passes_.dense(numbers, operands, begin, end);
      });
    });
  }

  absl::StatusOr<std::uint64_t> ApplySparse(const SparseGradient& gradient,
                                            std::int64_t step) override {
    const SparseGradient summed = SumDuplicates(gradient);
    return Update(step, [&](const Step& numbers, const at::Tensor& w) {
      if constexpr (requires { Numbers::kMovesEveryRow; }) {
        PassEveryRow<Step>(passes_, numbers, w, summed, slots_);
      } else {
        PassTouchedRows<Step>(passes_, numbers, w, summed, slots_);
      }
    });
  }

 private:
  template <typename Pass>
  absl::StatusOr<std::uint64_t> Update(std::int64_t step, const Pass& pass) {
    WEIR_ASSIGN_OR_RETURN(const double rate,
                          RateOf<typename Step::Number>(rate_, step, kRates<Numbers>, *variable_));
    return variable_->Update(use_locking_, [&](const at::Tensor& w) {
      pass(numbers_.At(rate, step), w);
      if constexpr (requires { numbers_.Applied(); }) numbers_.Applied();
    });
  }

  const std::shared_ptr<store::Variable> variable_;
  const bool use_locking_;
  const RateSchedule rate_;
  const Numbers numbers_;
  const SlotTensors<Step> slots_;
  const Passes<Step>& passes_;
};

/// The rule of `numbers` with its slots, in the order of the step's arguments.
template <typename Numbers>
RuleOr MakeElementwise(const RuleContext& context, Numbers numbers,
                       SlotTensors<typename Numbers::Step> slots) {
  if (context.rate.is_constant()) {
    using T = typename Numbers::Step::Number;
    WEIR_RETURN_IF_ERROR(CheckRate<T>(context.rate.At(0), kRates<Numbers>));
  }
  return std::make_unique<ElementwiseRule<Numbers>>(context, std::move(numbers), std::move(slots));
}

}  // namespace weir::optim
