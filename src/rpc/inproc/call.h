// One call on its way through the in-process network.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "cluster/host_port.h"
#include "rpc/call_info.h"
#include "rpc/control_plane.h"
#include "rpc/inproc/registry.h"
#include "rpc/method.h"

namespace weir::rpc {

/// What a call is made with, beside its method.
struct CallContext {
  std::shared_ptr<Registry> registry;
  Scheduler* scheduler = nullptr;  // of the client; not owned
  HostPort address;
  CallOptions options;
  CallInfo info;
};

/// Shared by the client, where its timers run, and the endpoint, where its method runs. Whatever
/// happens first (the answer, the deadline, a lost connection) becomes the reply, on the client's
/// scheduler; the rest is ignored. Thread-safe.
class Call : public std::enable_shared_from_this<Call> {
 public:
  explicit Call(CallContext context);
  virtual ~Call() = default;

  /// Sets out; the reply comes later, never inside.
  void Start();

  /// Looks for the task and goes there if it is found; without it, a call that does not wait fails.
  /// Nothing when the call has left already.
  void Try();

  /// Runs the method, and sends its result back. Called by the endpoint, once; may block. Nothing
  /// when nobody waits for the answer any more.
  virtual void Run(TaskService& service) = 0;

  /// Settles the call: its reply will be `error`, unless it has been settled before.
  virtual void Fail(absl::Status error) = 0;
  /// Replies with `error` inside this call, unless the reply has been made; for a plane that goes.
  virtual void FailNow(absl::Status error) = 0;

  const CallInfo& info() const { return context_.info; }

 protected:
  bool IsSettled() const;
  /// Settles the call: true once, for the one who then replies.
  bool Settle();
  /// True once, for the one who makes the reply now: a plane that goes may be quicker than a reply
  /// that has been posted.
  bool TakeReply();
  /// Posts `deliver` on the client's scheduler after the delay of the way back.
  void Return(std::function<void()> deliver);
  /// The same at once, for errors that the client's side itself sees.
  void PostHere(std::function<void()> deliver);

 private:
  void Poll();
  bool IsWaiting() const;
  bool Leave();

  const CallContext context_;
  const TimePoint started_;
  mutable Mutex mutex_;
  bool left_ WEIR_GUARDED_BY(mutex_) = false;
  bool settled_ WEIR_GUARDED_BY(mutex_) = false;
  bool replied_ WEIR_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Timer> deadline_ WEIR_GUARDED_BY(mutex_);
};

template <typename Result>
class TypedCall final : public Call {
 public:
  TypedCall(CallContext context, Method<Result> method, std::function<void(Result)> reply)
      : Call(std::move(context)), method_(std::move(method)), reply_(std::move(reply)) {}

  void Run(TaskService& service) override {
    if (IsSettled()) return;
    Return([self = Self(), result = method_(service)] {
      if (self->Settle() && self->TakeReply()) self->Reply(result);
    });
  }

  void Fail(absl::Status error) override {
    if (!Settle()) return;
    PostHere([self = Self(), result = Result(std::move(error))] {
      if (self->TakeReply()) self->Reply(result);
    });
  }

  void FailNow(absl::Status error) override {
    Settle();
    if (TakeReply()) Reply(Result(std::move(error)));
  }

 private:
  std::shared_ptr<TypedCall> Self() {
    return std::static_pointer_cast<TypedCall>(shared_from_this());
  }

  void Reply(const Result& result) {
    const std::function<void(Result)> reply = std::move(reply_);
    reply(result);
  }

  const Method<Result> method_;
  std::function<void(Result)> reply_;  // used by whoever takes the reply
};

}  // namespace weir::rpc
