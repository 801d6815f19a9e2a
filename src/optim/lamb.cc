#include <ATen/Functions.h>

#include <utility>

#include "optim/adam_state.h"
#include "optim/elementwise_rule.h"

namespace weir {

Lamb::operator OptimizerSpec() const {
  return {.rule = "LAMB",
          .learning_rate = learning_rate,
          .hyperparameters = {{"beta1", beta1},
                              {"beta2", beta2},
                              {"epsilon", epsilon},
                              {"weight_decay", weight_decay}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

struct LambNumbers {
  BetaPowers powers;
  double epsilon;
  double weight_decay;
};

double Norm(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor, 2, std::nullopt, false, at::kDouble).item<double>();
}

double TrustRatio(const at::Tensor& w, const at::Tensor& direction) {
  const double numerator = Norm(w);
  const double denominator = Norm(direction);
  return numerator > 0 && denominator > 0 ? numerator / denominator : 1;
}

// The direction is whole before any weight moves, since its norm decides how far: two passes, the
// first into a tensor of this update's own.
template <typename T>
class LambRule final : public UpdateRule {
 public:
  using Step = LambDirectionStep<T>;

  LambRule(const RuleContext& context, LambNumbers numbers, SlotTensors<Step> slots)
      : variable_(context.variable),
        use_locking_(context.spec.use_locking),
        rate_(context.rate),
        numbers_(std::move(numbers)),
        slots_(std::move(slots)),
        direction_passes_(FastestPasses<Step>()),
        move_passes_(FastestPasses<SgdStep<T>>()) {}

  bool counts_steps() const override { return !rate_.is_constant(); }

  absl::StatusOr<std::uint64_t> ApplyDense(const at::Tensor& gradient, std::int64_t step) override {
    const at::Tensor g = store::ToPlain(gradient);
    return Update(step, [&](const Step& numbers, const at::Tensor& direction) {
      const Operands<Step> operands = OperandsOf<Step>(direction, g, slots_);
      RunPass(g.numel(), variable_->block_hook(), [&](std::int64_t begin, std::int64_t end) {
        direction_passes_.dense(numbers, operands, begin, end);
      });
    });
  }

  absl::StatusOr<std::uint64_t> ApplySparse(const SparseGradient& gradient,
                                            std::int64_t step) override {
    const SparseGradient summed = SumDuplicates(gradient);
    return Update(step, [&](const Step& numbers, const at::Tensor& direction) {
      PassEveryRow<Step>(direction_passes_, numbers, direction, summed, slots_);
    });
  }

 private:
  // Of one t: asked once for each update, as others may count theirs meanwhile.
  Step DirectionStep() const {
    return {.moments = numbers_.powers.moments<T>(),
            .m_scale = static_cast<T>(1 / numbers_.powers.one_minus_power1()),
            .v_scale = static_cast<T>(1 / numbers_.powers.one_minus_power2()),
            .epsilon = static_cast<T>(numbers_.epsilon),
            .weight_decay = static_cast<T>(numbers_.weight_decay)};
  }

  template <typename Direct>
  absl::StatusOr<std::uint64_t> Update(std::int64_t step, const Direct& direct) {
    WEIR_ASSIGN_OR_RETURN(const double rate, RateOf<T>(rate_, step, RateKind::kAny, *variable_));
    return variable_->Update(use_locking_, [&](const at::Tensor& w) {
      const at::Tensor direction = w.clone();
      direct(DirectionStep(), direction);
      Move(w, direction, rate * TrustRatio(w, direction));
      numbers_.powers.Advance();
    });
  }

  void Move(const at::Tensor& w, const at::Tensor& direction, double rate) const {
    const SgdStep<T> move{.minus_lr = static_cast<T>(-rate)};
    const Operands<SgdStep<T>> operands = OperandsOf<SgdStep<T>>(w, direction, {});
    RunPass(w.numel(), variable_->block_hook(), [&](std::int64_t begin, std::int64_t end) {
      move_passes_.dense(move, operands, begin, end);
    });
  }

  const std::shared_ptr<store::Variable> variable_;
  const bool use_locking_;
  const RateSchedule rate_;
  const LambNumbers numbers_;
  const SlotTensors<Step> slots_;
  const Passes<Step>& direction_passes_;
  const Passes<SgdStep<T>>& move_passes_;
};

}  // namespace

RuleOr MakeLamb(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(
      const auto values,
      (TakeHyperparameters<4>(context, {"beta1", "beta2", "epsilon", "weight_decay"})));
  const auto [beta1, beta2, epsilon, weight_decay] = values;
  WEIR_RETURN_IF_ERROR(CheckNotNegative("epsilon", epsilon));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("weight_decay", weight_decay));
  WEIR_ASSIGN_OR_RETURN(BetaPowers powers, BetaPowers::Make(context, beta1, beta2));
  WEIR_ASSIGN_OR_RETURN(auto slots, MakeMoments(context));
  LambNumbers numbers{std::move(powers), epsilon, weight_decay};
  return MakeForDtype(context, [&]<typename T>() -> RuleOr {
    return std::make_unique<LambRule<T>>(context, std::move(numbers), std::move(slots));
  });
}

}  // namespace optim
}  // namespace weir
