#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "graph/colocation.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"

namespace weir::graph {
namespace {

constexpr int kUnplaced = -1;
constexpr std::size_t kListedDevicesMax = 64;
constexpr char kKernelType[] = "CPU";

// Operators that look at a tensor's sizes, not at its elements.
constexpr std::array<std::string_view, 6> kMetadataOperators = {
    "aten::_shape_as_tensor", "aten::dim",     "aten::numel", "aten::size",
    "aten::sym_numel",        "aten::sym_size"};

bool IsGenerator(const Node& node) {
  return NumDataInputs(node) == 0 && node.outputs.size() == 1 &&
         node.outputs[0].dtype != at::ScalarType::Undefined && node.op != "Variable";
}

bool IsMetadata(const Node& node) {
  return node.op == "Aten" && NumDataInputs(node) == 1 &&
         std::ranges::find(kMetadataOperators, AttrOr<std::string>(node, "operator", "")) !=
             kMetadataOperators.end();
}

// One run of PlaceGraph. Devices are positions in devices_, ordered by job, task and number.
class Placer {
 public:
  Placer(GraphDef& graph, const DeviceSet& devices, const ColocationGroups& groups)
      : graph_(graph),
        set_(devices),
        groups_(groups),
        devices_(devices.devices),
        uses_(FindUses(graph)),
        placed_(graph.nodes.size(), kUnplaced),
        failed_(graph.nodes.size(), false) {
    std::ranges::sort(devices_, {}, [](const DeviceSpec& device) {
      return std::tuple(device.job, device.task, device.type, device.id);
    });
  }

  absl::Status Run() {
    // Nodes that follow others are decided when the others are.
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!IsGenerator(node) && !IsMetadata(node)) PlaceGroupOf(static_cast<int>(n));
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) PlaceGroupOf(static_cast<int>(n));
    if (!errors_.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
    WriteDevices();
    return absl::OkStatus();
  }

 private:
  int PlacementOf(int node) const {
    return placed_[static_cast<std::size_t>(groups_.GroupOf(node))];
  }

  void PlaceGroupOf(int node) {
    const auto group = static_cast<std::size_t>(groups_.GroupOf(node));
    if (placed_[group] != kUnplaced || failed_[group]) return;
    const std::vector<int> candidates = Candidates(static_cast<int>(group));
    if (candidates.empty()) {
      failed_[group] = true;
      errors_.push_back(Explain(static_cast<int>(group)));
      return;
    }
    const int preferred = PreferredDevice(node);
    const bool possible = std::ranges::find(candidates, preferred) != candidates.end();
    placed_[group] = possible ? preferred : DefaultDevice(candidates);
  }

  // A Function is a callable of this process: no other task has it.
  std::optional<int> FunctionIn(int group) const {
    for (const int member : groups_.members(group)) {
      if (NodeAt(graph_, member).op == "Function") return member;
    }
    return std::nullopt;
  }

  std::vector<int> Candidates(int group) const {
    const DeviceSpec& request = groups_.request(group);
    std::vector<int> candidates = Candidates(group, request);
    if (!candidates.empty() || !set_.soft_placement) return candidates;
    DeviceSpec task = request;
    task.type.reset();
    task.id.reset();
    return Candidates(group, task);
  }

  std::vector<int> Candidates(int group, const DeviceSpec& request) const {
    const bool session_only = FunctionIn(group).has_value();
    std::vector<int> candidates;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const DeviceSpec& device = devices_[d];
      if (device.type != kKernelType || !Matches(request, device)) continue;
      if (session_only && !IsSessions(device)) continue;
      candidates.push_back(static_cast<int>(d));
    }
    return candidates;
  }

  bool IsSessions(const DeviceSpec& device) const { return device.task_id() == set_.session_task; }

  int DefaultDevice(const std::vector<int>& candidates) const {
    for (const int d : candidates) {
      if (IsSessions(devices_[static_cast<std::size_t>(d)])) return d;
    }
    return candidates.front();
  }

  // Heuristics A and B; kUnplaced where neither applies.
  int PreferredDevice(int node) const {
    if (IsMetadata(NodeAt(graph_, node))) {
      return PlacementOf(NodeAt(graph_, node).inputs[0].node);
    }
    return IsGenerator(NodeAt(graph_, node)) ? CommonConsumerDevice(node) : kUnplaced;
  }

