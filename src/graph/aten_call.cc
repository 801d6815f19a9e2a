#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/aten_purity.h"
#include "graph/aten_schema.h"
#include "graph/aten_value.h"
#include "graph/op_registry.h"

namespace weir::graph {
namespace {

using Kind = c10::TypeKind;

// Attributes that an Aten node may have beside the arguments of its operator.
bool IsCommonAttr(std::string_view name) {
  return name == "operator" || name == "overload" || name == "segment";
}

// libtorch's allocator throws a plain Error, which only its text tells from others.
bool IsOutOfMemory(const std::string& text) {
  return text.find("DefaultCPUAllocator") != std::string::npos;
}

}  // namespace

// Goes through the arguments of the schema once, in order, taking inputs and attributes as they
// come.
class AtenCall::Builder {
 public:
  Builder(const Node& node, AtenOperator op, std::optional<at::Device> device)
      : node_(node),
        device_(device),
        num_inputs_(static_cast<std::size_t>(NumDataInputs(node))),
        call_(std::move(op)) {}

  absl::StatusOr<AtenCall> Build() {
    const c10::FunctionSchema& schema = call_.operator_.schema();
    for (const c10::Argument& argument : schema.arguments()) {
      WEIR_RETURN_IF_ERROR(Add(argument));
    }
    if (next_input_ != num_inputs_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "takes ", next_input_, " tensors with these attributes, has ", num_inputs_, " inputs"));
    }
    WEIR_RETURN_IF_ERROR(CheckAllUsed());
    WEIR_RETURN_IF_ERROR(CheckPureCall(
        call_.operator_.handle(),
        [this](const std::string& name) { return !given_.contains(name); },
        [this](const std::string& name) { return ConstantOf(name); }));
    call_.num_inputs_ = num_inputs_;
    call_.context_ = absl::StrCat("node '", node_.name, "' (", schema.name(), ")");
    return std::move(call_);
  }

 private:
  const AttrValue* Attr(const std::string& name) {
    const auto found = node_.attrs.find(name);
    if (found == node_.attrs.end()) return nullptr;
    used_.insert(name);
    return &found->second;
  }

  absl::Status Add(const c10::Argument& argument) {
    const c10::TypePtr type = CoreType(argument);
    if (type->kind() == Kind::TensorType) return AddTensor(argument);
    if (type->kind() == Kind::GeneratorType) return AddGenerator(argument);
    if (type->kind() == Kind::ListType) {
      const c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
      if (element->kind() == Kind::TensorType) return AddList(argument, /*holes=*/false);
      const auto optional = element->cast<c10::OptionalType>();
      if (optional && optional->getElementType()->kind() == Kind::TensorType) {
        return AddList(argument, /*holes=*/true);
      }
    }
    return AddConstant(argument);
  }

  absl::Status AddTensor(const c10::Argument& argument) {
    const bool optional = argument.real_type()->kind() == Kind::OptionalType;
    const std::size_t position = call_.template_.size();
    call_.template_.emplace_back();
    if (const AttrValue* attr = Attr(argument.name())) {
      if (optional && std::holds_alternative<std::monostate>(*attr)) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("argument '", argument.name(),
                                                     "' is a tensor and comes as an input",
                                                     optional ? ", or is None" : ""));
    }
    if (next_input_ == num_inputs_) {
      if (optional) return absl::OkStatus();
      return Missing(argument);
    }
    given_.insert(argument.name());
    call_.tensors_.push_back({.kind = TensorArgument::Kind::kTensor,
                              .optional = optional,
                              .position = position,
                              .first_input = next_input_++,
                              .present = {}});
    return absl::OkStatus();
  }

  absl::Status AddList(const c10::Argument& argument, bool holes) {
    const std::size_t position = call_.template_.size();
    call_.template_.emplace_back();
    const AttrValue* size_attr = Attr(argument.name() + ".size");
    if (size_attr == nullptr) return AddAbsentList(argument);
    const auto* size = std::get_if<std::int64_t>(size_attr);
    if (size == nullptr || *size < 0 ||
        static_cast<std::size_t>(*size) > num_inputs_ - next_input_) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", argument.name(), ".size' must be an int of at most ",
                       num_inputs_ - next_input_, ", the inputs that are left"));
    }
    TensorArgument list{
        .kind = holes ? TensorArgument::Kind::kOptionalList : TensorArgument::Kind::kList,
        .optional = false,
        .position = position,
        .first_input = next_input_,
        .present = std::vector<bool>(static_cast<std::size_t>(*size), true)};
    if (const AttrValue* present = Attr(argument.name() + ".present")) {
      const auto* flags = std::get_if<std::vector<bool>>(present);
      if (!holes || flags == nullptr || std::ranges::count(*flags, true) != *size) {
        return absl::InvalidArgumentError(absl::StrCat(
            "attribute '", argument.name(), ".present' must be a list of bool, of which ", *size,
            " are true, for a list that may have holes"));
      }
      list.present = *flags;
    }
    next_input_ += static_cast<std::size_t>(*size);
    given_.insert(argument.name());
    call_.tensors_.push_back(std::move(list));
    return absl::OkStatus();
  }

  // No size is given: the default, or None.
  absl::Status AddAbsentList(const c10::Argument& argument) {
    if (argument.default_value().has_value()) {
      call_.template_.back() = *argument.default_value();
      return absl::OkStatus();
    }
    if (argument.real_type()->kind() != Kind::OptionalType) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument '", argument.name(),
                       "' is a list of tensors, whose length must be the int "
                       "attribute '",
                       argument.name(), ".size'"));
    }
    const AttrValue* attr = Attr(argument.name());
    if (attr != nullptr && std::holds_alternative<std::monostate>(*attr)) return absl::OkStatus();
    return Missing(argument);
  }

  absl::Status AddGenerator(const c10::Argument& argument) {
    const AttrValue* attr = Attr(argument.name());
    if (attr != nullptr && !std::holds_alternative<std::monostate>(*attr)) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument '", argument.name(),
                       "' is a generator, which every step gets from the graph's seed"));
    }
    call_.generator_position_ = static_cast<int>(call_.template_.size());
    call_.template_.emplace_back();
    return absl::OkStatus();
  }

  absl::Status AddConstant(const c10::Argument& argument) {
    if (const AttrValue* attr = Attr(argument.name())) {
      WEIR_ASSIGN_OR_RETURN(c10::IValue value, ToArgument(*attr, argument));
      call_.template_.push_back(std::move(value));
    } else if (argument.default_value().has_value()) {
      call_.template_.push_back(*argument.default_value());
    } else if (argument.real_type()->kind() == Kind::OptionalType && IsPlacement(argument)) {
      call_.template_.emplace_back();
    } else {
      return Missing(argument);
    }
    if (device_.has_value() && CoreType(argument)->kind() == Kind::DeviceObjType) {
      call_.template_.back() = *device_;
    }
    return absl::OkStatus();
  }

  absl::Status CheckAllUsed() const {
    for (const auto& [name, value] : node_.attrs) {
      if (!used_.contains(name) && !IsCommonAttr(name)) {
        return absl::InvalidArgumentError(absl::StrCat("has no argument '", name, "'"));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Missing(const c10::Argument& argument) {
    return absl::InvalidArgumentError(absl::StrCat("argument '", argument.name(), "' (",
                                                   argument.real_type()->str(), ") is missing"));
  }

  c10::IValue ConstantOf(const std::string& name) const {
    const auto& arguments = call_.operator_.schema().arguments();
    const auto found = std::ranges::find(arguments, name, &c10::Argument::name);
    if (found == arguments.end()) return {};
    return call_.template_[static_cast<std::size_t>(found - arguments.begin())];
  }

  const Node& node_;
  const std::optional<at::Device> device_;
  const std::size_t num_inputs_;
  std::size_t next_input_ = 0;
  std::set<std::string> used_;   // attributes
  std::set<std::string> given_;  // tensor arguments that are not None
  AtenCall call_;
};

absl::StatusOr<AtenCall> AtenCall::Build(const Node& node, std::optional<at::Device> device) {
  WEIR_ASSIGN_OR_RETURN(const std::string name, GetAttr<std::string>(node, "operator"));
  const std::string context = absl::StrCat("node '", node.name, "'");
  absl::StatusOr<AtenOperator> op =
      AtenOperator::Find(name, AttrOr<std::string>(node, "overload", ""));
  if (!op.ok()) return Annotate(op.status(), context);
  const std::string schema = op->SchemaText();
  absl::StatusOr<AtenCall> call = Builder(node, *std::move(op), device).Build();
  if (call.ok()) return call;
  const std::string message(call.status().message());
  // What the purity check says has the schema already.
  if (message.find(schema) != std::string::npos) return Annotate(call.status(), context);
  return absl::InvalidArgumentError(
      absl::StrCat(context, ": ", message, " (schema: ", schema, ")"));
}

absl::Status AtenCall::AbsentInput(const TensorArgument& argument) const {
  const std::string& name = operator_.schema().arguments()[argument.position].name();
  return absl::InvalidArgumentError(absl::StrCat(
      context_, ": argument '", name,
      "' is absent; a gradient is when what was differentiated does not depend on the tensor"));
}

c10::IValue AtenCall::MakeList(const TensorArgument& argument,
                               const std::vector<at::Tensor>& inputs) {
  std::size_t next = argument.first_input;
  if (argument.kind == TensorArgument::Kind::kList) {
    c10::List<at::Tensor> list;
    list.reserve(argument.present.size());
    for (std::size_t i = 0; i < argument.present.size(); ++i) list.push_back(inputs[next++]);
    return list;
  }
  c10::impl::GenericList list(c10::OptionalType::ofTensor());
  list.reserve(argument.present.size());
  for (bool present : argument.present) {
    if (present && inputs[next].defined()) {
      list.push_back(c10::IValue(inputs[next]));
    } else {
      list.push_back(c10::IValue());
    }
    if (present) ++next;
  }
  return list;
}

absl::Status AtenCall::Run(const std::vector<at::Tensor>& inputs, const at::Generator* generator,
                           std::vector<at::Tensor>& outputs) const {
  WEIR_CHECK(inputs.size() == num_inputs_);
  if (needs_generator()) WEIR_CHECK(generator != nullptr);
  torch::jit::Stack stack;
  stack.reserve(std::max(template_.size(), operator_.schema().returns().size()));
  for (const c10::IValue& argument : template_) stack.push_back(argument);
  for (const TensorArgument& argument : tensors_) {
    if (argument.kind != TensorArgument::Kind::kTensor) {
      stack[argument.position] = MakeList(argument, inputs);
      continue;
    }
    const at::Tensor& input = inputs[argument.first_input];
    if (input.defined()) {
      stack[argument.position] = input;
    } else if (!argument.optional) {
      return AbsentInput(argument);
    }
  }
  if (needs_generator() && generator->defined()) {
    stack[static_cast<std::size_t>(generator_position_)] = *generator;
  }
  try {
    operator_.handle().callBoxed(stack);
  } catch (const c10::Error& error) {
    // what() would look up the symbols of a stack that nobody reads, for 20 ms.
    const std::string text = absl::StrCat(context_, ": ", error.what_without_backtrace());
    return IsOutOfMemory(text) ? absl::ResourceExhaustedError(text)
                               : absl::InvalidArgumentError(text);
  } catch (...) {
    return CurrentExceptionToStatus(absl::StatusCode::kInvalidArgument, context_);
  }
  outputs.clear();
  outputs.reserve(stack.size());
  for (c10::IValue& value : stack) {
    if (value.isTensor()) {
      outputs.push_back(std::move(value).toTensor());
    } else {
      for (const at::Tensor& tensor : value.toTensorVector()) outputs.push_back(tensor);
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::graph
