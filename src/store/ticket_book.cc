#include "store/ticket_book.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weir::store {
namespace {

void Call(const std::vector<std::function<void()>>& answers) {
  for (const auto& answer : answers) answer();
}

bool Below(std::uint64_t count, std::int64_t limit) {
  return limit < 0 || count < static_cast<std::uint64_t>(limit);
}

}  // namespace

TicketBook::~TicketBook() {
  std::deque<Waiter> waiters;
  {
    MutexLock lock(mutex_);
    waiters.swap(waiters_);
  }
  for (Waiter& waiter : waiters) {
    waiter.done(absl::CancelledError("the variable that counts steps is gone"));
  }
}

void TicketBook::Request(const StepId& id, std::int64_t limit, Callback done) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    waiters_.push_back({id, limit, std::move(done)});
    answers = AnswerWaiters();
  }
  Call(answers);
}

std::uint64_t TicketBook::Complete(const StepId& id) {
  Answers answers;
  std::uint64_t completed = 0;
  {
    MutexLock lock(mutex_);
    if (TakeBack(id) != 0) ++completed_;
    completed = completed_;
    answers = AnswerWaiters();
  }
  Call(answers);
  return completed;
}

void TicketBook::Release(const StepId& id) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      if (waiter->id != id) {
        ++waiter;
        continue;
      }
      answers.push_back([done = std::move(waiter->done)] {
        done(absl::CancelledError("the step ended while it waited for a ticket"));
      });
      waiter = waiters_.erase(waiter);
    }
    if (const std::uint64_t ticket = TakeBack(id); ticket != 0) returned_.insert(ticket);
    Answers others = AnswerWaiters();
    std::move(others.begin(), others.end(), std::back_inserter(answers));
  }
  Call(answers);
}

void TicketBook::SetCompleted(std::uint64_t completed) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    completed_ = completed;
    returned_.clear();
    next_ticket_ = completed + 1;
    for (const auto& [id, ticket] : outstanding_) {
      next_ticket_ = std::max(next_ticket_, ticket + 1);
    }
    answers = AnswerWaiters();
  }
  Call(answers);
}

std::uint64_t TicketBook::completed() const {
  MutexLock lock(mutex_);
  return completed_;
}

// Limits may differ, so that one who waits does not stop those behind him.
TicketBook::Answers TicketBook::AnswerWaiters() {
  Answers answers;
  std::deque<Waiter> still_waiting;
  for (Waiter& waiter : waiters_) {
    if (CanAnswer(waiter)) {
      answers.push_back(
          [answer = AnswerTo(waiter), done = std::move(waiter.done)] { done(answer); });
    } else {
      still_waiting.push_back(std::move(waiter));
    }
  }
  waiters_ = std::move(still_waiting);
  return answers;
}

bool TicketBook::CanAnswer(const Waiter& waiter) const {
  return outstanding_.contains(waiter.id) || !Below(completed_, waiter.limit) ||
         Below(completed_ + outstanding_.size(), waiter.limit);
}

absl::StatusOr<std::uint64_t> TicketBook::AnswerTo(const Waiter& waiter) {
  if (const auto held = outstanding_.find(waiter.id); held != outstanding_.end()) {
    return held->second;
  }
  if (!Below(completed_, waiter.limit)) {
    return absl::OutOfRangeError(absl::StrCat("step limit ", waiter.limit, " reached"));
  }
  std::uint64_t ticket = next_ticket_;
  if (returned_.empty()) {
    ++next_ticket_;
  } else {
    ticket = *returned_.begin();
    returned_.erase(returned_.begin());
  }
  outstanding_.emplace(waiter.id, ticket);
  return ticket;
}

std::uint64_t TicketBook::TakeBack(const StepId& id) {
  const auto held = outstanding_.find(id);
  if (held == outstanding_.end()) return 0;
  const std::uint64_t ticket = held->second;
  outstanding_.erase(held);
  return ticket;
}

}  // namespace weir::store
