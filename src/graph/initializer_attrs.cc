#include "graph/initializer_attrs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/op_registry.h"
#include "tensor/dtype.h"

namespace weir::graph {
namespace {

absl::Status CheckValue(const Initializer& initializer) {
  const at::Tensor& value = initializer.value;
  if (!value.defined() || !value.device().is_cpu() || value.layout() != at::kStrided) {
    return absl::InvalidArgumentError("its initial value is no dense CPU tensor");
  }
  if (value.scalar_type() != initializer.dtype ||
      value.sizes() != at::IntArrayRef(initializer.shape)) {
    return absl::InvalidArgumentError(
        "its initial value has another dtype or shape than the variable");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInitializer(const Initializer& initializer) {
  if (DtypeCode(initializer.dtype) == 0) {
    return absl::InvalidArgumentError("its dtype is none a variable can have");
  }
  WEIR_RETURN_IF_ERROR(TensorBytes(initializer.dtype, initializer.shape).status());
  if (initializer.kind == Initializer::Kind::kValue) return CheckValue(initializer);
  return absl::OkStatus();
}

void InitializerToAttrs(const Initializer& initializer, Node& node) {
  node.attrs["dtype"] = initializer.dtype;
  node.attrs["shape"] = initializer.shape;
  node.attrs["initializer"] = static_cast<std::int64_t>(initializer.kind);
  node.attrs["initializer_a"] = initializer.a;
  node.attrs["initializer_b"] = initializer.b;
  if (initializer.kind == Initializer::Kind::kValue) {
    node.attrs["initializer_value"] = initializer.value;
  }
}

absl::StatusOr<Initializer> InitializerFromAttrs(const Node& node) {
  Initializer initializer;
  WEIR_ASSIGN_OR_RETURN(initializer.dtype, GetAttr<at::ScalarType>(node, "dtype"));
  WEIR_ASSIGN_OR_RETURN(initializer.shape, GetAttr<std::vector<std::int64_t>>(node, "shape"));
  WEIR_ASSIGN_OR_RETURN(const std::int64_t kind, GetAttr<std::int64_t>(node, "initializer"));
  if (kind < 0 || kind > static_cast<std::int64_t>(Initializer::Kind::kValue)) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name, "': there is no initialiser of kind ", kind));
  }
  initializer.kind = static_cast<Initializer::Kind>(kind);
  initializer.a = AttrOr<double>(node, "initializer_a", 0);
  initializer.b = AttrOr<double>(node, "initializer_b", 0);
  initializer.value = AttrOr<at::Tensor>(node, "initializer_value", {});
  WEIR_RETURN_IF_ERROR(
      Annotate(CheckInitializer(initializer), absl::StrCat("node '", node.name, "'")));
  return initializer;
}

}  // namespace weir::graph
