// Kernels of a training step: tickets, updates, the count of steps.
#include <ATen/Functions.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"
#include "optim/spec_attrs.h"
#include "optim/update_rule.h"

namespace weir::executor {
namespace {

using store::Variable;

/// Where an Apply learns which version its gradient was computed from.
struct GradientVersion {
  bool known = false;
  /// Noted here by the variable's Read; kNone: the gradient brings it, echoed by its sender.
  std::uint32_t version_slot = kNone;
};

/// Where an Apply's inputs are: handle, gradient (the values of a sparse one), then what it has of
/// indices and the number of the step.
struct ApplyInputs {
  bool is_sparse = false;
  bool has_step = false;
  static constexpr std::size_t kGradient = 1;
  static constexpr std::size_t kIndices = 2;
  std::size_t step() const { return is_sparse ? 3 : 2; }
  int count() const { return 2 + static_cast<int>(is_sparse) + static_cast<int>(has_step); }
};

// Steps are numbered from 1; rules want to know how many came before.
absl::StatusOr<std::int64_t> StepsBefore(const at::Tensor& step) {
  if (!step.defined() || step.scalar_type() != at::kLong || step.numel() != 1)
    return absl::InvalidArgumentError("the number of the step is no int64 scalar");
  const auto number = step.item<std::int64_t>();
  if (number < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("the number of the step is ", number, "; the first is 1"));
  return number - 1;
}

class ApplyKernel final : public Kernel {
 public:
  ApplyKernel(std::shared_ptr<Variable> variable, std::unique_ptr<optim::UpdateRule> rule,
              ApplyInputs inputs, GradientVersion version)
      : variable_(std::move(variable)),
        rule_(std::move(rule)),
        inputs_(inputs),
        version_(version) {}

  absl::Status Run(NodeContext& context) const override {
    if (!context.input(ApplyInputs::kGradient).tensor.defined()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const std::int64_t step, StepOf(context));
    WEIR_ASSIGN_OR_RETURN(const std::uint64_t before, Apply(context, step));
    if (!version_.known) return absl::OkStatus();
    const std::uint64_t computed_from = version_.version_slot == kNone
                                            ? context.input(ApplyInputs::kGradient).version
                                            : context.version(version_.version_slot);
    // kNoVersion, or anything that a peer may echo: what lies in the future is no staleness.
    if (computed_from <= before) variable_->staleness().Record(before - computed_from);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::uint64_t> Apply(NodeContext& context, std::int64_t step) const {
    const at::Tensor& gradient = context.input(ApplyInputs::kGradient).tensor;
    if (inputs_.is_sparse) {
      WEIR_ASSIGN_OR_RETURN(const optim::SparseGradient sparse,
                            optim::CheckSparseGradient(
                                *variable_, context.input(ApplyInputs::kIndices).tensor, gradient));
      return rule_->ApplySparse(sparse, step);
    }
    WEIR_RETURN_IF_ERROR(optim::CheckGradient(*variable_, gradient));
    return rule_->ApplyDense(gradient, step);
  }

  absl::StatusOr<std::int64_t> StepOf(const NodeContext& context) const {
    if (!inputs_.has_step) return 0;
    return StepsBefore(context.input(inputs_.step()).tensor);
  }

  const std::shared_ptr<Variable> variable_;
  const std::unique_ptr<optim::UpdateRule> rule_;
  const ApplyInputs inputs_;
  const GradientVersion version_;
};

/// Moves one variable towards another one beside it, which is read where it lies.
class AverageKernel final : public Kernel {
 public:
  AverageKernel(std::shared_ptr<Variable> variable, std::unique_ptr<optim::UpdateRule> rule,
                bool has_step)
      : variable_(std::move(variable)), rule_(std::move(rule)), has_step_(has_step) {}

  absl::Status Run(NodeContext& context) const override {
    std::int64_t step = 0;
    if (has_step_) {
      WEIR_ASSIGN_OR_RETURN(step, StepsBefore(context.input(2).tensor));
    }
    WEIR_ASSIGN_OR_RETURN(const store::Snapshot value, variable_->Read());
    return rule_->ApplyDense(value.tensor, step).status();
  }

 private:
  const std::shared_ptr<Variable> variable_;
  const std::unique_ptr<optim::UpdateRule> rule_;
  const bool has_step_;
};

class TicketKernel final : public Kernel {
 public:
  TicketKernel(std::shared_ptr<Variable> variable, std::int64_t limit)
      : variable_(std::move(variable)), limit_(limit) {}

  absl::Status Run(NodeContext& context) const override {
    variable_->tickets().Request(
        context.step().id(), limit_,
        [done = context.Defer()](const absl::StatusOr<std::uint64_t>& ticket) {
          if (ticket.ok()) {
            done(Value{{}, *ticket});
          } else {
            done(ticket.status());
          }
        });
    return absl::OkStatus();
  }

