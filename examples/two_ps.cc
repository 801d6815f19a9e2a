// The founding example: two layers whose weights live on two parameter servers, computed on worker
// 7, driven by a client that is no task of the cluster. Nothing here says how a tensor moves.
//
// A cluster of 2 ps and 8 workers, of which only three tasks need to run:
//   C='ps=127.0.0.1:7000,127.0.0.1:7001;worker=127.0.0.1:7100,...,127.0.0.1:7107'
//   weir serve --cluster "$C" --job ps --task 0 &  weir serve --cluster "$C" --job ps --task 1 &
//   weir serve --cluster "$C" --job worker --task 7 &
//   two_ps --target grpc://127.0.0.1:7107
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "weir/weir.h"

namespace {

struct Options {
  std::string target;
  int steps = 10'000;
  bool quiet = false;
};

absl::Status Run(const Options& options) {
  weir::Graph graph(/*seed=*/1);
  weir::Variable weights_1, biases_1, weights_2, biases_2;
  {
    weir::DeviceScope scope(graph, "/job:ps/task:0");
    weights_1 = graph.Variable("weights_1", weir::TruncatedNormal({784, 100}, 1 / 28.0));
    biases_1 = graph.Variable("biases_1", weir::Zeros({100}));
  }
  {
    weir::DeviceScope scope(graph, "/job:ps/task:1");
    weights_2 = graph.Variable("weights_2", weir::TruncatedNormal({100, 10}, 0.1));
    biases_2 = graph.Variable("biases_2", weir::Zeros({10}));
  }
  weir::Output input, labels, loss;
  {
    weir::DeviceScope scope(graph, "/job:worker/task:7");
    input = graph.Placeholder("input", at::kFloat, {-1, 784});
    labels = graph.Placeholder("labels", at::kLong, {-1});
    const auto layer_1 = weir::ops::relu(weir::ops::matmul(input, weights_1) + biases_1);
    const auto logits = weir::ops::matmul(layer_1, weights_2) + biases_2;
    loss = weir::ops::cross_entropy_loss(logits, labels);
  }
  weir::Operation train_op;
  {
    weir::DeviceScope scope(graph, "/job:ps/task:0");  // global_step
    train_op = weir::NewAsyncStrategy()->Minimize(weir::Sgd{.learning_rate = 0.05}, loss);
  }

  auto session = weir::Session::Connect(options.target, graph);
  if (!session.ok()) return session.status();
  const auto plan = session->DumpPlan({input, labels}, {loss}, {train_op});
  if (!plan.ok()) return plan.status();
  if (!options.quiet) std::printf("%s\n", plan->c_str());

  const at::Tensor images = at::rand({100, 784});
  const at::Tensor classes = at::randint(10, {100}, at::kLong);
  const auto began = std::chrono::steady_clock::now();
  double first = 0, last = 0;
  for (int step = 0; step < options.steps; ++step) {
    const auto result = session->Run({{input, images}, {labels, classes}}, {loss}, {train_op});
    if (!result.ok()) return result.status();
    last = (*result)[0].item<double>();
    if (step == 0) first = last;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%d steps in %.1f s (%.0f steps/s), loss %.4f -> %.4f\n", options.steps, seconds,
              options.steps / seconds, first, last);
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains two layers held by two parameter servers, on worker 7, from outside the cluster.");
  app.add_option("--target", options.target, "Worker 7's address: grpc://host:port")->required();
  app.add_option("--steps", options.steps, "How often train_op is run")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--quiet", options.quiet, "Do not print the placed, partitioned graph");
  CLI11_PARSE(app, argc, argv);
  return weir::Exit(Run(options));
}
