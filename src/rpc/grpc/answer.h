// One call at the gRPC server.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>

namespace weir::rpc {

/// The answer of a call, given once: by the thread that ran the service, or by the cancellation
/// (the client's deadline, a lost connection, a server that closes), whichever comes first. Lives
/// until gRPC is done with it and nobody else holds it.
class Answer final : public grpc::ServerUnaryReactor {
 public:
  static std::shared_ptr<Answer> New() {
    auto answer = std::make_shared<Answer>();
    answer->self_ = answer;
    return answer;
  }

  /// Takes the right to answer: true once. Only who has it may touch the reply's message, and must
  /// then call Finish().
  bool Claim() { return !given_.exchange(true); }

  /// Nobody waits for an answer any more.
  bool IsGiven() const { return given_.load(); }

 private:
  void OnCancel() override {
    if (Claim()) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    // `self_` may be the last owner.
    const std::shared_ptr<Answer> self = std::move(self_);
  }

  std::atomic<bool> given_ = false;
  std::shared_ptr<Answer> self_;  // until OnDone
};

}  // namespace weir::rpc
