#include "rpc/inproc/call_list.h"

#include <utility>

namespace weir::rpc {

bool CallList::Add(const std::shared_ptr<Call>& call) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  if (calls_.size() >= prune_at_) {
    std::erase_if(calls_, [](const std::weak_ptr<Call>& old) { return old.expired(); });
    prune_at_ = 2 * calls_.size() + 16;
  }
  calls_.push_back(call);
  return true;
}

std::vector<std::shared_ptr<Call>> CallList::Alive() const {
  std::vector<std::shared_ptr<Call>> alive;
  MutexLock lock(mutex_);
  for (const std::weak_ptr<Call>& weak : calls_) {
    if (std::shared_ptr<Call> call = weak.lock()) alive.push_back(std::move(call));
  }
  return alive;
}

void CallList::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  for (const std::shared_ptr<Call>& call : Alive()) call->FailNow(call->info().PlaneClosed());
}

}  // namespace weir::rpc
