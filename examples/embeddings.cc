// Ratings of items by users, factorised: every user and every item has a row of numbers in tables
// that are cut over the ps tasks, and a step moves only the rows of its minibatch.
//
//   weir launch --ps 2 --workers 2 -- build/release/bin/embeddings --steps 6000
//   build/release/bin/embeddings --single 6000     # the same by libtorch alone, to compare
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/optim/adagrad.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "ratings.h"
#include "weir/weir.h"

namespace {

constexpr weir::JobDefaults kDefaults{.steps = 6000};
constexpr std::int64_t kChunk = 10'000;  // of the held out ratings
constexpr double kHeldOut = 0.1;         // of all ratings
constexpr double kMeanRating = 3.5;      // known to both programs
constexpr std::int64_t kTablesOfAStep = 4;

struct Options {
  examples::RatingsOptions ratings;
  std::int64_t width = 8;
  std::int64_t batch = 1024;
  double learning_rate = 0.5;
  std::string layout = "mod";
  std::int64_t single = 0;
};

struct Data {
  examples::Ratings train, test;
};

Data MakeData(const Options& options) {
  const examples::Ratings all = examples::MakeRatings(options.ratings);
  const auto held = static_cast<std::int64_t>(kHeldOut * static_cast<double>(all.users.numel()));
  return {.train = examples::Range(all, held, all.users.numel()),
          .test = examples::Range(all, 0, held)};
}

/// Minibatches of one worker, drawn with replacement.
class Batches {
 public:
  Batches(const examples::Ratings& ratings, const Options& options, int worker)
      : ratings_(ratings),
        batch_(options.batch),
        random_(at::detail::createCPUGenerator(options.ratings.seed * 1000 + 1 +
                                               static_cast<std::uint64_t>(worker))) {}
  examples::Ratings Next() {
    return examples::Select(ratings_,
                            at::randint(ratings_.users.numel(), {batch_}, random_, at::kLong));
  }

