// Bodies of the frames that are no tensors. docs/wire_format.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/task.h"

namespace weir::runtime {

/// kHello and kHelloAck: who speaks, and to whom it believes to speak.
struct Hello {
  std::uint64_t cluster_id = 0;
  TaskId from;                         // empty job: a client that is no task
  std::uint64_t from_incarnation = 0;  // never 0
  TaskId to;
  std::uint64_t to_incarnation = 0;  // 0: any
  std::uint32_t features = 0;        // none yet; unknown bits are ignored
  std::string token;                 // none yet
  absl::Status status;               // of an ack: OK, or why the dialling side was refused
};

/// kRun, from a master to a task: run your share of `plan`. From a client to its master: run `plan`
/// of `session` with the feeds that came before, as tensors on edges 1, 2, ...
struct RunMessage {
  std::uint64_t plan = 0;
  std::uint64_t session = 0;
  std::uint32_t num_feeds = 0;
  std::uint64_t timeout_ms = 0;
};

/// kDone.
struct DoneMessage {
  absl::Status status;
  std::uint64_t ticket = 0;
};

std::string Encode(const Hello& message);
std::string Encode(const RunMessage& message);
std::string Encode(const DoneMessage& message);
/// The body of kAbort.
std::string Encode(const absl::Status& status);

/// InvalidArgument for bodies that are none.
absl::StatusOr<Hello> DecodeHello(std::span<const std::byte> body);
absl::StatusOr<RunMessage> DecodeRun(std::span<const std::byte> body);
absl::StatusOr<DoneMessage> DecodeDone(std::span<const std::byte> body);
/// Never returns OK: a body that is none, or that says OK, is InvalidArgument.
absl::Status DecodeAbort(std::span<const std::byte> body);

}  // namespace weir::runtime
