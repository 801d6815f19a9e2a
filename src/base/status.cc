#include "base/status.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace weir {

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  absl::Status annotated(
      status.code(),
      absl::StrCat(context, ": ", std::string(status.message().data(), status.message().size())));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    annotated.SetPayload(type, payload);
  });
  return annotated;
}

absl::Status CurrentExceptionToStatus(absl::StatusCode code, const std::string& context) {
  std::string what = "unknown exception";
  try {
    throw;
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
  }
  // libtorch appends its C++ stack to the text; a user is helped by the first line alone.
  what = what.substr(0, what.find("\nException raised from"));
  what = what.substr(0, what.find("\nframe #0: "));
  return absl::Status(code, absl::StrCat(context, ": ", what));
}

namespace internal {
void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal error, please report it: %s does not hold\n", file, line,
               condition);
  std::abort();
}
}  // namespace internal

}  // namespace weir
