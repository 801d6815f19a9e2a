#include "rendezvous/step_table.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"

namespace weir {
namespace {

std::size_t BytesOf(const Value& value) {
  return StepTable::kEarlyOverheadBytes + (value.tensor.defined() ? value.tensor.nbytes() : 0);
}

}  // namespace

struct StepTable::EarlyStep {
  std::shared_ptr<StepRendezvous> rendezvous = std::make_shared<StepRendezvous>();
  std::size_t bytes = 0;  // what it counts of early_bytes_
};

struct StepTable::Origin {
  /// Every number below has begun.
  std::uint64_t next = 0;
  std::map<std::uint64_t, std::shared_ptr<StepRendezvous>> running;
  std::map<std::uint64_t, EarlyStep> early;
  /// While the master is gone nothing is kept for steps to come.
  bool gone = false;
  absl::Status gone_reason;
  /// Something was dropped for steps below: they cannot complete any more.
  std::uint64_t lost_below = 0;
};

StepTable::StepTable(std::size_t early_bytes_max) : early_bytes_max_(early_bytes_max) {}

StepTable::~StepTable() = default;

StepTable::Origin& StepTable::OriginOf(std::uint64_t id) {
  std::unique_ptr<Origin>& origin = origins_[id];
  if (origin == nullptr) origin = std::make_unique<Origin>();
  return *origin;
}

void StepTable::ForgetIfUnknown(std::uint64_t id) {
  auto origin = origins_.find(id);
  if (origin->second->next == 0 && !origin->second->gone && origin->second->early.empty()) {
    origins_.erase(origin);
  }
}

absl::StatusOr<std::shared_ptr<StepRendezvous>> StepTable::Begin(const store::StepId& id) {
  std::shared_ptr<StepRendezvous> rendezvous;
  absl::Status aborted;
  {
    MutexLock lock(mutex_);
    Origin& origin = OriginOf(id.origin);
    if (id.step < origin.next) {
      return absl::AlreadyExistsError(
          absl::StrCat("step ", id.step, " has begun before, or a later one of its master has"));
    }
    origin.next = id.step + 1;
    origin.gone = false;
    ForgetEarlyBelow(origin, id.step);
    if (auto early = origin.early.find(id.step); early != origin.early.end()) {
      early_bytes_ -= early->second.bytes;
      rendezvous = std::move(early->second.rendezvous);
      origin.early.erase(early);
    } else {
      rendezvous = std::make_shared<StepRendezvous>();
    }
    origin.running[id.step] = rendezvous;
    if (id.step < origin.lost_below) aborted = origin.gone_reason;
    if (!closed_.ok()) aborted = closed_;
  }
  if (!aborted.ok()) rendezvous->Abort(aborted);
  return rendezvous;
}

// Steps that were passed over will not begin any more.
void StepTable::ForgetEarlyBelow(Origin& origin, std::uint64_t step) {
  const auto end = origin.early.lower_bound(step);
  for (auto early = origin.early.begin(); early != end; ++early)
    early_bytes_ -= early->second.bytes;
  origin.early.erase(origin.early.begin(), end);
}

absl::Status StepTable::CheckRoom(const store::StepId& id, std::size_t bytes) const {
  MutexLock lock(mutex_);
  if (bytes <= early_bytes_max_ - early_bytes_) return absl::OkStatus();
  return TooMuch(id, bytes);
}

absl::Status StepTable::TooMuch(const store::StepId& id, std::size_t bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat(
      "step ", id.step, " has not begun here and ", bytes, " bytes more do not fit beside the ",
      early_bytes_, " of ", early_bytes_max_, " that are held for such steps"));
}

absl::Status StepTable::Deliver(const store::StepId& id, std::uint32_t edge, Value value) {
  std::shared_ptr<StepRendezvous> rendezvous;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return absl::OkStatus();
    Origin& origin = OriginOf(id.origin);
    auto running = origin.running.find(id.step);
    if (running == origin.running.end()) {
      if (id.step < origin.next) return absl::OkStatus();
      return DeliverEarly(id, origin, edge, std::move(value));
    }
    rendezvous = running->second;
  }
  absl::Status put = rendezvous->Put(edge, std::move(value));
  return rendezvous->status().ok() ? put : absl::OkStatus();
}