  int CommonConsumerDevice(int node) const {
    int common = kUnplaced;
    for (const Use& use : uses_[static_cast<std::size_t>(node)]) {
      // Gradients stands for nodes that come later, each on a device of its own.
      if (NodeAt(graph_, use.node).op == "Gradients") continue;
      const int device = PlacementOf(use.node);
      if (device == kUnplaced || (common != kUnplaced && device != common)) return kUnplaced;
      common = device;
    }
    return common;
  }

  // The member that is to blame: whose request alone matches nothing, else the first that asks.
  int Culprit(int group) const {
    if (const auto function = FunctionIn(group)) return *function;
    const auto& members = groups_.members(group);
    const auto unmatched = std::ranges::find_if(members, [&](int member) {
      return std::ranges::none_of(devices_, [&](const DeviceSpec& device) {
        return device.type == kKernelType && Matches(groups_.own_request(member), device);
      });
    });
    if (unmatched != members.end()) return *unmatched;
    const auto asking = std::ranges::find_if(
        members, [&](int member) { return groups_.own_request(member) != DeviceSpec(); });
    return asking != members.end() ? *asking : members.front();
  }

  std::string Explain(int group) const {
    const DeviceSpec& request = groups_.request(group);
    const std::string start = absl::StrCat("Cannot assign a device for operation '",
                                           NodeAt(graph_, Culprit(group)).name, "': ");
    const auto other_type = std::ranges::find_if(devices_, [&](const DeviceSpec& device) {
      return device.type != kKernelType && Matches(request, device);
    });
    if (other_type != devices_.end()) {
      return absl::StrCat(start, "Could not satisfy explicit device specification '",
                          request.ToString(), "' because no supported kernel for ",
                          *other_type->type, " devices is available.");
    }
    const std::string asked = request == DeviceSpec() ? "any device" : request.ToString();
    return absl::StrCat(start, "was explicitly assigned to ", asked,
                        " but available devices are [ ", ListDevices(), " ]. ",
                        FunctionIn(group) ? FunctionHint() : RequestHint(request));
  }

  std::string FunctionHint() const {
    return absl::StrCat("A Function runs only in the process that made it, on ",
                        set_.session_task.ToString(), ".");
  }

  std::string RequestHint(const DeviceSpec& request) const {
    std::set<std::string> jobs;
    std::set<int> tasks;
    for (const DeviceSpec& device : devices_) {
      jobs.insert(*device.job);
      if (device.job == request.job) tasks.insert(*device.task);
    }
    const std::string start = "Make sure the device specification refers to a valid device";
    if (!request.job) return start + ".";
    if (tasks.empty()) {
      return absl::StrCat(start, ": there is no job ", *request.job, ", jobs are ",
                          absl::StrJoin(jobs, ", "), ".");
    }
    const int last = *tasks.rbegin();
    const bool dense = static_cast<std::size_t>(last) + 1 == tasks.size();
    return absl::StrCat(start, ": job ", *request.job, " has tasks ",
                        dense ? absl::StrCat("0..", last) : absl::StrJoin(tasks, ", "), ".");
  }

  std::string ListDevices() const {
    std::vector<std::string> names;
    for (const DeviceSpec& device : devices_) {
      if (names.size() == kListedDevicesMax) {
        names.push_back(absl::StrCat("and ", devices_.size() - names.size(), " more"));
        break;
      }
      names.push_back(device.ToString());
    }
    return absl::StrJoin(names, ", ");
  }

  void WriteDevices() {
    std::vector<std::string> names;
    for (const DeviceSpec& device : devices_) names.push_back(device.ToString());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      graph_.nodes[n].device = names[static_cast<std::size_t>(PlacementOf(static_cast<int>(n)))];
    }
  }

  GraphDef& graph_;
  const DeviceSet& set_;
  const ColocationGroups& groups_;
  std::vector<DeviceSpec> devices_;
  const std::vector<std::vector<Use>> uses_;
  std::vector<int> placed_;  // by group
  std::vector<bool> failed_;
  std::vector<std::string> errors_;
};

absl::Status CheckDevices(const DeviceSet& set) {
  if (set.devices.empty()) return absl::InvalidArgumentError("No devices are registered");
  for (const DeviceSpec& device : set.devices) {
    if (!device.has_task() || !device.type || !device.id) {
      return absl::InvalidArgumentError(
          absl::StrCat("Device '", device.ToString(), "' of the device set is not complete"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PlaceGraph(GraphDef& graph, const DeviceSet& devices) {
  WEIR_RETURN_IF_ERROR(CheckDevices(devices));
  WEIR_ASSIGN_OR_RETURN(const ColocationGroups groups,
                        ColocationGroups::Build(graph, devices.soft_placement));
  return Placer(graph, devices, groups).Run();
}

}  // namespace weir::graph
