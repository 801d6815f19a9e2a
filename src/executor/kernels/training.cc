// Kernels of a training step: tickets, updates, the count of steps.
#include <ATen/Functions.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"
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

class ApplyKernel final : public Kernel {
 public:
  ApplyKernel(std::shared_ptr<Variable> variable, std::unique_ptr<optim::UpdateRule> rule,
              GradientVersion version)
      : variable_(std::move(variable)), rule_(std::move(rule)), version_(version) {}

  absl::Status Run(NodeContext& context) const override {
    const Value& gradient = context.input(1);
    if (!gradient.tensor.defined()) return absl::OkStatus();
    WEIR_RETURN_IF_ERROR(optim::CheckGradient(*variable_, gradient.tensor));
    WEIR_ASSIGN_OR_RETURN(const std::uint64_t before, rule_->ApplyDense(gradient.tensor));
    if (!version_.known) return absl::OkStatus();
    const std::uint64_t computed_from =
        version_.version_slot == kNone ? gradient.version : context.version(version_.version_slot);
    // kNoVersion, or anything that a peer may echo: what lies in the future is no staleness.
    if (computed_from <= before) variable_->staleness().Record(before - computed_from);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Variable> variable_;
  const std::unique_ptr<optim::UpdateRule> rule_;
  const GradientVersion version_;
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

absl::StatusOr<OptimizerSpec> SpecOf(const Node& node) {
  constexpr std::string_view kPrefix = "hyper.";
  OptimizerSpec spec;
  WEIR_ASSIGN_OR_RETURN(spec.rule, graph::GetAttr<std::string>(node, "rule"));
  spec.use_locking = graph::AttrOr(node, "use_locking", false);
  for (const auto& [name, value] : node.attrs) {
    if (!name.starts_with(kPrefix)) continue;
    const auto* number = std::get_if<double>(&value);
    if (number == nullptr) return absl::InvalidArgumentError(absl::StrCat(name, " is no number"));
    spec.hyperparameters[name.substr(kPrefix.size())] = *number;
  }
  return spec;
}

// Does what `edge` brings come from another device, directly or summed here?
bool IsReceived(const CompileContext& context, const Edge& edge) {
  const Node& node = context.node(edge.node);
  if (node.op == "Recv") return true;
  if (node.op != "Identity" && node.op != "SumGradients") return false;
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
  WEIR_RETURN_IF_ERROR(CheckArity(node, 2, 0));
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, context.VariableOf(node));
  WEIR_ASSIGN_OR_RETURN(const OptimizerSpec spec, SpecOf(node));
  WEIR_ASSIGN_OR_RETURN(
      std::unique_ptr<optim::UpdateRule> rule,
      optim::MakeUpdateRule(spec, graph::AttrOr(node, "scope", spec.rule), variable));
  const GradientVersion version = GradientVersionOf(context, node);
  return std::make_unique<ApplyKernel>(std::move(variable), std::move(rule), version);
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
