#include "rpc/grpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::rpc {
namespace {

int Milliseconds(Duration duration) {
  const std::int64_t count =
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<std::int64_t>(count, 1, std::numeric_limits<int>::max()));
}

/// localhost is not looked up: gRPC's resolver (c-ares) loses its name each time, and servers at
/// localhost listen at 127.0.0.1 too.
std::string Target(const HostPort& address) {
  if (address.host != "localhost") return address.ToString();
  return HostPort{"127.0.0.1", address.port}.ToString();
}

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(const HostPort& address, const GrpcOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  arguments.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, Milliseconds(options.backoff_min));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(options.backoff_max));
  // Despite its name this one bounds the attempt itself.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(options.connect_timeout));
  return grpc::CreateCustomChannel(Target(address), grpc::InsecureChannelCredentials(), arguments);
}

ChannelSource::ChannelSource(const HostPort& address, const GrpcOptions& options)
    : address_(address), options_(options), main_(NewChannel(address, options)) {}

std::shared_ptr<grpc::Channel> ChannelSource::ChannelFor(bool wait_for_ready) {
  if (wait_for_ready || main_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_TRANSIENT_FAILURE)
    return main_;
  Poke();
  return NewChannel(address_, options_);
}

void ChannelSource::Poke() {
  grpc::experimental::ChannelResetConnectionBackoff(main_.get());
}

}  // namespace weir::rpc
