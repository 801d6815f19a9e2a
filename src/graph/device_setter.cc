#include "weir/device_setter.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cluster/device.h"
#include "graph/op_registry.h"

namespace weir {
namespace {

constexpr std::size_t kMd5Bytes = 16;

std::uint64_t SaturatingMultiply(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return a != 0 && b > kMax / a ? kMax : a * b;
}

std::uint64_t SaturatingAdd(std::uint64_t a, std::uint64_t b) {
  return a + std::min(b, std::numeric_limits<std::uint64_t>::max() - a);
}

std::uint64_t BytesOf(const Node& variable) {
  const auto dtype = graph::AttrOr<at::ScalarType>(variable, "dtype", at::ScalarType::Undefined);
  std::uint64_t bytes = dtype == at::ScalarType::Undefined ? 1 : c10::elementSize(dtype);
  for (const std::int64_t dim : graph::AttrOr<std::vector<std::int64_t>>(variable, "shape", {})) {
    bytes = SaturatingMultiply(bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(dim, 0)));
  }
  return bytes;
}

// The digest, read as one big-endian number, modulo `tasks`.
int HashTask(const std::string& text, int tasks) {
  std::array<unsigned char, kMd5Bytes> digest{};
  unsigned int length = 0;
  WEIR_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_md5(), nullptr) == 1);
  WEIR_CHECK(length == kMd5Bytes);
  std::uint64_t remainder = 0;
  for (const unsigned char byte : digest) {
    remainder = (remainder * 256 + byte) % static_cast<std::uint64_t>(tasks);
  }
  return static_cast<int>(remainder);
}

// Deals variables out; one for one graph.
class Dealer {
 public:
  explicit Dealer(const ReplicaDeviceSetterOptions& options)
      : options_(options), loads_(static_cast<std::size_t>(options.ps_tasks), 0) {}

  int NextTask(const Node& variable) {
    switch (options_.strategy) {
      case PlacementStrategy::kRoundRobin:
        return std::exchange(next_, (next_ + 1) % options_.ps_tasks);
      case PlacementStrategy::kRandom:
        return HashTask(absl::StrCat(variable.name, "_", options_.seed), options_.ps_tasks);
      case PlacementStrategy::kGreedyBytes:
        break;
    }
    const auto least = std::ranges::min_element(loads_);
    return static_cast<int>(least - loads_.begin());
  }

  // Counts what a task holds, whoever put it there.
  void Charge(int task, const Node& variable) {
    if (task < 0 || task >= options_.ps_tasks) return;
    std::uint64_t& load = loads_[static_cast<std::size_t>(task)];
    load = SaturatingAdd(load, BytesOf(variable));
  }

 private:
  const ReplicaDeviceSetterOptions options_;
  std::vector<std::uint64_t> loads_;
  int next_ = 0;
};

class Setter {
 public:
  explicit Setter(const ReplicaDeviceSetterOptions& options)
      : options_(options), dealer_(options) {}

  absl::StatusOr<DeviceSpec> Choose(const Node& node) {
    WEIR_ASSIGN_OR_RETURN(const DeviceSpec current, DeviceSpec::Parse(node.device));
    if (node.op == "Variable" && !options_.ps_device.empty()) return ChoosePs(node, current);
    WEIR_ASSIGN_OR_RETURN(const DeviceSpec worker, DeviceSpec::Parse(options_.worker_device));
    return MergeScopes(worker, current);
  }

 private:
  // A task is drawn only for the job that the setter deals for.
  absl::StatusOr<DeviceSpec> ChoosePs(const Node& node, const DeviceSpec& current) {
    WEIR_ASSIGN_OR_RETURN(DeviceSpec ps, DeviceSpec::Parse(options_.ps_device));
    if (!ps.job || (current.job && current.job != ps.job)) return MergeScopes(ps, current);
    ps.task = dealer_.NextTask(node);
    DeviceSpec chosen = MergeScopes(ps, current);
    dealer_.Charge(*chosen.task, node);
    return chosen;
  }

  const ReplicaDeviceSetterOptions options_;
  Dealer dealer_;
};

}  // namespace

DeviceFunction ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options) {
  if (options.ps_tasks <= 0) return [](const Node& node) { return node.device; };
  auto setter = std::make_shared<Setter>(options);
  return
      [setter, merge = options.merge_devices, fallback = options](const Node& node) -> std::string {
        if (graph::FollowsVariable(node) || (!merge && !node.device.empty())) return node.device;
        const absl::StatusOr<DeviceSpec> device = setter->Choose(node);
        if (device.ok()) return device->ToString();
        // A device string that cannot be read goes on to the graph, which reports it with the
        // node's name.
        if (!DeviceSpec::Parse(node.device).ok()) return node.device;
        return node.op == "Variable" ? fallback.ps_device : fallback.worker_device;
      };
}

}  // namespace weir
