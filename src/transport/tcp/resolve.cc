#include "transport/tcp/resolve.h"

#include <netdb.h>

#include <asio/ip/address.hpp>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weir::transport::tcp {
namespace {

/// The endpoint of a host that is an address in numbers already.
std::optional<asio::ip::tcp::endpoint> FromNumbers(const HostPort& target) {
  std::error_code error;
  const asio::ip::address address = asio::ip::make_address(target.host, error);
  if (error) return std::nullopt;
  return asio::ip::tcp::endpoint(address, static_cast<unsigned short>(target.port));
}

absl::StatusOr<Endpoints> AskForName(const HostPort& target) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = absl::StrCat(target.port);
  if (const int error = ::getaddrinfo(target.host.c_str(), port.c_str(), &hints, &list);
      error != 0) {
    return absl::UnavailableError(
        absl::StrCat("unknown host '", target.host, "': ", ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  Endpoints endpoints;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    endpoint.resize(entry->ai_addrlen);
    endpoints.push_back(endpoint);
  }
  if (endpoints.empty()) {
    return absl::UnavailableError(absl::StrCat("host '", target.host, "' has no address"));
  }
  return endpoints;
}

}  // namespace

absl::StatusOr<Endpoints> Resolve(const HostPort& target) {
  if (const auto endpoint = FromNumbers(target)) return Endpoints{*endpoint};
  return AskForName(target);
}

void ResolveOnLoop(std::shared_ptr<Loop> loop, const HostPort& target,
                   std::function<void(absl::StatusOr<Endpoints>)> done) {
  if (const auto endpoint = FromNumbers(target)) {
    loop->Post([done = std::move(done), endpoint = *endpoint] { done(Endpoints{endpoint}); });
    return;
  }
  std::thread([loop = std::move(loop), target, done = std::move(done)]() mutable {
    absl::StatusOr<Endpoints> endpoints = AskForName(target);
    loop->Post([done = std::move(done), endpoints = std::move(endpoints)]() mutable {
      done(std::move(endpoints));
    });
  }).detach();
}

std::string ToString(const asio::ip::tcp::endpoint& endpoint) {
  return HostPort{endpoint.address().to_string(), endpoint.port()}.ToString();
}

std::string ErrorText(const std::error_code& error) {
  return error.message();
}

}  // namespace weir::transport::tcp
