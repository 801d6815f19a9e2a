// A module of libtorch, two convolutions with a batch norm on MNIST, trained by any number of
// workers with its parameters and running statistics on the ps tasks; then the same module by
// itself, with the state that was saved.
//
//   weir launch --ps 1 --workers 2 -- build/release/bin/custom_module --save cnn.safetensors
//   build/release/bin/custom_module --evaluate cnn.safetensors
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "mnist_folder.h"
#include "weir/batches.h"
#include "weir/mnist.h"
#include "weir/module.h"
#include "weir/safetensors.h"
#include "weir/weir.h"

namespace {

constexpr weir::JobDefaults kDefaults{.steps = 3000};

struct Options {
  std::int64_t batch = 100;
  double learning_rate = 0.001;
  std::uint64_t seed = 0;
  std::string data;
  std::string save;
  std::string evaluate;
};

/// What its author would write without Weir.
struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    conv1 = register_module("conv1", torch::nn::Conv2d(1, 16, 5));
    norm = register_module("norm", torch::nn::BatchNorm2d(16));
    conv2 = register_module("conv2", torch::nn::Conv2d(16, 32, 5));
    dense = register_module("dense", torch::nn::Linear(512, 10));
  }
  at::Tensor forward(const at::Tensor& rows) {
    at::Tensor x = rows.reshape({-1, 1, 28, 28});
    x = at::max_pool2d(at::relu(norm(conv1(x))), 2);
    x = at::max_pool2d(at::relu(conv2(x)), 2);
    return dense(x.flatten(1));
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear dense{nullptr};
};

/// Parameters and buffers: without its running statistics a batch norm evaluates wrongly.
std::map<std::string, at::Tensor> StateOf(const torch::nn::Module& net) {
  std::map<std::string, at::Tensor> state;
  for (const auto& item : net.named_parameters()) state[item.key()] = item.value().detach();
  for (const auto& item : net.named_buffers()) state[item.key()] = item.value();
  return state;
}

absl::Status LoadState(const std::string& path, torch::nn::Module& net) {
  const auto saved = weir::LoadSafetensors(path);
  if (!saved.ok()) return saved.status();
  for (const auto& [name, tensor] : StateOf(net)) {
    const auto found = saved->find(name);
    if (found == saved->end() || found->second.sizes() != tensor.sizes())
      return absl::InvalidArgumentError("'" + path + "' has no such '" + name + "'");
    tensor.copy_(found->second);
  }
  return absl::OkStatus();
}

/// How many of the test images the plain module names right.
std::int64_t CountRight(NetImpl& net, const weir::Mnist& mnist) {
  const at::NoGradGuard no_grad;
  const at::Tensor images = weir::ScaledRows(mnist.test_images);
  const at::Tensor labels = mnist.test_labels.to(at::kLong);
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < images.size(0); i += 1000) {
    const at::Tensor named = net.forward(images.slice(0, i, i + 1000)).argmax(1);
    right += named.eq(labels.slice(0, i, i + 1000)).sum().item<std::int64_t>();
  }
  return right;
}

absl::Status PrintAccuracy(const char* what, std::int64_t right, const weir::Mnist& mnist) {
  const auto all = mnist.test_labels.size(0);
  std::printf("%s: %lld of %lld test images right, accuracy %.4f\n", what,
              static_cast<long long>(right), static_cast<long long>(all),
              static_cast<double>(right) / static_cast<double>(all));
  return absl::OkStatus();
}

absl::Status Evaluate(const Options& options) {
  const auto mnist = weir::LoadMnist(options.data);
  if (!mnist.ok()) return mnist.status();
  NetImpl net;
  if (absl::Status status = LoadState(options.evaluate, net); !status.ok()) return status;
  net.eval();
  return PrintAccuracy("plain module", CountRight(net, *mnist), *mnist);
}

struct Model {
  weir::Output images, labels, loss, right;
  weir::Operation train, updates;
};

/// The module twice: as it trains, and as it is evaluated.
Model BuildModel(weir::Job& job, weir::Graph& graph, NetImpl& net, weir::Module& module,
                 const Options& options) {
  Model model;
  model.images = graph.Placeholder("images", at::kFloat, {-1, 784});
  model.labels = graph.Placeholder("labels", at::kLong, {-1});
  net.train();
  const auto trained = module({model.images});
  net.eval();
  const auto evaluated = module({model.images});
  if (trained.empty() || evaluated.empty()) return model;  // OpenSession says why
  model.loss = weir::ops::cross_entropy_loss(trained[0], model.labels);
  model.right = weir::ops::accuracy(evaluated[0], model.labels);
  model.updates = module.updates();
  model.train =
      job.strategy().Minimize(weir::Adam{.learning_rate = options.learning_rate}, model.loss);
  return model;
}

