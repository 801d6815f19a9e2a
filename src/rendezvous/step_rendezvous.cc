#include "rendezvous/step_rendezvous.h"

#include <utility>

#include "base/status.h"

namespace weir {
namespace {

absl::Status Twice(const char* what, std::uint32_t edge) {
  return absl::AlreadyExistsError(absl::StrCat("edge ", edge, " was ", what, " twice in one step"));
}

}  // namespace

/// An edge that one side, or both, have come to. Stays when the pair is complete, so that a
/// duplicate is noticed.
struct StepRendezvous::Item {
  bool put = false;
  bool received = false;
  Value value;    // while put and not received
  Callback done;  // while received and not put
};

StepRendezvous::StepRendezvous() = default;

StepRendezvous::~StepRendezvous() {
  Abort(absl::CancelledError("the step is over"));
}

absl::Status StepRendezvous::Put(std::uint32_t edge, Value value) {
  Callback done;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return status_;
    std::unique_ptr<Item>& item = items_[edge];
    if (item == nullptr) item = std::make_unique<Item>();
    if (item->put) return Twice("sent", edge);
    item->put = true;
    if (!item->received) {
      item->value = std::move(value);
      return absl::OkStatus();
    }
    done = std::move(item->done);
    item->done = nullptr;
  }
  done(std::move(value));
  return absl::OkStatus();
}

void StepRendezvous::RecvAsync(std::uint32_t edge, Callback done) {
  absl::StatusOr<Value> result = absl::UnknownError("");
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) {
      result = status_;
    } else {
      std::unique_ptr<Item>& item = items_[edge];
      if (item == nullptr) item = std::make_unique<Item>();
      if (item->received) {
        result = Twice("received", edge);
      } else {
        item->received = true;
        if (!item->put) {
          item->done = std::move(done);
          return;
        }
        result = std::exchange(item->value, Value());
      }
    }
  }
  done(std::move(result));
}

void StepRendezvous::Abort(const absl::Status& reason) {
  WEIR_CHECK(!reason.ok());
  decltype(items_) items;
  decltype(abort_listeners_) listeners;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    status_ = reason;
    items.swap(items_);
    listeners.swap(abort_listeners_);
  }
  for (auto& [edge, item] : items) {
    if (item->done != nullptr) item->done(reason);
  }
  for (const auto& listener : listeners) listener();
}

absl::Status StepRendezvous::status() const {
  MutexLock lock(mutex_);
  return status_;
}

void StepRendezvous::NotifyAbort(std::function<void()> done) {
  {
    MutexLock lock(mutex_);
    if (status_.ok()) {
      abort_listeners_.push_back(std::move(done));
      return;
    }
  }
  done();
}

std::size_t StepRendezvous::held() const {
  MutexLock lock(mutex_);
  std::size_t held = 0;
  for (const auto& [edge, item] : items_) held += item->put && !item->received ? 1 : 0;
  return held;
}

}  // namespace weir
