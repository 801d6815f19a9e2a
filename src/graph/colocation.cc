#include "graph/colocation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"

namespace weir::graph {

absl::StatusOr<ColocationGroups> ColocationGroups::Build(const GraphDef& graph, bool soft) {
  ColocationGroups groups(soft);
  std::vector<std::string> errors;
  groups.ParseRequests(graph, errors);
  groups.JoinVariables(graph);
  groups.JoinColocated(graph, errors);
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  return groups;
}

void ColocationGroups::ParseRequests(const GraphDef& graph, std::vector<std::string>& errors) {
  const std::size_t count = graph.nodes.size();
  parents_.resize(count);
  groups_.resize(count);
  requests_.resize(count);
  for (std::size_t n = 0; n < count; ++n) {
    const Node& node = graph.nodes[n];
    if (absl::StatusOr<DeviceSpec> request = DeviceSpec::Parse(node.device); request.ok()) {
      requests_[n] = *request;
    } else {
      errors.push_back(absl::StrCat("Malformed device specification '", node.device,
                                    "' of operation '", node.name,
                                    "': ", request.status().message()));
    }
    parents_[n] = static_cast<int>(n);
    groups_[n] = {.request = requests_[n], .members = {static_cast<int>(n)}};
  }
}

void ColocationGroups::JoinVariables(const GraphDef& graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const OpInfo* op = FindOp(node.op);
    if (op == nullptr) continue;
    const int handles = std::min(op->handles, NumDataInputs(node));
    for (int i = 0; i < handles; ++i)
      JoinUser(GroupOf(node.inputs[static_cast<std::size_t>(i)].node),
               GroupOf(static_cast<int>(n)));
  }
}

// Where a variable is used is not where it lives: a user's own requests give way.
void ColocationGroups::JoinUser(int variable, int user) {
  if (variable == user) return;
  absl::StatusOr<DeviceSpec> merged = MergeRequests(request(variable), request(user), soft_);
  if (!merged.ok()) {
    DropRequests(user);
    merged = request(variable);
  }
  Unite(variable, user, *merged);
}

void ColocationGroups::JoinColocated(const GraphDef& graph, std::vector<std::string>& errors) {
  const auto index = IndexByName(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.colocation.empty()) continue;
    const auto found = index.find(node.colocation);
    if (found == index.end()) {
      errors.push_back(absl::StrCat("Operation '", node.name, "' is colocated with '",
                                    node.colocation, "', which is not in the graph"));
      continue;
    }
    const int with = GroupOf(found->second);
    const int group = GroupOf(static_cast<int>(n));
    if (with == group) continue;
    const absl::StatusOr<DeviceSpec> merged = MergeRequests(request(with), request(group), soft_);
    if (merged.ok()) {
      Unite(with, group, *merged);
    } else {
      errors.push_back(
          DescribeConflict(graph, static_cast<int>(n), found->second, merged.status()));
    }
  }
}

void ColocationGroups::Unite(int kept, int absorbed, const DeviceSpec& request) {
  // The smaller group moves, so that a node moves at most log n times.
  if (members(kept).size() < members(absorbed).size()) std::swap(kept, absorbed);
  Group& to = groups_[static_cast<std::size_t>(kept)];
  Group& from = groups_[static_cast<std::size_t>(absorbed)];
  to.request = request;
  for (const int member : from.members) parents_[static_cast<std::size_t>(member)] = kept;
  to.members.insert(to.members.end(), from.members.begin(), from.members.end());
  from.members.clear();
}

void ColocationGroups::DropRequests(int group) {
  for (const int member : members(group)) requests_[static_cast<std::size_t>(member)] = {};
}

int ColocationGroups::FindOpponent(int group, const DeviceSpec& other) const {
  for (const int member : members(group)) {
    if (!MergeRequests(own_request(member), other).ok()) return member;
  }
  return group;
}

std::string ColocationGroups::DescribeConflict(const GraphDef& graph, int node, int with,
                                               const absl::Status& why) const {
  const int mine = FindOpponent(GroupOf(node), request(GroupOf(with)));
  const int theirs = FindOpponent(GroupOf(with), own_request(mine));
  const auto asks = [&](int member) {
    return absl::StrCat("'", NodeAt(graph, member).name, "' asks for ",
                        own_request(member).ToString());
  };
  return absl::StrCat("Cannot colocate nodes '", NodeAt(graph, node).name, "' and '",
                      NodeAt(graph, with).name, "': ", why.message(), " (", asks(mine), ", ",
                      asks(theirs), ")");
}

}  // namespace weir::graph
