#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cluster/text.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/why_unknown.h"
#include "tensor/dtype.h"

namespace weir::graph {
namespace {

constexpr int kDropped = -1;

// What a signature's names mean in a graph.
class Resolver {
 public:
  explicit Resolver(const GraphDef& graph) : graph_(graph), index_(IndexByName(graph)) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (node.op != "Read" || node.inputs.empty()) continue;
      reads_.emplace(node.inputs[0].node, static_cast<int>(n));
    }
  }

  absl::StatusOr<int> Target(const std::string& name) const {
    const auto found = index_.find(name);
    if (found == index_.end()) {
      return absl::NotFoundError(absl::StrCat("target ", Quote(name), ": no such node"));
    }
    return found->second;
  }

  // A variable's name means the value that its Read gives.
  absl::StatusOr<Edge> Tensor(const char* role, const std::string& name) const {
    WEIR_ASSIGN_OR_RETURN(Edge edge, Find(role, name));
    if (NodeAt(graph_, edge.node).op == "Variable") {
      const auto read = reads_.find(edge.node);
      if (read != reads_.end()) edge = {.node = read->second, .output = 0};
    }
    const Node& node = NodeAt(graph_, edge.node);
    const auto output = static_cast<std::size_t>(edge.output);
    if (node.outputs.empty() ||
        (output < node.outputs.size() && node.outputs[output].dtype == at::ScalarType::Undefined)) {
      return absl::InvalidArgumentError(absl::StrCat(role, " '", name, "': operation '", node.name,
                                                     "' (", node.op, ") gives no tensor",
                                                     WhyUnknown(graph_, edge.node)));
    }
    if (output >= node.outputs.size()) {
      return absl::NotFoundError(absl::StrCat(role, " '", name, "': operation '", node.name,
                                              "' has only ", node.outputs.size(), " outputs"));
    }
    return edge;
  }

 private:
  absl::StatusOr<Edge> Find(const char* role, const std::string& name) const {
    if (const auto found = index_.find(name); found != index_.end()) {
      return Edge{.node = found->second, .output = 0};
    }
    const std::size_t colon = name.rfind(':');
    if (colon != std::string::npos) {
      const auto found = index_.find(std::string_view(name).substr(0, colon));
      const auto output = ParseIndex(std::string_view(name).substr(colon + 1));
      if (found != index_.end() && output) return Edge{.node = found->second, .output = *output};
    }
    return absl::NotFoundError(absl::StrCat(role, " ", Quote(name), ": no such node"));
  }

  const GraphDef& graph_;
  const absl::flat_hash_map<std::string_view, int> index_;
  std::map<int, int> reads_;  // variable -> its first Read
};

class Pruner {
 public:
  Pruner(const GraphDef& graph, const Signature& signature, const TaskId& session_task)
      : graph_(graph),
        signature_(signature),
        device_(DeviceSpec::FullCpu(session_task).ToString()),
        names_(graph),
        needed_(graph.nodes.size(), false) {}

  absl::StatusOr<GraphDef> Run() {
    WEIR_RETURN_IF_ERROR(Resolve());
    MarkNeeded();
    WEIR_RETURN_IF_ERROR(CheckPlaceholders());
    AddFeeds();
    AddNodes();
    AddFetches();
    return std::move(result_);
  }

 private:
  struct FeedPoint {
    std::size_t index = 0;  // among the signature's feeds
    bool needed = false;
    int node = kDropped;  // in the result
  };
  using Key = std::pair<int, int>;  // node, output

  absl::Status Resolve() {
    const Resolver resolver(graph_);
    for (std::size_t i = 0; i < signature_.feeds.size(); ++i) {
      WEIR_ASSIGN_OR_RETURN(const Edge edge, resolver.Tensor("feed", signature_.feeds[i]));
      if (!feeds_.emplace(Key(edge.node, edge.output), FeedPoint{.index = i}).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", TensorName(graph_, edge), "' is fed twice"));
      }
    }
    for (const std::string& fetch : signature_.fetches) {
      WEIR_ASSIGN_OR_RETURN(const Edge edge, resolver.Tensor("fetch", fetch));
      fetches_.push_back(edge);
    }
    for (const std::string& target : signature_.targets) {
      WEIR_ASSIGN_OR_RETURN(const int node, resolver.Target(target));
      targets_.push_back(node);
    }
    return absl::OkStatus();
  }

  FeedPoint* FeedOf(const Edge& edge) {
    const auto found = feeds_.find({edge.node, edge.output});
    return found == feeds_.end() ? nullptr : &found->second;
  }

