#include "store/dense.h"

#include "absl/strings/str_cat.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace weir::store {

std::string DescribeTensor(at::ScalarType dtype, at::IntArrayRef shape) {
  return absl::StrCat(DtypeName(dtype), " ", ShapeToString(shape.vec()));
}

absl::Status CheckDense(const at::Tensor& value, at::ScalarType dtype, at::IntArrayRef shape,
                        const std::string& what) {
  if (!value.defined()) return absl::InvalidArgumentError(absl::StrCat(what, " is absent"));
  if (value.layout() != at::kStrided || !value.device().is_cpu()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must be a dense tensor in host memory, not ",
                     value.layout() != at::kStrided ? "sparse" : value.device().str()));
  }
  if (value.scalar_type() != dtype || value.sizes() != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", DescribeTensor(value.scalar_type(), value.sizes()),
                     " but must be ", DescribeTensor(dtype, shape)));
  }
  return absl::OkStatus();
}

// What comes from a backward pass or from the wire is plain: it costs a few tests of flags here,
// where each call below is one through the dispatcher.
at::Tensor ToPlain(const at::Tensor& value) {
  const bool is_lazy = value._is_zerotensor() || value.is_conj() || value.is_neg();
  if (!is_lazy && value.is_contiguous() && !value.requires_grad()) return value;
  if (value._is_zerotensor()) return value.detach().clone();
  return value.detach().resolve_conj().resolve_neg().contiguous();
}

}  // namespace weir::store
