// The connection of a client to its task.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "cluster/host_port.h"
#include "rpc/grpc/options.h"

namespace weir::rpc {

/// A channel that shares no connection, and no memory of failed attempts, with any other.
std::shared_ptr<grpc::Channel> NewChannel(const HostPort& address, const GrpcOptions& options);

/// Chooses a channel for each call to one task. Thread-safe.
class ChannelSource {
 public:
  ChannelSource(const HostPort& address, const GrpcOptions& options);

  /// After a failed attempt to connect, gRPC answers calls that do not wait with that old error
  /// until its pause is over, though the task may have come up since. Such a call gets a channel
  /// of its own, and with it a new attempt.
  std::shared_ptr<grpc::Channel> ChannelFor(bool wait_for_ready);

  /// Ends the pause between two attempts to connect.
  void Poke();

 private:
  const HostPort address_;
  const GrpcOptions options_;
  const std::shared_ptr<grpc::Channel> main_;
};

}  // namespace weir::rpc
