#include "rpc/grpc/attr_proto.h"

#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "rpc/grpc/tensor_proto.h"

namespace weir::rpc {
namespace {

/// Visits the variant; one overload for each alternative.
class Writer {
 public:
  explicit Writer(v1::Attr* proto) : proto_(proto) {}

  absl::Status operator()(std::monostate) {
    proto_->mutable_none();
    return absl::OkStatus();
  }
  absl::Status operator()(bool value) { return Set(&v1::Attr::set_flag, value); }
  absl::Status operator()(std::int64_t value) { return Set(&v1::Attr::set_number, value); }
  absl::Status operator()(double value) { return Set(&v1::Attr::set_real, value); }
  absl::Status operator()(const std::string& value) {
    proto_->set_text(value);
    return absl::OkStatus();
  }
  absl::Status operator()(at::ScalarType value) {
    WEIR_ASSIGN_OR_RETURN(const std::uint32_t code, DtypeToProto(value));
    return Set(&v1::Attr::set_dtype, code);
  }
  absl::Status operator()(const at::Tensor& value) {
    return ToProto(value, proto_->mutable_tensor());
  }
  absl::Status operator()(const std::vector<bool>& values) {
    return Fill(values, proto_->mutable_flags());
  }
  absl::Status operator()(const std::vector<std::int64_t>& values) {
    return Fill(values, proto_->mutable_numbers());
  }
  absl::Status operator()(const std::vector<double>& values) {
    return Fill(values, proto_->mutable_reals());
  }
  absl::Status operator()(const std::vector<std::string>& values) {
    return Fill(values, proto_->mutable_texts());
  }

 private:
  template <typename Value>
  absl::Status Set(void (v1::Attr::*setter)(Value), Value value) {
    (proto_->*setter)(value);
    return absl::OkStatus();
  }

  template <typename Values, typename List>
  absl::Status Fill(const Values& values, List* list) {
    list->mutable_values()->Reserve(static_cast<int>(values.size()));
    for (const auto& value : values) list->add_values(value);
    return absl::OkStatus();
  }

  v1::Attr* const proto_;
};

template <typename Value, typename List>
AttrValue ListOf(const List& list) {
  return std::vector<Value>(list.values().begin(), list.values().end());
}

}  // namespace

absl::Status ToProto(const AttrValue& value, v1::Attr* proto) {
  return std::visit(Writer(proto), value);
}

absl::StatusOr<AttrValue> FromProto(const v1::Attr& proto) {
  switch (proto.value_case()) {
    case v1::Attr::kNone:
      return AttrValue(std::monostate());
    case v1::Attr::kFlag:
      return AttrValue(proto.flag());
    case v1::Attr::kNumber:
      return AttrValue(std::int64_t{proto.number()});
    case v1::Attr::kReal:
      return AttrValue(proto.real());
    case v1::Attr::kText:
      return AttrValue(proto.text());
    case v1::Attr::kDtype:
      return DtypeFromProto(proto.dtype());
    case v1::Attr::kTensor:
      return FromProto(proto.tensor());
    case v1::Attr::kFlags:
      return ListOf<bool>(proto.flags());
    case v1::Attr::kNumbers:
      return ListOf<std::int64_t>(proto.numbers());
    case v1::Attr::kReals:
      return ListOf<double>(proto.reals());
    case v1::Attr::kTexts:
      return ListOf<std::string>(proto.texts());
    case v1::Attr::VALUE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an attribute without a value of a known kind");
}

}  // namespace weir::rpc
