// A model whose halves sit on two workers: activations go one way, their gradients the other. With
// several steps in flight the halves work at the same time.
//
//   weir launch --ps 0 --workers 2 -- build/release/bin/model_parallel --in-flight 4
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/weir.h"

namespace {

constexpr weir::JobDefaults kDefaults{.steps = 200};

struct Options {
  int in_flight = 4;
  std::int64_t hidden = 1024;
  std::int64_t batch = 128;
  int layers = 2;  // of each half
};

/// `layers` square layers on the worker `task`, their weights beside them.
weir::Output Half(weir::Graph& graph, int task, weir::Output x, const Options& options) {
  weir::DeviceScope scope(graph, absl::StrCat("/job:worker/task:", task));
  for (int layer = 0; layer < options.layers; ++layer) {
    const auto name = absl::StrCat("half", task, "/layer", layer);
    const auto weight = graph.Variable(name, weir::GlorotUniform({options.hidden, options.hidden}));
    x = weir::ops::relu(weir::ops::matmul(x, weight));
  }
  return x;
}

absl::Status Drive(weir::Job& job, const Options& options) {
  weir::Graph graph(/*seed=*/1);
  const auto input = graph.Placeholder("input", at::kFloat, {options.batch, options.hidden});
  const auto target = graph.Placeholder("target", at::kFloat, {options.batch, options.hidden});
  const auto output = Half(graph, 1, Half(graph, 0, input, options), options);
  weir::Output loss;
  {
    weir::DeviceScope scope(graph, "/job:worker/task:1");
    loss = weir::ops::mse_loss(output, target);
  }
  const auto train = job.strategy().Minimize(weir::Sgd{.learning_rate = 0.01}, loss);
  auto session = job.OpenSession(graph);
  if (!session.ok()) return session.status();

  const at::Tensor x = at::rand({options.batch, options.hidden});
  const at::Tensor y = at::rand({options.batch, options.hidden});
  const auto step = [&] { return session->Run({{input, x}, {target, y}}, {loss}, {train}); };
  auto first = step();  // plans
  if (!first.ok()) return first.status();

  std::atomic<int> steps{0};
  std::vector<absl::Status> statuses(static_cast<std::size_t>(options.in_flight));
  std::vector<std::thread> threads;
  const auto began = std::chrono::steady_clock::now();
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] {
      while (!session->ShouldStop()) {
        auto result = step();
        if (absl::IsOutOfRange(result.status())) return;
        if (!result.ok()) {
          status = result.status();
          return session->RequestStop();
        }
        ++steps;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  std::printf("%d in flight: %.1f steps/s\n", options.in_flight, steps / seconds);
  job.Report("pipelined_steps_per_second", steps / seconds);
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a model whose halves sit on two workers.");
  app.footer("\n" + weir::Job::FlagsHelp(kDefaults));
  app.add_option("--in-flight", options.in_flight,
                 "Steps that run at the same time; a session's limit is 8")
      ->capture_default_str()
      ->check(CLI::Range(1, weir::SessionOptions{}.max_steps_in_flight));
  app.add_option("--hidden", options.hidden, "Width of a layer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "Examples in a step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--layers", options.layers, "Layers in a half")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  if (weir::Job::WantsHelp(argc, argv)) CLI11_PARSE(app, argc, argv);
  auto job = weir::Job::FromCommandLine(&argc, argv, kDefaults);
  if (!job.ok()) return weir::Exit(job.status());
  CLI11_PARSE(app, argc, argv);
  // The other half is run by worker 0's steps.
  if (job->is_ps() || job->task() != 0) return job->Serve();
  const absl::Status status = Drive(*job, options);
  job->EndJob();
  return weir::Exit(status);
}
