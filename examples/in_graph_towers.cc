// One graph, a copy of the model (a tower) on every worker: worker 0 cuts each minibatch in equal
// parts, sends every tower its own, and the gradients of all towers together make one update on the
// ps. Synchronous by construction: one step, however many workers.
//
//   weir launch --ps 1 --workers 2 -- build/release/bin/in_graph_towers --steps 500
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/weir.h"

namespace {

constexpr weir::JobDefaults kDefaults{.steps = 500};
constexpr std::int64_t kInputs = 64;

struct Options {
  std::int64_t hidden = 256;
  std::int64_t batch = 256;  // of a tower
  double learning_rate = 0.01;
  std::uint64_t seed = 0;
};

/// The one set of weights that all towers share, on the ps tasks.
struct Weights {
  weir::Variable first, first_bias, second, second_bias;
};

Weights MakeWeights(weir::Job& job, weir::Graph& graph, const Options& options) {
  const weir::DeviceScope scope(graph, job.ReplicaDeviceSetter());
  return {.first = graph.Variable("first", weir::GlorotUniform({kInputs, options.hidden})),
          .first_bias = graph.Variable("first_bias", weir::Zeros({options.hidden})),
          .second = graph.Variable("second", weir::GlorotUniform({options.hidden, 1})),
          .second_bias = graph.Variable("second_bias", weir::Zeros({1}))};
}

/// The loss of rows tower*batch .. of the inputs, computed on the worker of that number.
weir::Output Tower(weir::Graph& graph, int tower, weir::Output inputs, weir::Output targets,
                   const Weights& weights, const Options& options) {
  const auto part = [&](weir::Output all) {
    return graph
        .Aten("aten::narrow", "",
              {all, std::int64_t{0}, std::int64_t{tower * options.batch}, options.batch})
        .front();
  };
  const weir::Output x = part(inputs);  // cut where the whole is, so that only the part travels
  const weir::Output y = part(targets);
  const weir::DeviceScope scope(graph, absl::StrCat("/job:worker/task:", tower));
  const auto hidden = weir::ops::tanh(weir::ops::matmul(x, weights.first) + weights.first_bias);
  return weir::ops::mse_loss(weir::ops::matmul(hidden, weights.second) + weights.second_bias, y);
}

/// Seeded examples of a function that the model can learn.
struct Teacher {
  explicit Teacher(std::uint64_t seed) {
    at::manual_seed(seed);
    weights = at::randn({kInputs, 1}) / 8;
  }
  at::Tensor operator()(const at::Tensor& x) const { return at::sin(at::matmul(x, weights)); }
  at::Tensor weights;
};

absl::Status Drive(weir::Job& job, const Options& options) {
  const int towers = job.num_tasks("worker");
  const std::int64_t rows = towers * options.batch;
  weir::Graph graph(options.seed);
  const Weights weights = MakeWeights(job, graph, options);
  const auto inputs = graph.Placeholder("inputs", at::kFloat, {rows, kInputs});
  const auto targets = graph.Placeholder("targets", at::kFloat, {rows, 1});
  weir::Output sum = Tower(graph, 0, inputs, targets, weights, options);
  for (int tower = 1; tower < towers; ++tower)
    sum = sum + Tower(graph, tower, inputs, targets, weights, options);
  const weir::Output loss = weir::ops::mul_scalar(sum, 1.0 / towers);
  const auto train =
      job.strategy().Minimize(weir::Adam{.learning_rate = options.learning_rate}, loss);
  auto session = job.OpenSession(graph);
  if (!session.ok()) return session.status();

  const Teacher teacher(options.seed);
  double first = 0, last = 0;
  std::int64_t steps = 0;
  const auto began = std::chrono::steady_clock::now();
  while (!session->ShouldStop()) {
    const at::Tensor x = at::randn({rows, kInputs});
    const auto result = session->Run({{inputs, x}, {targets, teacher(x)}}, {loss}, {train});
    if (!result.ok()) return result.status();
    last = (*result)[0].item<double>();
    if (steps++ == 0) first = last;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  std::printf("%d towers: loss %.4f -> %.4f, %.0f examples/s\n", towers, first, last,
              static_cast<double>(steps * rows) / seconds.count());
  job.Report("last_loss", last);
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains one model by a tower on every worker, in one graph.");
  app.footer("\n" + weir::Job::FlagsHelp(kDefaults));
  app.add_option("--hidden", options.hidden, "Units of the hidden layer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "Examples of a tower in a step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--learning-rate", options.learning_rate, "Of Adam")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Of first values and examples")->capture_default_str();
  if (weir::Job::WantsHelp(argc, argv)) CLI11_PARSE(app, argc, argv);
  auto job = weir::Job::FromCommandLine(&argc, argv, kDefaults);
  if (!job.ok()) return weir::Exit(job.status());
  CLI11_PARSE(app, argc, argv);
  // The other towers are run by worker 0's steps.
  if (job->is_ps() || job->task() != 0) return job->Serve();
  const absl::Status status = Drive(*job, options);
  job->EndJob();
  return weir::Exit(status);
}
