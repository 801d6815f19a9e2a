// What every kind of control plane must do; each instantiates the suite with worlds of its own:
//
//   INSTANTIATE_TEST_SUITE_P(Carrier, ControlPlaneConformance, Values(WorldKind{...}), KindName);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/scheduler.h"
#include "rpc/control_plane.h"
#include "rpc/fake_service_testing.h"

namespace weir::rpc {

struct World {
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<ControlPlane> plane;
};

struct WorldKind {
  std::string name;
  /// A service that blocks has a thread of its own; else it is one frame of the only stack.
  bool has_threads = true;
  std::function<World()> make;
};

inline std::string KindName(const ::testing::TestParamInfo<WorldKind>& kind) {
  return kind.param.name;
}

/// Collects the replies of one call. May be dropped before they come.
template <typename Result>
class Inbox {
 public:
  explicit Inbox(Driver* driver) : state_(std::make_shared<State>()) { state_->driver = driver; }

  std::function<void(Result)> Reply() {
    return [state = state_](Result result) {
      {
        MutexLock lock(state->mutex);
        state->results.push_back(std::move(result));
      }
      state->driver->Post([] {});
    };
  }
  std::size_t count() const {
    MutexLock lock(state_->mutex);
    return state_->results.size();
  }
  Result front() const {
    MutexLock lock(state_->mutex);
    return state_->results.front();
  }

 private:
  struct State {
    Driver* driver = nullptr;
    Mutex mutex;
    std::vector<Result> results WEIR_GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_;
};

/// Lets services block until it is opened, or for half a minute. Thread-safe.
class Latch {
 public:
  explicit Latch(Scheduler* scheduler) : scheduler_(scheduler) {}
  void Open();
  void Wait();

 private:
  bool IsOpen();

  Scheduler* const scheduler_;
  Mutex mutex_;
  bool open_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Driver>> waiters_ WEIR_GUARDED_BY(mutex_);
};

class ControlPlaneConformance : public ::testing::TestWithParam<WorldKind> {
 protected:
  ControlPlaneConformance();
  ~ControlPlaneConformance() override;

  Scheduler& scheduler() { return *world_.scheduler; }
  ControlPlane& plane() { return *world_.plane; }
  void DestroyPlane() { world_.plane = nullptr; }

  /// Starts server_ for service_ at a port, and client_ for it.
  void Serve(int port = 0);
  /// Where nobody listens, but somebody may.
  std::string UnusedAddress();

  CallOptions Within(Duration time, bool wait_for_ready = false);
  bool Await(const std::function<bool()>& done);
  /// Runs `start` with a reply and waits for it.
  template <typename Result>
  Result Call(const std::function<void(std::function<void(Result)>)>& start) {
    Inbox<Result> inbox(driver_.get());
    start(inbox.Reply());
    return Get(inbox);
  }
  template <typename Result>
  Result Get(const Inbox<Result>& inbox) {
    if (!Await([&] { return inbox.count() > 0; })) {
      ADD_FAILURE() << "no reply";
      return Result(absl::UnknownError("no reply"));
    }
    return inbox.front();
  }
  absl::Status Announce(TaskClient& client, const CallOptions& options);

  World world_;
  const std::unique_ptr<Driver> driver_;
  FakeService service_;
  std::unique_ptr<ControlServer> server_;
  std::shared_ptr<TaskClient> client_;
};

}  // namespace weir::rpc
