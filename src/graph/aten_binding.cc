#include "graph/aten_binding.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/aten_value.h"

namespace weir::graph {
namespace {

using Kind = c10::TypeKind;

Edge ToEdge(const Output& output) {
  return {output.node(), output.index()};
}

bool IsTensorList(const c10::Argument& argument) {
  const auto list = CoreType(argument)->cast<c10::ListType>();
  if (list == nullptr) return false;
  c10::TypePtr element = list->getElementType();
  if (const auto optional = element->cast<c10::OptionalType>())
    element = optional->getElementType();
  return element->kind() == Kind::TensorType;
}

bool MayHaveHoles(const c10::Argument& argument) {
  const auto list = CoreType(argument)->cast<c10::ListType>();
  return list != nullptr && list->getElementType()->kind() == Kind::OptionalType;
}

bool IsOptional(const c10::Argument& argument) {
  return argument.real_type()->kind() == Kind::OptionalType;
}

absl::Status Wrong(const c10::Argument& argument, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("argument '", argument.name(), "' takes ",
                                                 argument.real_type()->str(), ", not ", what));
}

const char* Describe(const AtenArg& arg) {
  if (std::holds_alternative<Output>(arg)) return "a tensor";
  if (std::holds_alternative<std::vector<Output>>(arg)) return "a list of tensors";
  if (std::holds_alternative<std::monostate>(std::get<AttrValue>(arg))) return "None";
  return "an attribute";
}

bool IsNone(const AtenArg& arg) {
  if (const auto* output = std::get_if<Output>(&arg)) return !output->valid();
  const auto* value = std::get_if<AttrValue>(&arg);
  return value != nullptr && std::holds_alternative<std::monostate>(*value);
}

absl::Status BindTensor(const c10::Argument& argument, const AtenArg* arg, Node& node) {
  if (arg == nullptr || IsNone(*arg)) {
    if (IsOptional(argument)) {
      node.attrs[argument.name()] = std::monostate();
      return absl::OkStatus();
    }
    return arg == nullptr ? absl::InvalidArgumentError(
                                absl::StrCat("argument '", argument.name(), "' is missing"))
                          : Wrong(argument, "None");
  }
  const auto* output = std::get_if<Output>(arg);
  if (output == nullptr) return Wrong(argument, Describe(*arg));
  node.inputs.push_back(ToEdge(*output));
  return absl::OkStatus();
}

absl::Status BindList(const c10::Argument& argument, const AtenArg* arg, Node& node) {
  if (arg == nullptr) return absl::OkStatus();  // its default, or AtenCall says what is missing
  if (IsNone(*arg)) {
    if (!IsOptional(argument)) return Wrong(argument, "None");
    node.attrs[argument.name()] = std::monostate();
    return absl::OkStatus();
  }
  const auto* outputs = std::get_if<std::vector<Output>>(arg);
  if (outputs == nullptr) return Wrong(argument, Describe(*arg));
  std::vector<bool> present;
  std::int64_t size = 0;
  for (const Output& output : *outputs) {
    present.push_back(output.valid());
    if (!output.valid()) continue;
    node.inputs.push_back(ToEdge(output));
    ++size;
  }
  node.attrs[argument.name() + ".size"] = size;
  if (static_cast<std::size_t>(size) == present.size()) return absl::OkStatus();
  if (!MayHaveHoles(argument)) return Wrong(argument, "a list with absent tensors");
  node.attrs[argument.name() + ".present"] = std::move(present);
  return absl::OkStatus();
}

absl::Status BindAttribute(const c10::Argument& argument, const AtenArg* arg, Node& node) {
  if (arg == nullptr) return absl::OkStatus();
  if (IsNone(*arg)) {
    node.attrs[argument.name()] = std::monostate();
    return absl::OkStatus();
  }
  const auto* value = std::get_if<AttrValue>(arg);
  if (value == nullptr) return Wrong(argument, Describe(*arg));
  node.attrs[argument.name()] = *value;
  return absl::OkStatus();
}

absl::Status Bind(const c10::Argument& argument, const AtenArg* arg, Node& node) {
  if (CoreType(argument)->kind() == Kind::TensorType) return BindTensor(argument, arg, node);
  if (IsTensorList(argument)) return BindList(argument, arg, node);
  return BindAttribute(argument, arg, node);
}

}  // namespace

absl::Status BindArguments(const AtenOperator& op, const std::vector<AtenArg>& args, Node& node) {
  const auto& arguments = op.schema().arguments();
  const auto in_schema = [&](const absl::Status& status) {
    return status.ok() ? status
                       : absl::InvalidArgumentError(absl::StrCat(
                             std::string(status.message()), " (schema: ", op.SchemaText(), ")"));
  };
  if (args.size() > arguments.size()) {
    return in_schema(absl::InvalidArgumentError(
        absl::StrCat(args.size(), " arguments are given, ", arguments.size(), " are taken")));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    WEIR_RETURN_IF_ERROR(in_schema(Bind(arguments[i], i < args.size() ? &args[i] : nullptr, node)));
  }
  return absl::OkStatus();
}

}  // namespace weir::graph