absl::Status Train(weir::Session& session, const Model& model, weir::RandomBatches& batches) {
  while (!session.ShouldStop()) {
    auto batch = batches.Next();
    const auto result = session.Run({{model.images, batch.images}, {model.labels, batch.labels}},
                                    {model.loss}, {model.train, model.updates});
    if (absl::IsOutOfRange(result.status())) break;  // the others have made the last steps
    if (!result.ok()) return result.status();
  }
  return absl::OkStatus();
}

/// Of the graph, with the variables as they are on the ps tasks.
absl::StatusOr<std::int64_t> CountRightByGraph(weir::Session& session, const Model& model,
                                               const weir::Mnist& mnist) {
  const at::Tensor images = weir::ScaledRows(mnist.test_images);
  const at::Tensor labels = mnist.test_labels.to(at::kLong);
  double right = 0;
  for (std::int64_t i = 0; i < images.size(0); i += 1000) {
    const at::Tensor some = images.slice(0, i, i + 1000);
    const auto result = session.Run(
        {{model.images, some}, {model.labels, labels.slice(0, i, i + 1000)}}, {model.right});
    if (!result.ok()) return result.status();
    right += (*result)[0].item<double>() * static_cast<double>(some.size(0));
  }
  return std::llround(right);
}

absl::Status Finish(weir::Job& job, weir::Session& session, const Model& model,
                    const weir::Module& module, const NetImpl& net, const Options& options,
                    const weir::Mnist& mnist) {
  const auto right = CountRightByGraph(session, model, mnist);
  if (!right.ok()) return right.status();
  job.Report("test_accuracy",
             static_cast<double>(*right) / static_cast<double>(mnist.test_labels.size(0)));
  if (absl::Status status = PrintAccuracy("cluster", *right, mnist); !status.ok()) return status;
  const auto values = session.Run({}, module.state());
  if (!values.ok()) return values.status();
  if (absl::Status status = module.Load(values->fetches); !status.ok()) return status;
  return options.save.empty() ? absl::OkStatus()
                              : weir::SaveSafetensors(options.save, StateOf(net));
}

absl::Status Work(weir::Job& job, const Options& options) {
  const auto mnist = weir::LoadMnist(options.data);
  if (!mnist.ok()) return mnist.status();
  torch::manual_seed(options.seed);
  const auto net = std::make_shared<NetImpl>();
  weir::Graph graph(options.seed);
  const weir::DeviceScope scope(graph, job.ReplicaDeviceSetter());
  weir::Module module(graph, net, "net");
  const Model model = BuildModel(job, graph, *net, module, options);
  job.WaitForWorkers(job.num_tasks("worker"));
  auto session = job.OpenSession(graph);
  if (!session.ok()) return session.status();
  auto batches = weir::RandomBatches::Create(mnist->train_images, mnist->train_labels,
                                             options.batch, options.seed, job.task());
  if (!batches.ok()) return batches.status();
  absl::Status status = Train(*session, model, *batches);
  if (status.ok() && job.task() == 0)
    status = Finish(job, *session, model, module, *net, options, *mnist);
  return status.ok() ? job.Finish(*session) : status;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.data = examples::MnistFolder();
  CLI::App app("Trains a module of libtorch, a convolutional net, on MNIST.");
  app.footer("\n" + weir::Job::FlagsHelp(kDefaults));
  app.add_option("--batch", options.batch, "Examples in a worker's minibatch")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000));
  app.add_option("--learning-rate", options.learning_rate, "Of Adam")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "Of first values and minibatches")->capture_default_str();
  app.add_option("--data", options.data, "Folder of the four MNIST files")->capture_default_str();
  app.add_option("--save", options.save, "Worker 0 writes the state to this .safetensors file");
  app.add_option("--evaluate", options.evaluate,
                 "No training: the plain module with the state of this file");
  if (weir::Job::WantsHelp(argc, argv)) CLI11_PARSE(app, argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]).starts_with("--evaluate")) {
      CLI11_PARSE(app, argc, argv);
      return weir::Exit(Evaluate(options));
    }
  }
  auto job = weir::Job::FromCommandLine(&argc, argv, kDefaults);
  if (!job.ok()) return weir::Exit(job.status());
  CLI11_PARSE(app, argc, argv);
  if (job->is_ps()) return job->Serve();
  return weir::Exit(Work(*job, options));
}
