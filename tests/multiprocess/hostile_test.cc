// Strangers at the ports of a server that is training: it goes on.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "multiprocess/process.h"
#include "runtime/messages.h"
#include "transport/frame.h"

namespace weir::testing_process {
namespace {

using std::chrono::seconds;

class Stranger {
 public:
  explicit Stranger(const std::string& address)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    const timeval patience{.tv_sec = 2, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~Stranger() { ::close(fd_); }
  /// False once the server has hung up.
  bool Send(const std::string& bytes) const {
    return connected_ && ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                             static_cast<ssize_t>(bytes.size());
  }

 private:
  int fd_;
  bool connected_;
};

std::string RandomBytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string EncodeFrame(transport::FrameHeader header, const std::string& body,
                        std::size_t payload) {
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  header.payload_bytes = payload;
  std::array<std::byte, transport::kHeaderBytes> bytes;
  transport::EncodeHeader(header, bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + body +
         std::string(payload, '\1');
}

std::string ClientHello() {
  runtime::Hello hello;
  hello.from_incarnation = 4711;
  return EncodeFrame({.type = transport::FrameType::kHello}, runtime::Encode(hello), 0);
}

/// A frame that would be valid but for a few bytes.
std::string MutatedFrame(std::mt19937_64& random) {
  const auto type = static_cast<transport::FrameType>(1 + random() % 6);
  std::string body =
      random() % 2 == 0
          ? RandomBytes(random, random() % 64)
          : runtime::Encode(runtime::RunMessage{
                .plan = random() % 3, .session = random() % 3, .num_feeds = 0, .timeout_ms = 1000});
  std::string frame = EncodeFrame({.type = type,
                                   .edge = static_cast<std::uint32_t>(random() % 4),
                                   .origin = 4711,
                                   .step = random() % 5},
                                  body, type == transport::FrameType::kTensor ? random() % 64 : 0);
  for (std::uint64_t flips = random() % 3; flips > 0; --flips)
    frame[random() % frame.size()] ^= static_cast<char>(1u << (random() % 8));
  return frame;
}

long ResidentKb(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stol(line.substr(6));
  }
  return 0;
}

TEST(HostileTest, AServerGoesOnTrainingUnderRandomAndMutatedFrames) {
  const auto addresses = FreeAddresses(2);
  const std::string cluster = absl::StrCat("ps=", addresses[0], ";worker=", addresses[1]);
  const auto task = [&](const std::string& job) {
    return std::vector<std::string>{WEIR_BIN_DIR "/linear_regression",
                                    "--cluster",
                                    cluster,
                                    "--job",
                                    job,
                                    "--task",
                                    "0",
                                    "--steps",
                                    "100000000"};
  };
  Process ps(task("ps"));
  Process worker(task("worker"));
  const auto status = [&] {
    Process command({WEIR_BIN_DIR "/weir", "status", cluster, "--json", "--interval", "0.2"});
    EXPECT_EQ(command.Wait(seconds(20)), 0) << command.Output();
    return nlohmann::json::parse(command.Output(), nullptr, /*allow_exceptions=*/false);
  };
  ASSERT_TRUE(worker.AwaitOutput("data plane", seconds(20)));
  nlohmann::json before = status();
  ASSERT_FALSE(before.is_discarded());
  std::string data_address;
  for (const auto& entry : before.at("tasks")) {
    if (entry.at("task") == "ps:0") data_address = entry.at("data_address");
  }
  const long resident_before = ResidentKb(ps.pid());
  std::mt19937_64 random(20261201);
  int sent = 0;
  for (int connection = 0; connection < 400; ++connection) {
    Stranger stranger(data_address);
    const bool greets = connection % 2 == 0;
    if (greets) stranger.Send(ClientHello());
    for (int frame = 0; frame < WEIR_HOSTILE_FRAMES / 400; ++frame) {
      ++sent;
      if (!stranger.Send(connection % 4 < 2 ? MutatedFrame(random)
                                            : RandomBytes(random, 1 + random() % 100)))
        break;
    }
  }
  for (int connection = 0; connection < 20; ++connection)
    Stranger(addresses[0]).Send(RandomBytes(random, 5000));
  EXPECT_GT(sent, 400);
  const nlohmann::json after = status();
  ASSERT_FALSE(after.is_discarded());
  EXPECT_GT(after.at("global_step"), before.at("global_step"));
  EXPECT_GT(after.at("steps_per_second"), 0);
  EXPECT_LT(ResidentKb(ps.pid()) - resident_before, 64 * 1024);
  EXPECT_TRUE(worker.running()) << worker.Output();
}

}  // namespace
}  // namespace weir::testing_process
