// Which nodes must share a device, and what is asked of each such group.
//
// Two things bind nodes together (colocation_graph.cc of the original): a variable's handle, which
// never leaves the variable's device, and an explicit `colocation`. They differ when requests
// conflict: across a handle the variable's side wins silently, across an explicit colocation the
// conflict is the user's and is reported with both places and who asked for them.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "cluster/device.h"
#include "weir/graph.h"

namespace weir::graph {

class ColocationGroups {
 public:
  /// InvalidArgument lists every malformed device, unknown colocation and conflict. With `soft`,
  /// one of type or number is none: what is in conflict is dropped.
  static absl::StatusOr<ColocationGroups> Build(const GraphDef& graph, bool soft = false);

  /// The group of a node; groups are named by one of their members.
  int GroupOf(int node) const { return parents_[static_cast<std::size_t>(node)]; }
  /// What its members ask for, merged.
  const DeviceSpec& request(int group) const {
    return groups_[static_cast<std::size_t>(group)].request;
  }
  const std::vector<int>& members(int group) const {
    return groups_[static_cast<std::size_t>(group)].members;
  }
  /// What this node contributes to it: its own request, empty when the variable's side won.
  const DeviceSpec& own_request(int node) const {
    return requests_[static_cast<std::size_t>(node)];
  }

 private:
  explicit ColocationGroups(bool soft) : soft_(soft) {}

  struct Group {
    DeviceSpec request;
    std::vector<int> members;
  };

  void ParseRequests(const GraphDef& graph, std::vector<std::string>& errors);
  void JoinVariables(const GraphDef& graph);
  void JoinUser(int variable, int user);
  void JoinColocated(const GraphDef& graph, std::vector<std::string>& errors);
  void Unite(int kept, int absorbed, const DeviceSpec& request);
  void DropRequests(int group);
  std::string DescribeConflict(const GraphDef& graph, int node, int with,
                               const absl::Status& why) const;
  /// The member of `group` whose own request cannot be merged with `other`.
  int FindOpponent(int group, const DeviceSpec& other) const;

  bool soft_;
  std::vector<int> parents_;          // by node: its group
  std::vector<Group> groups_;         // by node; only those of roots are in use
  std::vector<DeviceSpec> requests_;  // by node
};

}  // namespace weir::graph
