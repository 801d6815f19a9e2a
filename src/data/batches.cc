#include "weir/batches.h"

#include <ATen/Functions.h>

#include <numeric>

#include "absl/strings/str_cat.h"

namespace weir {
namespace {

// Uniform in [0, n). std::uniform_int_distribution and std::shuffle differ between standard
// libraries; this is the same everywhere.
std::uint64_t UniformBelow(std::uint64_t n, std::mt19937_64& random) {
  const std::uint64_t limit = std::mt19937_64::max() - std::mt19937_64::max() % n;
  while (true) {
    const std::uint64_t number = random();
    if (number < limit) return number % n;
  }
}

std::mt19937_64 SeededGenerator(std::uint64_t seed, int worker) {
  std::seed_seq sequence = {static_cast<std::uint32_t>(seed),
                            static_cast<std::uint32_t>(seed >> 32),
                            static_cast<std::uint32_t>(worker)};
  return std::mt19937_64(sequence);
}

// A division, since multiplying by 1/255 is off by one bit for half of all pixels; it hides behind
// the memory anyway.
void ScalePixels(const std::uint8_t* pixels, std::int64_t count, float* __restrict__ scaled) {
  for (std::int64_t i = 0; i < count; ++i) scaled[i] = static_cast<float>(pixels[i]) / 255.0f;
}

// The rows of a batch lie anywhere in the set, so the processor cannot guess the next one; asked
// for some rows ahead, they come while others are converted, which halves the time.
constexpr std::int64_t kRowsAhead = 4;
constexpr std::int64_t kCacheLineBytes = 64;

void Prefetch(const std::uint8_t* row, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += kCacheLineBytes) __builtin_prefetch(row + i);
}

bool IsBytes(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_cpu() && tensor.scalar_type() == at::kByte;
}

absl::Status Check(const at::Tensor& images, const at::Tensor& labels, std::int64_t batch) {
  if (!IsBytes(images) || !IsBytes(labels) || images.dim() < 1 || labels.dim() != 1) {
    return absl::InvalidArgumentError("expected images and labels of bytes, labels of rank 1");
  }
  if (images.size(0) != labels.size(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(images.size(0), " images but ", labels.size(0), " labels"));
  }
  if (images.size(0) == 0) return absl::InvalidArgumentError("there are no examples to draw");
  if (batch < 1) return absl::InvalidArgumentError(absl::StrCat("the batch size is ", batch));
  return absl::OkStatus();
}

}  // namespace

at::Tensor ScaledRows(const at::Tensor& images) {
  at::Tensor rows =
      at::empty({images.size(0), c10::multiply_integers(images.sizes().slice(1))}, at::kFloat);
  ScalePixels(images.const_data_ptr<std::uint8_t>(), rows.numel(), rows.mutable_data_ptr<float>());
  return rows;
}

absl::StatusOr<RandomBatches> RandomBatches::Create(at::Tensor images, at::Tensor labels,
                                                    std::int64_t batch, std::uint64_t seed,
                                                    int worker) {
  if (absl::Status status = Check(images, labels, batch); !status.ok()) return status;
  return RandomBatches(images.contiguous(), labels.contiguous(), batch,
                       SeededGenerator(seed, worker));
}

RandomBatches::RandomBatches(at::Tensor images, at::Tensor labels, std::int64_t batch,
                             std::mt19937_64 random)
    : images_(std::move(images)),
      labels_(std::move(labels)),
      batch_(batch),
      random_(random),
      order_(static_cast<std::size_t>(images_.size(0))) {
  std::iota(order_.begin(), order_.end(), 0);
}

// One step of a Fisher-Yates shuffle for each example drawn: no draw has to wait for the shuffle of
// a whole epoch. Any permutation is as good a start as another, so an epoch begins with the last
// order.
std::int64_t RandomBatches::DrawExample() {
  if (next_ == order_.size()) next_ = 0;
  const std::size_t chosen = next_ + UniformBelow(order_.size() - next_, random_);
  std::swap(order_[next_], order_[chosen]);
  return order_[next_++];
}

Batch RandomBatches::Next() {
  const std::int64_t pixels = images_.numel() / images_.size(0);
  Batch batch{.images = at::empty({batch_, pixels}, at::kFloat),
              .labels = at::empty({batch_}, at::kLong)};
  const auto* const images = images_.const_data_ptr<std::uint8_t>();
  const auto* const labels = labels_.const_data_ptr<std::uint8_t>();
  auto* const rows = batch.images.mutable_data_ptr<float>();
  auto* const digits = batch.labels.mutable_data_ptr<std::int64_t>();
  // Until its label is known, the place of a label holds which example was drawn.
  for (std::int64_t i = 0; i < batch_; ++i) digits[i] = DrawExample();
  for (std::int64_t i = 0; i < batch_; ++i) {
    if (i + kRowsAhead < batch_) Prefetch(images + digits[i + kRowsAhead] * pixels, pixels);
    ScalePixels(images + digits[i] * pixels, pixels, rows + i * pixels);
    digits[i] = labels[digits[i]];
  }
  return batch;
}

}  // namespace weir
