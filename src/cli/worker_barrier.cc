#include "cli/worker_barrier.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/report.h"

namespace weir::cli {
namespace {

constexpr std::chrono::milliseconds kPollEvery{5};
constexpr std::chrono::milliseconds kAskAgainAfter{500};
constexpr std::chrono::seconds kLineEvery{5};
constexpr char kNothing[] = "";
constexpr std::size_t kNamedMax = 8;

at::Tensor ToTensor(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong);
}

int CountSet(const std::vector<std::int64_t>& tokens) {
  return static_cast<int>(
      std::count_if(tokens.begin(), tokens.end(), [](std::int64_t token) { return token != 0; }));
}

}  // namespace

// 62 bits: a token can be added and taken away without overflow.
std::int64_t WorkerBarrier::MakeToken(std::uint64_t incarnation) {
  return static_cast<std::int64_t>(incarnation >> 2) + 1;
}

WorkerBarrier::WorkerBarrier(Graph& graph, Options options) : options_(std::move(options)) {
  const std::string prefix = kOwnVariablePrefix;
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(options_.names.size())};
  {
    DeviceScope scope(graph, options_.device);
    // Workers change one element each, by adding: locked, so that none is lost.
    const VariableOptions variable = {.trainable = false, .use_locking = true};
    slots_ = graph.Variable(prefix + "worker_slots", Zeros(shape, at::kLong), variable);
    met_ = graph.Variable(prefix + "workers_met", Zeros(shape, at::kLong), variable);
  }
  delta_ = graph.Placeholder(prefix + "slot_delta", at::kLong, shape);
  members_ = graph.Placeholder(prefix + "members", at::kLong, shape);
  add_to_slots_ = graph.AssignAdd(slots_, delta_, prefix + "set_slot");
  write_met_ = graph.Assign(met_, members_, prefix + "write_met");
}

absl::Status WorkerBarrier::SetSlot(Session& session, std::int64_t value) {
  WEIR_ASSIGN_OR_RETURN(const Tokens slots, Look(session, slots_));
  const auto own = static_cast<std::size_t>(options_.own_slot);
  Tokens delta(slots.size(), 0);
  delta[own] = value - slots[own];
  return session.Run({{delta_, ToTensor(delta)}}, {}, {add_to_slots_}).status();
}

absl::StatusOr<WorkerBarrier::Tokens> WorkerBarrier::Look(Session& session,
                                                          const Variable& variable) {
  WEIR_ASSIGN_OR_RETURN(const RunResult result, session.Run({}, {variable.read()}));
  const at::Tensor values = result[0].contiguous();
  const auto* first = values.const_data_ptr<std::int64_t>();
  return Tokens(first, first + values.numel());
}

bool WorkerBarrier::Asked(int slot, std::int64_t token) {
  const TimePoint now = std::chrono::steady_clock::now();
  const auto known = answers_.find(slot);
  if (known != answers_.end() && known->second.token == token &&
      now < known->second.at + kAskAgainAfter)
    return known->second.alive;
  const bool alive = options_.is_alive(slot, token);
  answers_[slot] = {.token = token, .alive = alive, .at = std::chrono::steady_clock::now()};
  return alive;
}

WorkerBarrier::Tokens WorkerBarrier::Alive(const Tokens& slots) {
  Tokens alive(slots.size(), 0);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const int slot = static_cast<int>(i);
    if (slot == options_.own_slot || (slots[i] != 0 && Asked(slot, slots[i]))) alive[i] = slots[i];
  }
  return alive;
}

std::string WorkerBarrier::Missing(const Tokens& alive) const {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < alive.size(); ++i) {
    if (alive[i] == 0 && !options_.names[i].empty()) missing.push_back(options_.names[i]);
  }
  const std::size_t named = std::min(missing.size(), kNamedMax);
  std::string text = absl::StrJoin(missing.begin(), missing.begin() + named, ", ");
  if (missing.size() > named) absl::StrAppend(&text, " and ", missing.size() - named, " more");
  return text;
}

absl::Status WorkerBarrier::Poll(Duration timeout, Logger& logger,
                                 const std::function<absl::StatusOr<std::string>()>& what_lacks) {
  const TimePoint began = std::chrono::steady_clock::now();
  TimePoint next_line = began + kLineEvery;
  while (true) {
    WEIR_ASSIGN_OR_RETURN(const std::string lacks, what_lacks());
    if (lacks.empty()) return absl::OkStatus();
    const TimePoint now = std::chrono::steady_clock::now();
    const std::string text = absl::StrFormat("%s after %.0f s", lacks,
                                             std::chrono::duration<double>(now - began).count());
    if (now - began > timeout) return absl::DeadlineExceededError(text);
    if (now >= next_line) {
      logger.Info("waiting: " + text);
      next_line = now + kLineEvery;
    }
    std::this_thread::sleep_for(kPollEvery);
  }
}

absl::Status WorkerBarrier::Meet(Session& session, int workers, Duration timeout, Logger& logger) {
  WEIR_RETURN_IF_ERROR(SetSlot(session, options_.token));
  return Poll(timeout, logger, [&]() -> absl::StatusOr<std::string> {
    WEIR_ASSIGN_OR_RETURN(const Tokens slots, Look(session, slots_));
    const Tokens alive = Alive(slots);
    if (CountSet(alive) >= workers) {
      WEIR_RETURN_IF_ERROR(session.Run({{members_, ToTensor(alive)}}, {}, {write_met_}).status());
      return kNothing;
    }
    WEIR_ASSIGN_OR_RETURN(const Tokens met, Look(session, met_));
    if (met[static_cast<std::size_t>(options_.own_slot)] == options_.token) return kNothing;
    return absl::StrFormat("%d of %d workers are ready, missing %s,", CountSet(alive), workers,
                           Missing(alive));
  });
}

absl::Status WorkerBarrier::Leave(Session& session) {
  return SetSlot(session, 0);
}

absl::Status WorkerBarrier::AwaitOthers(Session& session, Duration timeout, Logger& logger) {
  return Poll(timeout, logger, [&]() -> absl::StatusOr<std::string> {
    WEIR_ASSIGN_OR_RETURN(Tokens slots, Look(session, slots_));
    slots[static_cast<std::size_t>(options_.own_slot)] = 0;
    const int others = CountSet(Alive(slots));
    if (others == 0) return kNothing;
    return absl::StrFormat("%d other workers have not ended", others);
  });
}

}  // namespace weir::cli