  // A fed placeholder is there before the step begins: nobody has to wait for it.
  bool IsFedPlaceholder(int node) {
    return NodeAt(graph_, node).op == "Placeholder" &&
           FeedOf({.node = node, .output = 0}) != nullptr;
  }

  void MarkNeeded() {
    for (const Edge& edge : fetches_) Need(edge);
    for (const int node : targets_) Need({.node = node, .output = Edge::kControl});
    while (!stack_.empty()) {
      const int node = stack_.back();
      stack_.pop_back();
      for (const Edge& input : NodeAt(graph_, node).inputs) Need(input);
    }
  }

  void Need(const Edge& edge) {
    if (FeedPoint* feed = FeedOf(edge)) {
      feed->needed = true;
      return;
    }
    if (edge.is_control() && IsFedPlaceholder(edge.node)) return;
    const auto node = static_cast<std::size_t>(edge.node);
    if (needed_[node]) return;
    needed_[node] = true;
    stack_.push_back(edge.node);
  }

  absl::Status CheckPlaceholders() const {
    std::vector<std::string> missing;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (needed_[n] && node.op == "Placeholder") missing.push_back(Describe(node));
    }
    if (missing.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("You must feed a value for placeholder ", absl::StrJoin(missing, ", ")));
  }

  static std::string Describe(const Node& node) {
    if (node.outputs.empty()) return absl::StrCat("'", node.name, "'");
    const OutputInfo& output = node.outputs[0];
    std::string text = absl::StrCat("'", node.name, "' with dtype ", DtypeName(output.dtype));
    if (output.shape) {
      absl::StrAppend(&text, " and shape [", absl::StrJoin(*output.shape, ","), "]");
    }
    return text;
  }

  int Add(Node node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<int>(result_.nodes.size()) - 1;
  }

  void AddFeeds() {
    result_.seed = graph_.seed;
    std::vector<std::pair<Edge, FeedPoint*>> needed;
    for (auto& [key, feed] : feeds_) {
      if (feed.needed) needed.push_back({Edge{.node = key.first, .output = key.second}, &feed});
    }
    std::ranges::sort(needed, {}, [](const auto& entry) { return entry.second->index; });
    for (const auto& [edge, feed] : needed) {
      OutputInfo output = InfoOf(graph_, edge);
      output.differentiable = false;
      Node node;
      node.name = names_.Make("feed/" + TensorNamePart(graph_, edge));
      node.op = "Feed";
      node.device = device_;
      node.attrs["index"] = static_cast<std::int64_t>(feed->index);
      node.outputs = {std::move(output)};
      feed->node = Add(std::move(node));
    }
  }

  // Two rounds, as a control edge may lead to a node that comes before.
  void AddNodes() {
    new_index_.assign(graph_.nodes.size(), kDropped);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (needed_[n]) new_index_[n] = Add(graph_.nodes[n]);
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (needed_[n]) Reconnect(NodeAt(result_, new_index_[n]));
    }
  }

  void Reconnect(Node& node) {
    std::vector<Edge> inputs;
    for (const Edge& input : node.inputs) {
      if (input.is_control() && IsFedPlaceholder(input.node)) continue;
      inputs.push_back(NewEdge(input));
    }
    node.inputs = std::move(inputs);
  }

  Edge NewEdge(const Edge& edge) {
    if (const FeedPoint* feed = FeedOf(edge)) return {.node = feed->node, .output = 0};
    return {.node = new_index_[static_cast<std::size_t>(edge.node)], .output = edge.output};
  }

  void AddFetches() {
    for (std::size_t i = 0; i < fetches_.size(); ++i) {
      Node node;
      node.name = names_.Make("fetch/" + TensorNamePart(graph_, fetches_[i]));
      node.op = "Fetch";
      node.device = device_;
      node.attrs["index"] = static_cast<std::int64_t>(i);
      node.inputs = {NewEdge(fetches_[i])};
      Add(std::move(node));
    }
  }

  const GraphDef& graph_;
  const Signature& signature_;
  const std::string device_;
  FreshNames names_;
  std::map<Key, FeedPoint> feeds_;
  std::vector<Edge> fetches_;
  std::vector<int> targets_;
  std::vector<bool> needed_;  // by node of graph_
  std::vector<int> stack_;
  std::vector<int> new_index_;
  GraphDef result_;
};

}  // namespace

absl::StatusOr<GraphDef> PruneGraph(const GraphDef& placed, const Signature& signature,
                                    const TaskId& session_task) {
  return Pruner(placed, signature, session_task).Run();
}

}  // namespace weir::graph
