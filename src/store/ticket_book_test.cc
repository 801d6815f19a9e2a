#include "store/ticket_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>

namespace weir::store {
namespace {

using Answer = std::optional<absl::StatusOr<std::uint64_t>>;

StepId Step(std::uint64_t step, std::uint64_t origin = 1) {
  return {.origin = origin, .step = step};
}

/// Requests a ticket; the answer appears in the result when it is given.
std::shared_ptr<Answer> Ask(TicketBook& book, const StepId& id, std::int64_t limit) {
  auto answer = std::make_shared<Answer>();
  book.Request(id, limit, [answer](absl::StatusOr<std::uint64_t> ticket) {
    EXPECT_FALSE(answer->has_value()) << "answered twice";
    *answer = std::move(ticket);
  });
  return answer;
}

void ExpectTicket(const std::shared_ptr<Answer>& answer, std::uint64_t number) {
  ASSERT_TRUE(answer->has_value());
  ASSERT_TRUE((*answer)->ok()) << (*answer)->status();
  EXPECT_EQ((*answer)->value(), number);
}

void ExpectRefused(const std::shared_ptr<Answer>& answer, absl::StatusCode code) {
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->status().code(), code);
}

TEST(TicketBookTest, WithoutALimitEverybodyIsGivenTheNextNumber) {
  TicketBook book;
  for (std::uint64_t step = 1; step <= 100; ++step) ExpectTicket(Ask(book, Step(step), -1), step);
  EXPECT_EQ(book.completed(), 0u);
  EXPECT_EQ(book.Complete(Step(7)), 1u);
}

TEST(TicketBookTest, TheLastTicketIsWaitedFor) {
  TicketBook book;
  ExpectTicket(Ask(book, Step(1), 2), 1);
  ExpectTicket(Ask(book, Step(2), 2), 2);
  const auto third = Ask(book, Step(3), 2);
  EXPECT_FALSE(third->has_value());
  book.Complete(Step(1));
  EXPECT_FALSE(third->has_value());
  book.Complete(Step(2));
  ExpectRefused(third, absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string((*third)->status().message()), "step limit 2 reached");
  ExpectRefused(Ask(book, Step(4), 2), absl::StatusCode::kOutOfRange);
}

TEST(TicketBookTest, AFailedStepsTicketGoesToTheFirstWhoWaits) {
  TicketBook book;
  ExpectTicket(Ask(book, Step(1), 1), 1);
  const auto second = Ask(book, Step(2), 1);
  const auto third = Ask(book, Step(3), 1);
  book.Release(Step(1));
  ExpectTicket(second, 1);
  EXPECT_FALSE(third->has_value());
  book.Complete(Step(2));
  ExpectRefused(third, absl::StatusCode::kOutOfRange);
  EXPECT_EQ(book.completed(), 1u);
}

TEST(TicketBookTest, ReleaseOfOneWhoWaitsCancelsHim) {
  TicketBook book;
  ExpectTicket(Ask(book, Step(1), 1), 1);
  const auto second = Ask(book, Step(2), 1);
  book.Release(Step(2));
  ExpectRefused(second, absl::StatusCode::kCancelled);
  book.Release(Step(2));
  book.Release(Step(99));
  EXPECT_EQ(book.Complete(Step(1)), 1u);
}

TEST(TicketBookTest, ARepeatedMessageChangesNothing) {
  TicketBook book;
  ExpectTicket(Ask(book, Step(1), 5), 1);
  ExpectTicket(Ask(book, Step(1), 5), 1);
  EXPECT_EQ(book.Complete(Step(1)), 1u);
  EXPECT_EQ(book.Complete(Step(1)), 1u);
  EXPECT_EQ(book.Complete(Step(2)), 1u);
}

TEST(TicketBookTest, OneWhoWaitsDoesNotStopThoseOfAHigherLimit) {
  TicketBook book;
  ExpectTicket(Ask(book, Step(1), 1), 1);
  const auto waits = Ask(book, Step(2), 1);
  ExpectTicket(Ask(book, Step(3), 2), 2);
  EXPECT_FALSE(waits->has_value());
  book.Complete(Step(3));
  ExpectRefused(waits, absl::StatusCode::kOutOfRange);
}

TEST(TicketBookTest, CountingGoesOnFromTheValueOfGlobalStep) {
  TicketBook book;
  ExpectTicket(Ask(book, Step(1), 1), 1);
  const auto waits = Ask(book, Step(2), 1);
  book.SetCompleted(40);
  ExpectRefused(waits, absl::StatusCode::kOutOfRange);
  ExpectTicket(Ask(book, Step(3), 50), 41);
  EXPECT_EQ(book.Complete(Step(3)), 41u);
}

TEST(TicketBookTest, NobodyWaitsForABookThatIsGone) {
  auto book = std::make_unique<TicketBook>();
  ExpectTicket(Ask(*book, Step(1), 1), 1);
  const auto waits = Ask(*book, Step(2), 1);
  book.reset();
  ExpectRefused(waits, absl::StatusCode::kCancelled);
}

TEST(TicketBookTest, CallbacksMayCallBack) {
  TicketBook book;
  int completed = 0;
  std::function<void(std::uint64_t)> run = [&](std::uint64_t step) {
    book.Request(Step(step), 10, [&, step](const absl::StatusOr<std::uint64_t>& ticket) {
      if (!ticket.ok()) return;
      ++completed;
      book.Complete(Step(step));
      run(step + 1);
    });
  };
  run(1);
  EXPECT_EQ(completed, 10);
}

/// Plays a random history against the promises of the class comment.
class History {
 public:
  explicit History(std::uint64_t limit) : limit_(limit) {}

