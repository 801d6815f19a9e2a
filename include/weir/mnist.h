// The MNIST data set, as its four IDX files hold it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "absl/status/statusor.h"

namespace weir {

/// All uint8, as stored: images {60000, 28, 28} and {10000, 28, 28}, labels 0..9.
struct Mnist {
  at::Tensor train_images;
  at::Tensor train_labels;
  at::Tensor test_images;
  at::Tensor test_labels;
};

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte from `dir`, each plain or with ".gz". Takes
/// any number of examples of any one image size, so that data sets in MNIST's clothes work too.
///
/// Errors of ReadIdx; NotFound names the files looked for; InvalidArgument if images and labels are
/// not pairs ("3 images but 4 labels"), if there are none, if a label is no digit, or if the images
/// for training and for testing have different sizes.
absl::StatusOr<Mnist> LoadMnist(const std::string& dir);

}  // namespace weir