 private:
  const examples::Ratings& ratings_;
  const std::int64_t batch_;
  const at::Generator random_;
};

/// 3.5 + the user's bias + the item's + the product of their rows, for tensors and for outputs.
template <class Tensor, class Sum>
Tensor Predict(const Tensor& user, const Tensor& item, const Tensor& user_bias,
               const Tensor& item_bias, const Sum& sum) {
  return sum(user * item) + sum(user_bias + item_bias);
}

// ---- By Weir.

struct Model {
  weir::Output users, items, ratings, loss;
  weir::Operation train;
};

weir::Variable Table(weir::Graph& graph, const std::string& name,
                     const weir::Initializer& initializer, const weir::Job& job,
                     const Options& options) {
  return graph.Variable(
      name, initializer,
      {.partitioner = weir::FixedSizePartitioner(std::max(1, job.num_tasks("ps"))),
       .layout = options.layout == "mod" ? weir::RowLayout::kMod : weir::RowLayout::kDiv});
}

Model BuildModel(weir::Job& job, weir::Graph& graph, const Options& options) {
  Model model;
  const weir::DeviceScope scope(graph, job.ReplicaDeviceSetter());
  model.users = graph.Placeholder("users", at::kLong, {-1});
  model.items = graph.Placeholder("items", at::kLong, {-1});
  model.ratings = graph.Placeholder("ratings", at::kFloat, {-1});
  const std::int64_t users = options.ratings.users;
  const std::int64_t items = options.ratings.items;
  const auto rows = [&](const char* name, std::int64_t count, weir::Output ids) {
    const auto first = weir::Uniform({count, options.width}, -0.1, 0.1);
    return weir::EmbeddingLookup(Table(graph, name, first, job, options), ids);
  };
  const auto bias = [&](const char* name, std::int64_t count, weir::Output ids) {
    return weir::EmbeddingLookup(Table(graph, name, weir::Zeros({count, 1}), job, options), ids);
  };
  const weir::Output predicted =
      Predict(rows("user", users, model.users), rows("item", items, model.items),
              bias("user_bias", users, model.users), bias("item_bias", items, model.items),
              [](weir::Output x) { return weir::ops::sum(x, {1}); });
  const weir::Output mean = graph.Const(at::full({1}, kMeanRating));
  model.loss = weir::ops::mse_loss(predicted + mean, model.ratings);
  model.train =
      job.strategy().Minimize(weir::Adagrad{.learning_rate = options.learning_rate}, model.loss);
  return model;
}

std::vector<weir::Feed> Feeds(const Model& model, const examples::Ratings& batch) {
  return {{model.users, batch.users}, {model.items, batch.items}, {model.ratings, batch.ratings}};
}

absl::Status Train(weir::Job& job, weir::Session& session, const Model& model, Batches batches,
                   std::int64_t batch) {
  const auto began = std::chrono::steady_clock::now();
  std::int64_t rows = 0;
  while (!session.ShouldStop()) {
    const auto result = session.Run(Feeds(model, batches.Next()), {model.loss}, {model.train});
    if (absl::IsOutOfRange(result.status())) break;  // the others have made the last steps
    if (!result.ok()) return result.status();
    rows += kTablesOfAStep * batch;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  const double rate = static_cast<double>(rows) / seconds.count();
  job.Report("rows_per_second", rate);
  std::printf("%.0f rows/s looked up and updated by this worker\n", rate);
  return absl::OkStatus();
}

absl::StatusOr<double> TestLoss(weir::Session& session, const Model& model,
                                const examples::Ratings& test) {
  double sum = 0;
  const std::int64_t all = test.users.numel();
  for (std::int64_t i = 0; i < all; i += kChunk) {
    const auto part = examples::Range(test, i, std::min(all, i + kChunk));
    const auto result = session.Run(Feeds(model, part), {model.loss});
    if (!result.ok()) return result.status();
    sum += (*result)[0].item<double>() * static_cast<double>(part.users.numel());
  }
  return sum / static_cast<double>(all);
}

absl::Status Work(weir::Job& job, const Options& options) {
  const Data data = MakeData(options);
  weir::Graph graph(options.ratings.seed);
  const Model model = BuildModel(job, graph, options);
  job.WaitForWorkers(job.num_tasks("worker"));
  auto session = job.OpenSession(graph);
  if (!session.ok()) return session.status();
  absl::Status status =
      Train(job, *session, model, Batches(data.train, options, job.task()), options.batch);
  if (status.ok() && job.task() == 0) {
    const auto loss = TestLoss(*session, model, data.test);
    if (!loss.ok()) return loss.status();
    job.Report("test_loss", *loss);
    std::printf("test loss %.5f\n", *loss);
  }
  return status.ok() ? job.Finish(*session) : status;
}

// ---- By libtorch alone.

at::Tensor PlainLoss(const std::vector<at::Tensor>& tables, const examples::Ratings& batch) {
  const auto rows = [&](std::size_t table, const at::Tensor& ids) {
    return tables[table].index_select(0, ids);
  };
  const at::Tensor predicted =
      Predict(rows(0, batch.users), rows(1, batch.items), rows(2, batch.users),
              rows(3, batch.items), [](const at::Tensor& x) { return x.sum(1); });
  return at::mse_loss(predicted + kMeanRating, batch.ratings);
}

int TrainAlone(const Options& options) {
  const Data data = MakeData(options);
  const at::Generator random = at::detail::createCPUGenerator(options.ratings.seed);
  std::vector<at::Tensor> tables;
  for (const std::int64_t rows : {options.ratings.users, options.ratings.items}) {
    tables.push_back(at::rand({rows, options.width}, random, at::kFloat) * 0.2 - 0.1);
  }
  for (const std::int64_t rows : {options.ratings.users, options.ratings.items})
    tables.push_back(at::zeros({rows, 1}));
  for (at::Tensor& table : tables) table.set_requires_grad(true);
  torch::optim::Adagrad optimizer(
      tables,
      torch::optim::AdagradOptions(options.learning_rate).initial_accumulator_value(0.1).eps(0));
  Batches batches(data.train, options, 0);
  for (std::int64_t step = 0; step < options.single; ++step) {
    optimizer.zero_grad();
    PlainLoss(tables, batches.Next()).backward();
    optimizer.step();
  }
  const at::NoGradGuard no_grad;
  std::printf("test loss %.5f\n", PlainLoss(tables, data.test).item<double>());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Factorises seeded ratings of items by users.");
  app.footer("\n" + weir::Job::FlagsHelp(kDefaults));
  const auto count = [&](const char* name, std::int64_t& value, const char* what) {
    return app.add_option(name, value, what)->capture_default_str()->check(CLI::PositiveNumber);
  };
  count("--users", options.ratings.users, "Rows of the users' tables");
  count("--items", options.ratings.items, "Rows of the items' tables");
  count("--ratings", options.ratings.ratings, "Ratings in all; a tenth is held out for the test")
      ->check(CLI::Range(10, 100'000'000));
  count("--width", options.width, "Floats of a row");
  count("--batch", options.batch, "Ratings in a worker's minibatch");
  app.add_option("--learning-rate", options.learning_rate, "Of Adagrad")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--layout", options.layout, "Of rows over the ps tasks: mod or div")
      ->capture_default_str()
      ->check(CLI::IsMember({"mod", "div"}));
  app.add_option("--seed", options.ratings.seed, "Of ratings, first values and minibatches")
      ->capture_default_str();
  app.add_option("--single", options.single,
                 "No cluster: that many steps in this process, by libtorch alone")
      ->check(CLI::PositiveNumber);
  if (weir::Job::WantsHelp(argc, argv)) CLI11_PARSE(app, argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument != "--single" && !argument.starts_with("--single=")) continue;
    CLI11_PARSE(app, argc, argv);
    return TrainAlone(options);
  }
  auto job = weir::Job::FromCommandLine(&argc, argv, kDefaults);
  if (!job.ok()) return weir::Exit(job.status());
  CLI11_PARSE(app, argc, argv);
  if (job->is_ps()) return job->Serve();
  return weir::Exit(Work(*job, options));
}
