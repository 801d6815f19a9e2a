// What a step costs besides its operators: partitions of trivial nodes, run on the calling thread.
//
//   executor_bench            prints a table of microseconds per step
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/step.h"

namespace weir::executor {
namespace {

constexpr int kRounds = 7;
constexpr int kStepsPerRound = 2000;

int Add(GraphDef& graph, std::string op, std::vector<Edge> inputs, AttrMap attrs,
        std::size_t outputs = 1) {
  Node node;
  node.name = op + std::to_string(graph.nodes.size());
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.outputs.resize(outputs, {at::kFloat, std::vector<std::int64_t>{}, false});
  graph.nodes.push_back(std::move(node));
  return static_cast<int>(graph.nodes.size()) - 1;
}

/// A feed, `nodes` - 2 nodes in a chain, a fetch.
graph::PartitionDef Chain(int nodes, const std::function<int(GraphDef&, int)>& link) {
  graph::PartitionDef partition;
  partition.device = "/job:worker/replica:0/task:0/device:CPU:0";
  GraphDef& graph = partition.graph;
  int last = Add(graph, "Feed", {}, {{"index", std::int64_t{0}}});
  for (int i = 2; i < nodes; ++i) last = link(graph, last);
  Add(graph, "Fetch", {{last, 0}}, {{"index", std::int64_t{0}}}, 0);
  return partition;
}

/// `pairs` values that are sent, and received by the same partition.
graph::PartitionDef Transfers(int pairs) {
  graph::PartitionDef partition;
  partition.device = "/job:worker/replica:0/task:0/device:CPU:0";
  GraphDef& graph = partition.graph;
  const int feed = Add(graph, "Feed", {}, {{"index", std::int64_t{0}}});
  for (std::int64_t edge = 1; edge <= pairs; ++edge) {
    Add(graph, "Send", {{feed, 0}}, {{"edge", edge}, {"to", partition.device}}, 0);
    Add(graph, "Recv", {}, {{"edge", edge}, {"from", partition.device}});
  }
  return partition;
}

void RunStep(const std::shared_ptr<const Program>& program, std::uint64_t number,
             const at::Tensor& feed) {
  StepEnvironment environment;
  environment.id = {1, number};
  environment.rendezvous = std::make_shared<StepRendezvous>();
  environment.post = [](const std::function<void()>& work) { work(); };
  environment.send = [rendezvous = environment.rendezvous.get()](const SendEdge& edge,
                                                                 Value value) {
    WEIR_CHECK(rendezvous->Put(edge.edge, std::move(value)).ok());
  };
  environment.feeds = {feed};
  StartStep(program, std::move(environment),
            [](const StepOutcome& outcome) { WEIR_CHECK(outcome.status.ok()); });
}

/// Microseconds per step, the best round: what disturbs a measurement only ever adds to it.
double Measure(const graph::PartitionDef& partition) {
  store::VariableStore store;
  CompileEnvironment environment;
  environment.store = &store;
  const auto program = Program::Compile(partition, environment);
  WEIR_CHECK(program.ok());
  const at::Tensor feed = at::ones({});
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < kStepsPerRound; ++step) {
      RunStep(*program, static_cast<std::uint64_t>(step), feed);
    }
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / kStepsPerRound);
  }
  return best;
}

void Run() {
  at::set_num_threads(1);
  const auto identity = [](GraphDef& graph, int last) {
    return Add(graph, "Identity", {{last, 0}}, {});
  };
  const auto neg = [](GraphDef& graph, int last) {
    return Add(graph, "Aten", {{last, 0}},
               {{"operator", std::string("aten::neg")}, {"overload", std::string()}});
  };
  std::printf("%-40s %10s\n", "one step of", "us");
  for (const int nodes : {2, 10, 100, 1000}) {
    std::printf("%5d %-34s %10.2f\n", nodes, "nodes, identities", Measure(Chain(nodes, identity)));
  }
  for (const int nodes : {10, 100}) {
    std::printf("%5d %-34s %10.2f\n", nodes, "nodes, aten::neg of a scalar",
                Measure(Chain(nodes, neg)));
  }
  for (const int pairs : {1, 10, 100}) {
    std::printf("%5d %-34s %10.2f\n", pairs, "pairs of Send and Recv", Measure(Transfers(pairs)));
  }
}

}  // namespace
}  // namespace weir::executor

int main() {
  weir::executor::Run();
}