  absl::Status Accept(NodeContext& context, Value value) const override {
    context.step().HoldTicket(value.version);
    const auto ticket = static_cast<std::int64_t>(value.version);
    context.SetOutput(0, {.tensor = at::scalar_tensor(ticket, at::kLong)});
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Variable> variable_;
  const std::int64_t limit_;
};

class CompleteStepKernel final : public Kernel {
 public:
  explicit CompleteStepKernel(std::shared_ptr<Variable> variable)
      : variable_(std::move(variable)), one_(at::ones({}, variable_->def().initializer.dtype)) {}

  // The variable first: who is told that the last step has completed finds it counted.
  absl::Status Run(NodeContext& context) const override {
    WEIR_RETURN_IF_ERROR(variable_->AssignAdd(one_, /*use_locking=*/false).status());
    variable_->tickets().Complete(context.step().id());
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Variable> variable_;
  const at::Tensor one_;
};

// Does what `edge` brings come from another device, directly or summed here?
bool IsReceived(const CompileContext& context, const Edge& edge) {
  const Node& node = context.node(edge.node);
  if (node.op == "Recv") return true;
  constexpr std::string_view kPassOn[] = {"Identity", "SumGradients", "SumRows",
                                          "AddRows",  "Split",        "ClipGradients"};
  if (std::ranges::find(kPassOn, node.op) == std::end(kPassOn)) return false;
  const int inputs = graph::NumDataInputs(node);
  for (int i = 0; i < inputs; ++i) {
    if (!IsReceived(context, node.inputs[static_cast<std::size_t>(i)])) return false;
  }
  return inputs > 0;
}

GradientVersion GradientVersionOf(CompileContext& context, const Node& apply) {
  const int read = context.ReadOf(apply);
  if (read < 0) return {};
  if (IsReceived(context, apply.inputs[1])) return {.known = true, .version_slot = kNone};
  return {.known = true, .version_slot = context.VersionSlotOf(read)};
}

absl::StatusOr<std::unique_ptr<optim::UpdateRule>> RuleFor(
    const Node& node, const std::shared_ptr<Variable>& variable, bool has_step) {
  WEIR_ASSIGN_OR_RETURN(const OptimizerSpec spec, optim::SpecFromAttrs(node.attrs));
  WEIR_ASSIGN_OR_RETURN(
      std::unique_ptr<optim::UpdateRule> rule,
      optim::MakeUpdateRule(spec, graph::AttrOr(node, "scope", spec.rule), variable));
  if (rule->counts_steps() && !has_step) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.rule, " needs the number of the training step, which nothing gives it"));
  }
  return rule;
}

absl::StatusOr<std::shared_ptr<Variable>> CounterOf(CompileContext& context, const Node& node) {
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  if (!variable->def().initializer.shape.empty() ||
      variable->def().initializer.dtype != at::kLong) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", variable->def().name, "' does not count steps: it is no int64 scalar"));
  }
  return variable;
}

}  // namespace

KernelOr MakeApply(CompileContext& context, const Node& node) {
  const ApplyInputs inputs{.is_sparse = graph::AttrOr(node, "sparse", false),
                           .has_step = graph::AttrOr(node, "step", false)};
  WEIR_RETURN_IF_ERROR(CheckArity(node, inputs.count(), 0));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<optim::UpdateRule> rule,
                        RuleFor(node, variable, inputs.has_step));
  const GradientVersion version = GradientVersionOf(context, node);
  return std::make_unique<ApplyKernel>(std::move(variable), std::move(rule), inputs, version);
}

KernelOr MakeAverage(CompileContext& context, const Node& node) {
  const bool has_step = graph::AttrOr(node, "step", false);
  WEIR_RETURN_IF_ERROR(CheckArity(node, has_step ? 3 : 2, 0));
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> average, context.VariableOf(node));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node, 1));
  const Initializer& like = average->def().initializer;
  if (variable->def().initializer.dtype != like.dtype ||
      variable->def().initializer.shape != like.shape) {
    return absl::InvalidArgumentError(absl::StrCat("variables '", average->def().name, "' and '",
                                                   variable->def().name,
                                                   "' differ in dtype or shape"));
  }
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<optim::UpdateRule> rule, RuleFor(node, average, has_step));
  return std::make_unique<AverageKernel>(std::move(variable), std::move(rule), has_step);
}

KernelOr MakeTicket(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 1, 1));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, CounterOf(context, node));
  WEIR_ASSIGN_OR_RETURN(const auto limit, graph::GetAttr<std::int64_t>(node, "limit"));
  context.program().ticket_counters.push_back(variable);
  return std::make_unique<TicketKernel>(std::move(variable), limit);
}

KernelOr MakeCompleteStep(CompileContext& context, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 1, 0));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, CounterOf(context, node));
  return std::make_unique<CompleteStepKernel>(std::move(variable));
}

}  // namespace weir::executor
