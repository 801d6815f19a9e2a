// MNIST with one hidden layer, trained asynchronously by any number of workers; the same binary is
// every task.
//
//   weir launch --ps 1 --workers 2 -- build/release/bin/mnist --steps 6000
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "mnist_folder.h"
#include "weir/batches.h"
#include "weir/mnist.h"
#include "weir/safetensors.h"
#include "weir/weir.h"

namespace {

struct Options {
  std::int64_t hidden = 100;
  std::int64_t batch = 100;
  std::string optimizer = "adam";
  double learning_rate = 0.001;
  std::uint64_t seed = 0;
  std::string variables_on;
  std::string data;
  std::string save;
};

constexpr weir::JobDefaults kDefaults{.steps = 6000};

struct Model {
  weir::Output images, labels, logits, loss, accuracy;
};

weir::OptimizerSpec MakeOptimizer(const Options& options) {
  if (options.optimizer == "sgd") return weir::Sgd{.learning_rate = options.learning_rate};
  if (options.optimizer == "momentum")
    return weir::Momentum{.learning_rate = options.learning_rate};
  return weir::Adam{.learning_rate = options.learning_rate};
}

/// Variables on one named device, everything else on this worker.
weir::DeviceFunction VariablesOn(const std::string& variables, const std::string& worker) {
  return [variables, worker](const weir::Node& node) {
    return node.op == "Variable" ? variables : worker;
  };
}

Model BuildModel(weir::Graph& graph, const weir::DeviceFunction& place, std::int64_t hidden) {
  Model model;
  weir::DeviceScope scope(graph, place);
  model.images = graph.Placeholder("images", at::kFloat, {-1, 784});
  model.labels = graph.Placeholder("labels", at::kLong, {-1});
  const auto w1 = graph.Variable("fc1/weight", weir::TruncatedNormal({784, hidden}, 1 / 28.0));
  const auto b1 = graph.Variable("fc1/bias", weir::Zeros({hidden}));
  const auto w2 = graph.Variable(
      "fc2/weight",
      weir::TruncatedNormal({hidden, 10}, 1 / std::sqrt(static_cast<double>(hidden))));
  const auto b2 = graph.Variable("fc2/bias", weir::Zeros({10}));
  const auto layer = weir::ops::relu(weir::ops::matmul(model.images, w1) + b1);
  model.logits = weir::ops::matmul(layer, w2) + b2;
  model.loss = weir::ops::cross_entropy_loss(model.logits, model.labels);
  model.accuracy = weir::ops::accuracy(model.logits, model.labels);
  return model;
}

absl::Status Train(weir::Session& session, const Model& model, weir::Operation train,
                   weir::RandomBatches& batches) {
  while (!session.ShouldStop()) {
    auto batch = batches.Next();
    const auto result = session.Run({{model.images, batch.images}, {model.labels, batch.labels}},
                                    {model.loss}, {train});
    if (absl::IsOutOfRange(result.status())) break;  // the others have made the last steps
    if (!result.ok()) return result.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<double> TestAccuracy(weir::Session& session, const Model& model,
                                    const weir::Mnist& mnist) {
  auto result = session.Run({{model.images, weir::ScaledRows(mnist.test_images)},
                             {model.labels, mnist.test_labels.to(at::kLong)}},
                            {model.accuracy});
  if (!result.ok()) return result.status();
  return (*result)[0].item<double>();
}

absl::Status SaveWeights(weir::Session& session, const weir::Graph& graph,
                         const std::string& path) {
  std::vector<weir::Output> reads;
  for (const weir::Variable& variable : graph.trainable_variables())
    reads.push_back(variable.read());
  auto values = session.Run({}, reads);
  if (!values.ok()) return values.status();
  std::map<std::string, at::Tensor> weights;
  for (std::size_t i = 0; i < reads.size(); ++i)
    weights[graph.trainable_variables()[i].name()] = values->fetches[i];
  return weir::SaveSafetensors(path, weights);
}

absl::Status Work(weir::Job& job, const Options& options) {
  auto mnist = weir::LoadMnist(options.data);
  if (!mnist.ok()) return mnist.status();
  weir::Graph graph(options.seed);
  const auto place = options.variables_on.empty() ? job.ReplicaDeviceSetter()
                                                  : VariablesOn(options.variables_on, job.device());
  const Model model = BuildModel(graph, place, options.hidden);
  weir::Operation train;
  {
    weir::DeviceScope scope(graph, place);
    train = job.strategy().Minimize(MakeOptimizer(options), model.loss);
  }
  job.WaitForWorkers(job.num_tasks("worker"));
  auto session = job.OpenSession(graph);
  if (!session.ok()) return session.status();
  auto batches = weir::RandomBatches::Create(mnist->train_images, mnist->train_labels,
                                             options.batch, options.seed, job.task());
  if (!batches.ok()) return batches.status();
  absl::Status status = Train(*session, model, train, *batches);
  if (status.ok() && job.task() == 0) {
    const auto accuracy = TestAccuracy(*session, model, *mnist);
    if (!accuracy.ok()) return accuracy.status();
    job.Report("test_accuracy", *accuracy);
    std::printf("test accuracy %.4f\n", *accuracy);
    if (!options.save.empty()) status = SaveWeights(*session, graph, options.save);
  }
  if (status.ok()) status = job.Finish(*session);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.data = examples::MnistFolder();
  CLI::App app("Trains one hidden layer on MNIST.");
  app.footer("\n" + weir::Job::FlagsHelp(kDefaults));
  app.add_option("--hidden", options.hidden, "Units of the hidden layer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "Examples in a worker's minibatch")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000));
  app.add_option("--optimizer", options.optimizer, "adam, sgd or momentum")
      ->capture_default_str()
      ->check(CLI::IsMember({"adam", "sgd", "momentum"}));
  app.add_option("--learning-rate", options.learning_rate, "Step length")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Of first values and minibatches")->capture_default_str();
  app.add_option("--variables-on", options.variables_on,
                 "A device for all variables instead of the ps tasks");
  app.add_option("--data", options.data, "Folder of the four MNIST files")->capture_default_str();
  app.add_option(
         "--save", options.save,
         "Worker 0 writes the trained weights to this .safetensors file, in a folder that exists")
      ->check([](const std::string& path) {
        const auto folder = std::filesystem::absolute(path).parent_path();
        return std::filesystem::is_directory(folder) ? "" : "there is no folder " + folder.string();
      });
  if (weir::Job::WantsHelp(argc, argv)) CLI11_PARSE(app, argc, argv);
  auto job = weir::Job::FromCommandLine(&argc, argv, kDefaults);
  if (!job.ok()) return weir::Exit(job.status());
  CLI11_PARSE(app, argc, argv);
  if (job->is_ps()) return job->Serve();
  return weir::Exit(Work(*job, options));
}
