// What the tests of this folder share.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace weir {

/// The whole content of testdata/`name`; fails the test if there is no such file.
std::string ReadTestdata(const std::string& name);

/// absl's view is not std's, which matchers want.
inline std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace weir