absl::Status StepTable::DeliverEarly(const store::StepId& id, Origin& origin, std::uint32_t edge,
                                     Value value) {
  if (origin.gone) {
    origin.lost_below = std::max(origin.lost_below, id.step + 1);
    return absl::OkStatus();
  }
  const std::size_t bytes = BytesOf(value);
  EarlyStep* early = Early(origin, id.step, bytes);
  if (early == nullptr) {
    ForgetIfUnknown(id.origin);
    return TooMuch(id, bytes);
  }
  if (!early->rendezvous->status().ok()) return absl::OkStatus();
  // Nobody receives from a step that has not begun, so this calls nobody under the lock.
  WEIR_RETURN_IF_ERROR(early->rendezvous->Put(edge, std::move(value)));
  early->bytes += bytes;
  early_bytes_ += bytes;
  return absl::OkStatus();
}

StepTable::EarlyStep* StepTable::Early(Origin& origin, std::uint64_t step, std::size_t bytes) {
  auto early = origin.early.find(step);
  const bool is_new = early == origin.early.end();
  const std::size_t room = early_bytes_max_ - early_bytes_;
  const std::size_t overhead = is_new ? kEarlyOverheadBytes : 0;
  if (overhead > room || bytes > room - overhead) return nullptr;
  if (is_new) {
    early = origin.early.try_emplace(step).first;
    early->second.bytes = overhead;
    early_bytes_ += overhead;
  }
  return &early->second;
}

void StepTable::Abort(const store::StepId& id, const absl::Status& reason) {
  std::shared_ptr<StepRendezvous> rendezvous;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return;
    Origin& origin = OriginOf(id.origin);
    auto running = origin.running.find(id.step);
    if (running != origin.running.end()) {
      rendezvous = running->second;
    } else {
      if (id.step < origin.next) return;
      if (origin.gone) origin.lost_below = std::max(origin.lost_below, id.step + 1);
      EarlyStep* early = origin.gone ? nullptr : Early(origin, id.step, 0);
      if (early == nullptr) {
        ForgetIfUnknown(id.origin);
        return;
      }
      // The values go with the abort; the entry goes on counting for itself.
      early_bytes_ -= early->bytes - kEarlyOverheadBytes;
      early->bytes = kEarlyOverheadBytes;
      rendezvous = early->rendezvous;
    }
  }
  rendezvous->Abort(reason);
}

void StepTable::End(const store::StepId& id) {
  std::shared_ptr<StepRendezvous> rendezvous;
  {
    MutexLock lock(mutex_);
    auto origin = origins_.find(id.origin);
    if (origin == origins_.end()) return;
    auto running = origin->second->running.extract(id.step);
    if (running.empty()) return;
    rendezvous = std::move(running.mapped());
  }
  rendezvous->Abort(absl::CancelledError("the step has ended"));
}

void StepTable::AbortOrigin(std::uint64_t origin_id, const absl::Status& reason) {
  std::map<std::uint64_t, std::shared_ptr<StepRendezvous>> running;
  std::map<std::uint64_t, EarlyStep> early;
  {
    MutexLock lock(mutex_);
    Origin& origin = OriginOf(origin_id);
    origin.gone = true;
    origin.gone_reason = reason;
    running.swap(origin.running);
    early.swap(origin.early);
    for (const auto& [step, held] : early) early_bytes_ -= held.bytes;
    if (!early.empty()) origin.lost_below = std::max(origin.lost_below, early.rbegin()->first + 1);
  }
  for (const auto& [step, rendezvous] : running) rendezvous->Abort(reason);
}

void StepTable::AbortAll(const absl::Status& reason) {
  WEIR_CHECK(!reason.ok());
  std::vector<std::shared_ptr<StepRendezvous>> running;
  std::vector<std::map<std::uint64_t, EarlyStep>> early;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = reason;
    early_bytes_ = 0;
    for (auto& [id, origin] : origins_) {
      for (const auto& [step, rendezvous] : origin->running) running.push_back(rendezvous);
      early.push_back(std::exchange(origin->early, {}));
    }
  }
  for (const auto& rendezvous : running) rendezvous->Abort(reason);
}

std::size_t StepTable::running() const {
  MutexLock lock(mutex_);
  std::size_t running = 0;
  for (const auto& [id, origin] : origins_) running += origin->running.size();
  return running;
}

std::size_t StepTable::early() const {
  MutexLock lock(mutex_);
  std::size_t early = 0;
  for (const auto& [id, origin] : origins_) early += origin->early.size();
  return early;
}

}  // namespace weir
