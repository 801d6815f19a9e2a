#include "graph/aten_value.h"

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <c10/core/MemoryFormat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/op_registry.h"

namespace weir::graph {
namespace {

using Kind = c10::TypeKind;
using Converted = std::optional<c10::IValue>;  // nullopt: not of that type

bool IsOptional(const c10::Argument& argument) {
  return argument.real_type()->kind() == Kind::OptionalType;
}

Converted ToInt(const AttrValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  return std::nullopt;
}

std::optional<double> AsDouble(const AttrValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

Converted ToFloat(const AttrValue& value) {
  if (const auto number = AsDouble(value)) return *number;
  return std::nullopt;
}

Converted ToBool(const AttrValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return std::nullopt;
}

// A Scalar: any number, or a truth value.
Converted ToScalar(const AttrValue& value) {
  if (Converted number = ToInt(value)) return number;
  if (Converted number = ToFloat(value)) return number;
  return ToBool(value);
}

Converted ToString(const AttrValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return std::nullopt;
}

Converted ToDtype(const AttrValue& value) {
  const auto* dtype = std::get_if<at::ScalarType>(&value);
  if (dtype == nullptr || *dtype < static_cast<at::ScalarType>(0) ||
      *dtype >= at::ScalarType::Undefined) {
    return std::nullopt;
  }
  return *dtype;
}

Converted ToMemoryFormat(const AttrValue& value) {
  const auto* name = std::get_if<std::string>(&value);
  if (name == nullptr) return std::nullopt;
  if (*name == "contiguous_format") return at::MemoryFormat::Contiguous;
  if (*name == "preserve_format") return at::MemoryFormat::Preserve;
  if (*name == "channels_last") return at::MemoryFormat::ChannelsLast;
  if (*name == "channels_last_3d") return at::MemoryFormat::ChannelsLast3d;
  return std::nullopt;
}

// `length`: of a list that one number may stand for.
Converted ToInts(const AttrValue& value, std::optional<std::int32_t> length) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  const auto* one = std::get_if<std::int64_t>(&value);
  if (one == nullptr || !length) return std::nullopt;
  return std::vector<std::int64_t>(static_cast<std::size_t>(*length), *one);
}

Converted ToFloats(const AttrValue& value, std::optional<std::int32_t> length) {
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return *list;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    return std::vector<double>(list->begin(), list->end());
  }
  const auto one = AsDouble(value);
  if (!one || !length) return std::nullopt;
  return std::vector<double>(static_cast<std::size_t>(*length), *one);
}

Converted ToBools(const AttrValue& value, std::optional<std::int32_t> length) {
  const auto* given = std::get_if<std::vector<bool>>(&value);
  if (given == nullptr || (length && given->size() != static_cast<std::size_t>(*length))) {
    return std::nullopt;
  }
  c10::List<bool> list;
  for (bool flag : *given) list.push_back(flag);
  return c10::IValue(std::move(list));
}

Converted ToStrings(const AttrValue& value) {
  const auto* given = std::get_if<std::vector<std::string>>(&value);
  if (given == nullptr) return std::nullopt;
  return c10::IValue(c10::List<std::string>(c10::ArrayRef<std::string>(*given)));
}

Converted ToScalars(const AttrValue& value) {
  c10::impl::GenericList list(c10::NumberType::get());
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (std::int64_t number : *numbers) list.emplace_back(number);
  } else if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
    for (double number : *floats) list.emplace_back(number);
  } else {
    return std::nullopt;
  }
  return c10::IValue(list);
}

Converted ToList(const AttrValue& value, const c10::TypePtr& element,
                 std::optional<std::int32_t> length) {
  switch (element->kind()) {
    case Kind::IntType:
    case Kind::SymIntType:
      return ToInts(value, length);
    case Kind::FloatType:
      return ToFloats(value, length);
    case Kind::BoolType:
      return ToBools(value, length);
    case Kind::StringType:
      return ToStrings(value);
    case Kind::NumberType:
      return ToScalars(value);
    default:
      return std::nullopt;
  }
}

Converted Convert(const AttrValue& value, const c10::TypePtr& type,
                  std::optional<std::int32_t> length) {
  switch (type->kind()) {
    case Kind::IntType:
    case Kind::SymIntType:
      return ToInt(value);
    case Kind::FloatType:
      return ToFloat(value);
    case Kind::BoolType:
      return ToBool(value);
    case Kind::NumberType:
      return ToScalar(value);
    case Kind::StringType:
      return ToString(value);
    case Kind::ScalarTypeType:
      return ToDtype(value);
    case Kind::MemoryFormatType:
      return ToMemoryFormat(value);
    case Kind::ListType:
      return ToList(value, type->castRaw<c10::ListType>()->getElementType(), length);
    default:
      return std::nullopt;
  }
}

absl::Status Mismatch(const AttrValue& value, const c10::Argument& argument) {
  std::string taken = argument.real_type()->str();
  if (argument.N()) absl::StrAppend(&taken, " of length ", *argument.N());
  return absl::InvalidArgumentError(absl::StrCat("argument '", argument.name(), "' takes ", taken,
                                                 ", not ", std::string(AttrTypeName(value))));
}

}  // namespace

c10::TypePtr CoreType(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

bool IsPlacement(const c10::Argument& argument) {
  const Kind kind = CoreType(argument)->kind();
  return kind == Kind::DeviceObjType || kind == Kind::LayoutType || argument.name() == "pin_memory";
}

absl::StatusOr<c10::IValue> ToArgument(const AttrValue& value, const c10::Argument& argument) {
  const bool none = std::holds_alternative<std::monostate>(value);
  if (IsPlacement(argument)) {
    if (none && IsOptional(argument)) return c10::IValue();
    return absl::InvalidArgumentError(
        absl::StrCat("argument '", argument.name(),
                     "' is decided by where the node is placed and cannot be given"));
  }
  if (none) {
    if (IsOptional(argument)) return c10::IValue();
    return Mismatch(value, argument);
  }
  if (Converted converted = Convert(value, CoreType(argument), argument.N())) {
    return *std::move(converted);
  }
  return Mismatch(value, argument);
}

}  // namespace weir::graph
