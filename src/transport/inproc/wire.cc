#include "transport/inproc/wire.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/inproc/connection.h"
#include "transport/inproc/listener.h"

namespace weir::transport::inproc {
namespace {

constexpr int kPortMax = 65535;

}  // namespace

std::string AddressOf(int port) {
  return absl::StrCat("inproc:", port);
}

void Wire::SetFaults(const Faults& faults) {
  MutexLock lock(mutex_);
  faults_ = faults;
}

void Wire::SetFateFunction(FateFunction function) {
  MutexLock lock(fate_mutex_);
  fate_function_ = std::move(function);
}

Fate Wire::DecideFate(const FrameHeader& header) {
  MutexLock lock(fate_mutex_);
  return fate_function_ ? fate_function_(header) : DrawFate();
}

Fate Wire::DrawFate() {
  MutexLock lock(mutex_);
  if (Happens(faults_.lose)) return Fate::kLose;
  if (Happens(faults_.lose_inside)) return Fate::kLoseInside;
  if (Happens(faults_.duplicate)) return Fate::kDuplicate;
  if (Happens(faults_.split)) return Fate::kSplit;
  return Fate::kDeliver;
}

bool Wire::Happens(double probability) {
  if (probability <= 0) return false;
  constexpr std::uint64_t kParts = 1 << 20;
  return static_cast<double>(random_() % kParts) < probability * static_cast<double>(kParts);
}

Duration Wire::DrawDelay() {
  MutexLock lock(mutex_);
  const auto span = static_cast<std::uint64_t>((faults_.delay_max - faults_.delay_min).count());
  if (faults_.delay_max <= faults_.delay_min) return faults_.delay_min;
  return faults_.delay_min + Duration(random_() % (span + 1));
}

std::size_t Wire::Draw(std::size_t below) {
  MutexLock lock(mutex_);
  return random_() % below;
}

absl::StatusOr<int> Wire::Bind(int port, const std::shared_ptr<Acceptor>& acceptor) {
  MutexLock lock(mutex_);
  if (port == 0) {
    port = 1;
    while (acceptors_.contains(port)) ++port;
  }
  if (port < 0 || port > kPortMax) {
    return absl::InvalidArgumentError(absl::StrCat("no port: ", port));
  }
  if (!acceptors_.emplace(port, acceptor).second) {
    return absl::UnavailableError(
        absl::StrCat("listen on ", AddressOf(port), ": Address already in use"));
  }
  return port;
}

void Wire::Unbind(int port) {
  MutexLock lock(mutex_);
  acceptors_.erase(port);
}

std::shared_ptr<Acceptor> Wire::FindAcceptor(int port) {
  MutexLock lock(mutex_);
  const auto found = acceptors_.find(port);
  return found == acceptors_.end() ? nullptr : found->second.lock();
}

int Wire::NextClient() {
  MutexLock lock(mutex_);
  return ++clients_;
}

void Wire::AddAccepted(int port, const std::shared_ptr<Connection>& connection) {
  MutexLock lock(mutex_);
  std::vector<std::weak_ptr<Connection>>& accepted = accepted_[port];
  std::erase_if(accepted, [](const auto& other) { return other.expired(); });
  accepted.push_back(connection);
}

void Wire::LoseConnections(const std::string& address) {
  std::vector<std::weak_ptr<Connection>> accepted;
  {
    MutexLock lock(mutex_);
    for (auto& [port, connections] : accepted_) {
      if (AddressOf(port) == address) accepted.swap(connections);
    }
  }
  for (const std::weak_ptr<Connection>& weak : accepted) {
    if (const std::shared_ptr<Connection> connection = weak.lock()) connection->Lose();
  }
}

}  // namespace weir::transport::inproc
