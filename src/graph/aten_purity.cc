#include "graph/aten_purity.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::graph {
namespace {

// Operators that overwrite running_mean and running_var, which their schemas do not say
// (native_functions.yaml of libtorch: "NB: this op mutates its running statistics").
constexpr auto kStatisticsWriters = std::to_array<std::string_view>({
    "aten::_batch_norm_impl_index",
    "aten::batch_norm",
    "aten::batch_norm_gather_stats",
    "aten::batch_norm_gather_stats_with_counts",
    "aten::batch_norm_update_stats",
    "aten::cudnn_batch_norm",
    "aten::instance_norm",
    "aten::miopen_batch_norm",
    "aten::native_batch_norm",
});

// Flags under which those operators write; one that has none of them always does.
constexpr auto kTrainingFlags =
    std::to_array<std::string_view>({"training", "train", "use_input_stats"});

// Names of the probability of dropout, in operators that do more than drop.
constexpr auto kDropoutRates = std::to_array<std::string_view>({"dropout", "dropout_p"});

struct Refusal {
  std::string_view op;
  std::string_view reason;
};

constexpr std::string_view kUninitialised =
    "its result is whatever was in memory; use aten::zeros, aten::zeros_like or aten::new_zeros";
constexpr auto kRefused = std::to_array<Refusal>({
    {"aten::_empty_affine_quantized", kUninitialised},
    {"aten::_empty_per_channel_affine_quantized", kUninitialised},
    {"aten::empty", kUninitialised},
    {"aten::empty_like", kUninitialised},
    {"aten::empty_permuted", kUninitialised},
    {"aten::empty_quantized", kUninitialised},
    {"aten::empty_strided", kUninitialised},
    {"aten::new_empty", kUninitialised},
    {"aten::new_empty_strided", kUninitialised},
    {"aten::resize", kUninitialised},
    {"aten::resize_as", kUninitialised},
    {"aten::from_file", "it reads a file that its task may not have; feed its content"},
    {"aten::dropout", "it draws random numbers without a generator; use weir::ops::dropout"},
    {"aten::native_dropout", "it draws random numbers without a generator; use weir::ops::dropout"},
});

std::string SchemaText(const c10::OperatorHandle& op) {
  std::ostringstream text;
  text << op.schema();
  return text.str();
}

absl::Status Refuse(const c10::OperatorHandle& op, std::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("operator '", op.schema().name(),
                                                 "' cannot be a node: ", std::string(reason),
                                                 " (schema: ", SchemaText(op), ")"));
}

const c10::Argument* FindArgument(const c10::OperatorHandle& op, std::string_view name) {
  const auto& arguments = op.schema().arguments();
  const auto found = std::ranges::find(arguments, name, &c10::Argument::name);
  return found == arguments.end() ? nullptr : &*found;
}

template <typename Names>
const c10::Argument* FindOneOf(const c10::OperatorHandle& op, const Names& names) {
  for (std::string_view name : names) {
    if (const c10::Argument* argument = FindArgument(op, name)) return argument;
  }
  return nullptr;
}

bool TakesGenerator(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    c10::TypePtr type = argument.real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    return type->kind() == c10::TypeKind::GeneratorType;
  });
}

bool DrawsUnseeded(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded) && !TakesGenerator(op.schema());
}

// Most random operators have an overload that takes a generator beside the one that does not.
absl::Status RefuseUnseeded(const c10::OperatorHandle& op) {
  std::string reason = "it draws random numbers without a generator";
  for (const c10::OperatorName& other : c10::Dispatcher::singleton().getAllOpNames()) {
    if (other.name != op.schema().name()) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(other);
    if (!handle.has_value() || handle->schema().is_mutable() || !TakesGenerator(handle->schema())) {
      continue;
    }
    absl::StrAppend(&reason, "; its overload '", other.overload_name, "' takes one");
  }
  return Refuse(op, reason);
}

bool IsTensorOrList(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return true;
  const auto list = type->cast<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == c10::TypeKind::TensorType;
}

absl::Status CheckReturns(const c10::OperatorHandle& op) {
  const auto& returns = op.schema().returns();
  if (returns.empty()) return Refuse(op, "it returns nothing, so it is run for its side effects");
  for (const c10::Argument& output : returns) {
    if (!IsTensorOrList(output.type())) {
      return Refuse(op,
                    absl::StrCat("it returns a ", output.type()->str(), ", which is no tensor"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPure(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  if (schema.is_mutable()) {
    return Refuse(op, "it writes to its arguments; take the variant that returns its result");
  }
  if (schema.is_vararg() || schema.is_varret()) return Refuse(op, "its arguments have no types");
  const auto* refused = std::ranges::find(kRefused, std::string_view(schema.name()), &Refusal::op);
  if (refused != kRefused.end()) return Refuse(op, refused->reason);
  if (DrawsUnseeded(op) && FindOneOf(op, kDropoutRates) == nullptr) return RefuseUnseeded(op);
  return CheckReturns(op);
}

absl::Status CheckPureCall(const c10::OperatorHandle& op,
                           const std::function<bool(const std::string&)>& is_none,
                           const std::function<c10::IValue(const std::string&)>& value) {
  const auto is_off = [&](const c10::Argument* flag) {
    if (flag == nullptr) return false;
    const c10::IValue constant = value(flag->name());
    return constant.isBool() && !constant.toBool();
  };
  const c10::Argument* training = FindOneOf(op, kTrainingFlags);
  const bool writes_statistics =
      std::ranges::find(kStatisticsWriters, std::string_view(op.schema().name())) !=
      kStatisticsWriters.end();
  if (writes_statistics && !is_off(training) &&
      !(is_none("running_mean") && is_none("running_var"))) {
    return Refuse(op,
                  "it overwrites running_mean and running_var, though its schema does not say so; "
                  "use aten::_native_batch_norm_legit_functional, which returns the new ones, and "
                  "Assign them, or give None for both");
  }
  if (DrawsUnseeded(op) && !is_off(training)) {
    const c10::IValue rate = value(FindOneOf(op, kDropoutRates)->name());
    if (!rate.isDouble() || rate.toDouble() != 0) {
      return Refuse(op,
                    "its dropout draws random numbers without a generator; give it 0 and put "
                    "weir::ops::dropout behind it");
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::graph