  void Request() {
    const std::uint64_t id = next_id_++;
    ++waiting_;
    book_.Request(Step(id), static_cast<std::int64_t>(limit_),
                  [this, id](const absl::StatusOr<std::uint64_t>& ticket) {
                    RC_ASSERT(answered_.insert(id).second);
                    --waiting_;
                    if (ticket.ok()) running_[id] = *ticket;
                  });
    Check();
  }

  void Complete(std::size_t which) {
    if (running_.empty()) return;
    const auto step =
        std::next(running_.begin(), static_cast<std::ptrdiff_t>(which % running_.size()));
    const auto [id, ticket] = *step;
    running_.erase(step);
    RC_ASSERT(completed_tickets_.insert(ticket).second);
    RC_ASSERT(book_.Complete(Step(id)) == completed_tickets_.size());
    Check();
  }

  /// A running step, one that waits, one that has ended long ago, or one that never was.
  void Release(std::size_t which) {
    const std::uint64_t id = which % (next_id_ + 1);
    running_.erase(id);
    book_.Release(Step(id));
    Check();
  }

  /// Everybody retries until the limit is reached.
  void RunToTheEnd() {
    while (book_.completed() < limit_) {
      Request();
      Complete(0);
    }
    while (!running_.empty()) Complete(0);
    RC_ASSERT(waiting_ == 0);
    RC_ASSERT(answered_.size() == next_id_);
    std::uint64_t expected = 1;
    for (const std::uint64_t ticket : completed_tickets_) RC_ASSERT(ticket == expected++);
    RC_ASSERT(completed_tickets_.size() == limit_);
  }

 private:
  void Check() const {
    RC_ASSERT(book_.completed() == completed_tickets_.size());
    RC_ASSERT(completed_tickets_.size() + running_.size() <= limit_);
    // Nobody waits who could run.
    if (waiting_ > 0) RC_ASSERT(completed_tickets_.size() + running_.size() == limit_);
  }

  const std::uint64_t limit_;
  std::uint64_t next_id_ = 0;
  int waiting_ = 0;
  std::set<std::uint64_t> answered_;
  std::map<std::uint64_t, std::uint64_t> running_;  // step to ticket
  std::set<std::uint64_t> completed_tickets_;
  TicketBook book_;
};

RC_GTEST_PROP(TicketBookTest, ExactlyTheLimitCompletesWhateverFails, ()) {
  History history(*rc::gen::inRange<std::uint64_t>(0, 20));
  const auto moves = *rc::gen::container<std::vector<std::pair<int, std::size_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::arbitrary<std::size_t>()));
  for (const auto& [kind, which] : moves) {
    if (kind <= 1) history.Request();
    if (kind == 2) history.Complete(which);
    if (kind == 3) history.Release(which);
  }
  history.RunToTheEnd();
}

TEST(TicketBookTest, ThreadsCompleteExactlyTheLimit) {
  constexpr std::int64_t kLimit = 2'000;
  TicketBook book;
  std::atomic<int> completed{0};
  std::vector<std::thread> threads;
  for (std::uint64_t origin = 1; origin <= 4; ++origin) {
    threads.emplace_back([&, origin] {
      // A step at a time: the next one is asked for when this one was answered and has ended.
      for (std::uint64_t step = 0;; ++step) {
        std::promise<bool> answer;
        book.Request(Step(step, origin), kLimit, [&](const absl::StatusOr<std::uint64_t>& ticket) {
          answer.set_value(ticket.ok());
        });
        if (!answer.get_future().get()) return;
        if (step % 3 == origin % 3) {
          book.Release(Step(step, origin));
        } else {
          book.Complete(Step(step, origin));
          completed.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(completed.load(), kLimit);
  EXPECT_EQ(book.completed(), static_cast<std::uint64_t>(kLimit));
}

}  // namespace
}  // namespace weir::store
