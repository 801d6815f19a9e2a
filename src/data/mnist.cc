#include "weir/mnist.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/idx.h"

namespace weir {
namespace {

constexpr int kDigits = 10;

absl::StatusOr<std::string> FindFile(const std::string& dir, const std::string& name) {
  const std::filesystem::path plain = std::filesystem::path(dir) / name;
  std::string compressed = plain.string() + ".gz";
  std::error_code ignored;
  if (std::filesystem::exists(plain, ignored)) return plain.string();
  if (std::filesystem::exists(compressed, ignored)) return compressed;
  return absl::NotFoundError(absl::StrCat("there is neither ", name, " nor ", name, ".gz in ", dir,
                                          "; Weir's tools/fetch_mnist fetches the data set"));
}

absl::StatusOr<at::Tensor> ReadFile(const std::string& dir, const std::string& name, int rank) {
  WEIR_ASSIGN_OR_RETURN(const std::string path, FindFile(dir, name));
  WEIR_ASSIGN_OR_RETURN(at::Tensor tensor, ReadIdx(path));
  if (tensor.dim() == rank) return tensor;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected ", rank, " dimensions, found ", tensor.dim()));
}

absl::Status CheckLabels(const at::Tensor& labels, const std::string& what) {
  const auto* begin = labels.const_data_ptr<std::uint8_t>();
  const auto* end = begin + labels.numel();
  const auto* bad = std::find_if(begin, end, [](std::uint8_t label) { return label >= kDigits; });
  if (bad == end) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": label ", bad - begin, " is ", *bad, ", which is no digit"));
}

absl::Status CheckPairs(const at::Tensor& images, const at::Tensor& labels,
                        const std::string& what) {
  if (images.size(0) != labels.size(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", images.size(0), " images but ", labels.size(0), " labels"));
  }
  if (images.numel() == 0) return absl::InvalidArgumentError(what + ": there are no images");
  return CheckLabels(labels, what);
}

absl::Status ReadPairs(const std::string& dir, const std::string& prefix, at::Tensor& images,
                       at::Tensor& labels) {
  WEIR_ASSIGN_OR_RETURN(images, ReadFile(dir, prefix + "-images-idx3-ubyte", 3));
  WEIR_ASSIGN_OR_RETURN(labels, ReadFile(dir, prefix + "-labels-idx1-ubyte", 1));
  return CheckPairs(images, labels, absl::StrCat(dir, "/", prefix, "-*"));
}

}  // namespace

absl::StatusOr<Mnist> LoadMnist(const std::string& dir) {
  Mnist mnist;
  WEIR_RETURN_IF_ERROR(ReadPairs(dir, "train", mnist.train_images, mnist.train_labels));
  WEIR_RETURN_IF_ERROR(ReadPairs(dir, "t10k", mnist.test_images, mnist.test_labels));
  if (mnist.train_images.sizes().slice(1) != mnist.test_images.sizes().slice(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(dir, ": the images for training and for testing have different sizes"));
  }
  return mnist;
}

}  // namespace weir
