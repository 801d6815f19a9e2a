#include "runtime/messages.h"

#include "base/status.h"
#include "tensor/wire.h"

namespace weir::runtime {
namespace {

constexpr std::size_t kMessageBytesMax = 16 * 1024;

void WriteTask(WireWriter& writer, const TaskId& task) {
  writer.String(task.job);
  writer.Number(static_cast<std::int32_t>(task.index));
}

TaskId ReadTask(WireReader& reader) {
  TaskId task;
  task.job = reader.String();
  task.index = reader.Number<std::int32_t>();
  return task;
}

void WriteStatus(WireWriter& writer, const absl::Status& status) {
  writer.Number(static_cast<std::uint8_t>(status.code()));
  writer.String(std::string(status.message()).substr(0, kMessageBytesMax));
}

absl::Status ReadStatus(WireReader& reader) {
  const auto code = reader.Number<std::uint8_t>();
  const std::string message = reader.String();
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

absl::Status Malformed(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed ", what, " message"));
}

}  // namespace

std::string Encode(const Hello& message) {
  WireWriter writer;
  writer.Number(message.cluster_id);
  WriteTask(writer, message.from);
  writer.Number(message.from_incarnation);
  WriteTask(writer, message.to);
  writer.Number(message.to_incarnation);
  writer.Number(message.features);
  writer.String(message.token);
  WriteStatus(writer, message.status);
  return writer.Take();
}

std::string Encode(const RunMessage& message) {
  WireWriter writer;
  writer.Number(message.plan);
  writer.Number(message.session);
  writer.Number(message.num_feeds);
  writer.Number(message.timeout_ms);
  return writer.Take();
}

std::string Encode(const DoneMessage& message) {
  WireWriter writer;
  WriteStatus(writer, message.status);
  writer.Number(message.ticket);
  return writer.Take();
}

std::string Encode(const absl::Status& status) {
  WireWriter writer;
  WriteStatus(writer, status);
  return writer.Take();
}

absl::StatusOr<Hello> DecodeHello(std::span<const std::byte> body) {
  WireReader reader(body);
  Hello message;
  message.cluster_id = reader.Number<std::uint64_t>();
  message.from = ReadTask(reader);
  message.from_incarnation = reader.Number<std::uint64_t>();
  message.to = ReadTask(reader);
  message.to_incarnation = reader.Number<std::uint64_t>();
  message.features = reader.Number<std::uint32_t>();
  message.token = reader.String();
  message.status = ReadStatus(reader);
  if (!reader.done() || message.from_incarnation == 0) return Malformed("hello");
  return message;
}

absl::StatusOr<RunMessage> DecodeRun(std::span<const std::byte> body) {
  WireReader reader(body);
  RunMessage message;
  message.plan = reader.Number<std::uint64_t>();
  message.session = reader.Number<std::uint64_t>();
  message.num_feeds = reader.Number<std::uint32_t>();
  message.timeout_ms = reader.Number<std::uint64_t>();
  if (!reader.done()) return Malformed("run");
  return message;
}

absl::StatusOr<DoneMessage> DecodeDone(std::span<const std::byte> body) {
  WireReader reader(body);
  DoneMessage message;
  message.status = ReadStatus(reader);
  message.ticket = reader.Number<std::uint64_t>();
  if (!reader.done()) return Malformed("done");
  return message;
}

absl::Status DecodeAbort(std::span<const std::byte> body) {
  WireReader reader(body);
  absl::Status status = ReadStatus(reader);
  if (!reader.done() || status.ok()) return Malformed("abort");
  return status;
}

}  // namespace weir::runtime
