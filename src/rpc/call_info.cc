#include "rpc/call_info.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weir::rpc {

std::string CallInfo::ToString() const {
  if (to.job.empty()) return absl::StrCat(method, " on ", address);
  return absl::StrCat(method, " on ", to.ToString(), " (", address, ")");
}

absl::Status CallInfo::Unreachable(std::string_view reason) const {
  std::string text = ToString() + ": the task cannot be reached";
  if (!reason.empty()) absl::StrAppend(&text, ": ", std::string(reason));
  return absl::UnavailableError(text);
}

absl::Status CallInfo::TimedOut(Duration waited) const {
  const double seconds = std::chrono::duration<double>(waited).count();
  std::string text = absl::StrFormat("%s: no answer within %.3g s", ToString(), seconds);
  if (wait_for_ready) text += "; is the task running, and is this its address?";
  return absl::DeadlineExceededError(text);
}

absl::Status CallInfo::PlaneClosed() const {
  return absl::CancelledError(ToString() + ": the control plane of this process has been closed");
}

}  // namespace weir::rpc
