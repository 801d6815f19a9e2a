// Helpers around absl::Status, the only way errors travel between Weir's modules.
//
// An error is decided once, where it is first known; every caller that passes it on may add what it
// alone knows (which task, which node, which step) with Annotate. The code never changes on the
// way.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weir {

/// `status` with `context` put in front of its message: "context: message". Code and payloads are
/// kept; an OK status is returned as it is.
absl::Status Annotate(const absl::Status& status, const std::string& context);

/// Converts the exception now being handled (a libtorch, MPI or standard one) to a status of
/// `code`. REQUIRES: called inside a catch block.
absl::Status CurrentExceptionToStatus(absl::StatusCode code, const std::string& context);

/// Runs `function`, which may throw, and returns OK or the converted exception. The edge at which
/// libtorch's exceptions become statuses.
template <typename Function>
absl::Status CatchAs(absl::StatusCode code, const std::string& context, Function&& function) {
  try {
    std::forward<Function>(function)();
    return absl::OkStatus();
  } catch (...) {
    return CurrentExceptionToStatus(code, context);
  }
}

}  // namespace weir

#define WEIR_CONCAT_INNER_(a, b) a##b
#define WEIR_CONCAT_(a, b) WEIR_CONCAT_INNER_(a, b)

/// Returns from the enclosing function when `expression` is not OK.
#define WEIR_RETURN_IF_ERROR(expression)                        \
  do {                                                          \
    if (auto weir_status_ = (expression); !weir_status_.ok()) { \
      return weir_status_;                                      \
    }                                                           \
  } while (false)

/// `WEIR_ASSIGN_OR_RETURN(auto value, Compute());`
#define WEIR_ASSIGN_OR_RETURN(lhs, expression) \
  WEIR_ASSIGN_OR_RETURN_IMPL_(WEIR_CONCAT_(weir_result_, __LINE__), lhs, expression)
#define WEIR_ASSIGN_OR_RETURN_IMPL_(result, lhs, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return result.status();                  \
  lhs = std::move(result).value()

/// Ends the process: for Weir's own bugs only, never for what a peer, a file or a user gave.
#define WEIR_CHECK(condition)                                        \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::weir::internal::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                                \
  } while (false)

namespace weir::internal {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);
}  // namespace weir::internal
