#include "store/run_initializer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/DistributionsHelper.h>

#include <cmath>

#include "base/stable_hash.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace weir::store {
namespace {

std::uint64_t SeedFor(std::uint64_t seed, const std::string& name) {
  return SplitMix64(SplitMix64(seed) ^ Fnv1a(name));
}

absl::Status CheckNumbers(const Initializer& initializer) {
  const auto bad = [](const char* what) { return absl::InvalidArgumentError(what); };
  switch (initializer.kind) {
    case Initializer::Kind::kConstant:
      if (at::isIntegralType(initializer.dtype, /*includeBool=*/true) &&
          std::trunc(initializer.a) != initializer.a) {
        return bad("a constant that is not integral for an integer dtype");
      }
      return absl::OkStatus();
    case Initializer::Kind::kUniform:
      if (std::isfinite(initializer.a) && std::isfinite(initializer.b) &&
          initializer.a <= initializer.b) {
        return absl::OkStatus();
      }
      return bad("uniform bounds must be finite and in order");
    case Initializer::Kind::kNormal:
    case Initializer::Kind::kTruncatedNormal:
      if (std::isfinite(initializer.a) && std::isfinite(initializer.b) && initializer.b >= 0) {
        return absl::OkStatus();
      }
      return bad("mean and standard deviation must be finite, the latter not negative");
    case Initializer::Kind::kValue:
      if (initializer.value.defined() && initializer.value.scalar_type() == initializer.dtype &&
          initializer.value.sizes() == at::IntArrayRef(initializer.shape)) {
        return absl::OkStatus();
      }
      return bad("the initial value has another shape or dtype than the variable");
  }
  return bad("an unknown kind of initializer");
}

// Redraws what lies beyond two standard deviations, one number at a time, then scales.
template <typename T>
void TruncateAndScale(at::Tensor& tensor, double mean, double stddev,
                      at::CPUGeneratorImpl* generator) {
  at::normal_distribution<double> draw(0.0, 1.0);
  T* element = tensor.data_ptr<T>();
  T* const end = element + tensor.numel();
  for (; element != end; ++element) {
    double z = *element;
    while (std::abs(z) > 2.0) z = draw(generator);
    *element = static_cast<T>(mean + stddev * z);
  }
}

void DrawTruncatedNormal(at::Tensor& tensor, const Initializer& initializer,
                         const at::Generator& generator) {
  const bool is_double = tensor.scalar_type() == at::kDouble;
  at::Tensor draws =
      tensor.scalar_type() == at::kFloat || is_double ? tensor : at::empty_like(tensor, at::kFloat);
  draws.normal_(0.0, 1.0, generator);
  auto* engine = generator.get<at::CPUGeneratorImpl>();
  if (is_double) {
    TruncateAndScale<double>(draws, initializer.a, initializer.b, engine);
  } else {
    TruncateAndScale<float>(draws, initializer.a, initializer.b, engine);
  }
  if (!draws.is_same(tensor)) tensor.copy_(draws);
}

// May throw: libtorch refuses a random draw of integers, for instance.
void Fill(at::Tensor& tensor, const Initializer& initializer, const at::Generator& generator) {
  switch (initializer.kind) {
    case Initializer::Kind::kConstant:
      tensor.fill_(initializer.a);
      break;
    case Initializer::Kind::kUniform:
      tensor.uniform_(initializer.a, initializer.b, generator);
      break;
    case Initializer::Kind::kNormal:
      tensor.normal_(initializer.a, initializer.b, generator);
      break;
    case Initializer::Kind::kTruncatedNormal:
      TORCH_CHECK(tensor.is_floating_point(), "a normal draw needs a floating-point dtype");
      DrawTruncatedNormal(tensor, initializer, generator);
      break;
    case Initializer::Kind::kValue:
      tensor.copy_(initializer.value.detach());
      break;
  }
}

}  // namespace

absl::StatusOr<at::Tensor> AllocateTensor(at::IntArrayRef shape, at::ScalarType dtype,
                                          const std::string& name) {
  if (DtypeCode(dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" cannot have dtype ", DtypeName(dtype)));
  }
  const absl::StatusOr<std::uint64_t> bytes = TensorBytes(dtype, shape);
  if (!bytes.ok()) return Annotate(bytes.status(), absl::StrCat("shape of \"", name, "\""));
  at::Tensor tensor;
  WEIR_RETURN_IF_ERROR(
      CatchAs(absl::StatusCode::kResourceExhausted,
              absl::StrCat("no memory for the ", *bytes, " bytes of \"", name, "\""),
              [&] { tensor = at::empty(shape, at::TensorOptions(at::kCPU).dtype(dtype)); }));
  return tensor;
}

absl::StatusOr<at::Tensor> RunInitializer(const Initializer& initializer, std::uint64_t seed,
                                          const std::string& name) {
  const std::string context = absl::StrCat("initializer of \"", name, "\"");
  WEIR_RETURN_IF_ERROR(Annotate(CheckNumbers(initializer), context));
  WEIR_ASSIGN_OR_RETURN(at::Tensor tensor,
                        AllocateTensor(initializer.shape, initializer.dtype, name));
  WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, context, [&] {
    Fill(tensor, initializer, at::make_generator<at::CPUGeneratorImpl>(SeedFor(seed, name)));
  }));
  return tensor;
}

}  // namespace weir::store
