#include "cli/worker_barrier.h"

#include <ATen/Functions.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace weir::cli {
namespace {

constexpr std::chrono::milliseconds kPollEvery{5};
constexpr std::chrono::seconds kLineEvery{5};

}  // namespace

WorkerBarrier::WorkerBarrier(Graph& graph, const DeviceFunction& place, std::string point)
    : point_(std::move(point)) {
  std::optional<DeviceScope> scope;
  if (place) scope.emplace(graph, place);
  VariableOptions options;
  options.trainable = false;
  counted_ = graph.Variable("weir/workers_" + point_, Zeros({}, at::kLong), options);
  const Output one = graph.Const(at::ones({}, at::kLong), "weir/one");
  count_me_ = graph.AssignAdd(counted_, one, "weir/count_" + point_);
}

absl::Status WorkerBarrier::CountMe(Session& session) {
  return session.Run({}, {}, {count_me_}).status();
}

absl::Status WorkerBarrier::Await(Session& session, int workers, Duration timeout, Logger& logger) {
  const auto began = std::chrono::steady_clock::now();
  auto next_line = began + kLineEvery;
  while (true) {
    WEIR_ASSIGN_OR_RETURN(const RunResult result, session.Run({}, {counted_.read()}));
    const auto counted = result[0].item<std::int64_t>();
    if (counted >= workers) return absl::OkStatus();
    const auto now = std::chrono::steady_clock::now();
    const double waited = std::chrono::duration<double>(now - began).count();
    const std::string text =
        absl::StrFormat("%d of %d workers are %s after %.0f s", counted, workers, point_, waited);
    if (now - began > timeout) return absl::DeadlineExceededError(text);
    if (now >= next_line) {
      logger.Info("waiting: " + text);
      next_line = now + kLineEvery;
    }
    std::this_thread::sleep_for(kPollEvery);
  }
}

}  // namespace weir::cli
