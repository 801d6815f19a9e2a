#include "base/sim_scheduler.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace weir {
namespace {

// Not the epoch of the clock: TimePoint{} often means "never" or "not yet".
constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));

}  // namespace

/// All fields but the first are guarded by the scheduler's mutex.
class SimScheduler::SimDriver final : public Driver {
 public:
  explicit SimDriver(SimScheduler& scheduler) : scheduler_(scheduler) {}

  void Post(std::function<void()> work) override {
    MutexLock lock(scheduler_.mutex_);
    queue_.push_back(std::move(work));
  }

  bool RunUntil(const std::function<bool()>& done, TimePoint deadline) override {
    return scheduler_.RunUntil(*this, done, deadline);
  }

  bool Ready() const { return !busy_ && !queue_.empty(); }

  /// A driver's thread does one thing at a time: while its work is on the stack (and has called
  /// another driver's RunUntil, say) the next piece has to wait.
  Work TakeFirst() {
    busy_ = true;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    return [this, work = std::move(work)] {
      if (work) work();
      MutexLock lock(scheduler_.mutex_);
      busy_ = false;
    };
  }

 private:
  SimScheduler& scheduler_;
  bool busy_ = false;
  std::deque<Work> queue_;
};

SimScheduler::SimScheduler(std::uint64_t seed) : random_(seed), now_(kStart) {}

SimScheduler::~SimScheduler() {
  Close();
  std::vector<Work> dropped;
  MutexLock lock(mutex_);
  dropped.swap(ready_);
}

void SimScheduler::Post(std::function<void()> work) {
  MutexLock lock(mutex_);
  if (closed_) return;
  ready_.push_back(std::move(work));
}

std::shared_ptr<Timer> SimScheduler::PostAt(TimePoint when, std::function<void()> work) {
  std::shared_ptr<Timer> timer = timers_->Add(when, std::move(work));
  bool closed;
  {
    MutexLock lock(mutex_);
    closed = closed_;
  }
  if (closed) timer->Cancel();
  return timer;
}

TimePoint SimScheduler::Now() const {
  MutexLock lock(mutex_);
  return now_;
}

std::unique_ptr<Driver> SimScheduler::NewDriver() {
  return std::make_unique<SimDriver>(*this);
}

void SimScheduler::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  timers_->Clear();
}

void SimScheduler::Join() {
  RunUntilIdle();
}

bool SimScheduler::Step() {
  return RunOne(TimePoint::max());
}

void SimScheduler::RunUntilIdle() {
  while (RunOne(Now())) {
  }
}

void SimScheduler::RunFor(Duration duration) {
  const TimePoint end = Now() + duration;
  while (RunOne(end)) {
  }
  AdvanceTo(end);
}

bool SimScheduler::RunOne(TimePoint limit) {
  const std::optional<Work> work = Take(limit);
  if (!work) return false;
  (*work)();
  return true;
}

std::optional<SimScheduler::Work> SimScheduler::Take(TimePoint limit) {
  MutexLock lock(mutex_);
  // Work that runs inside other work may have moved the clock beyond the caller's limit.
  if (now_ > limit) return std::nullopt;
  do {
    for (Work& due : timers_->TakeDue(now_)) ready_.push_back(std::move(due));
    if (std::optional<Work> work = TakeReady()) return work;
  } while (AdvanceToNextTimer(limit));
  return std::nullopt;
}

std::optional<SimScheduler::Work> SimScheduler::TakeReady() {
  std::vector<SimDriver*> drivers;
  std::copy_if(running_drivers_.begin(), running_drivers_.end(), std::back_inserter(drivers),
               [](const SimDriver* driver) { return driver->Ready(); });
  const std::size_t choices = ready_.size() + drivers.size();
  if (choices == 0) return std::nullopt;
  // Not a std distribution: those differ between standard libraries, seeds should not.
  const std::size_t choice = random_() % choices;
  if (choice >= ready_.size()) return drivers[choice - ready_.size()]->TakeFirst();
  std::swap(ready_[choice], ready_.back());
  Work work = std::move(ready_.back());
  ready_.pop_back();
  return work;
}

bool SimScheduler::AdvanceToNextTimer(TimePoint limit) {
  const std::optional<TimePoint> next = timers_->NextDue();
  if (!next || *next > limit) return false;
  now_ = std::max(now_, *next);
  return true;
}

void SimScheduler::AdvanceTo(TimePoint when) {
  MutexLock lock(mutex_);
  now_ = std::max(now_, when);
}

bool SimScheduler::RunUntil(SimDriver& driver, const std::function<bool()>& done,
                            TimePoint deadline) {
  {
    MutexLock lock(mutex_);
    WEIR_CHECK(std::find(running_drivers_.begin(), running_drivers_.end(), &driver) ==
               running_drivers_.end());
    running_drivers_.push_back(&driver);
  }
  bool is_done = done();
  while (!is_done && RunOne(deadline)) is_done = done();
  if (!is_done && deadline != TimePoint::max()) AdvanceTo(deadline);
  MutexLock lock(mutex_);
  std::erase(running_drivers_, &driver);
  return is_done;
}

}  // namespace weir
