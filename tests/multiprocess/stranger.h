// Somebody at the data port of a server who need not be an honest peer, and the frames he sends.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "runtime/identity.h"

namespace weir::testing_process {

/// A connection that is made when it is needed, and made anew after the server has hung up.
class Stranger {
 public:
  /// `hello` goes first on each connection; empty: none.
  Stranger(const std::string& address, std::string hello);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// Sends a frame and, after a hello, a question behind it. True when the server has dealt with
  /// the frame: it has answered the question, or hung up. False when it does neither in 50 ms: it
  /// waits for more of what it takes for a frame. That connection is given up.
  bool Send(const std::string& frame);
  /// Sends without a look at what comes back; false when the server has hung up.
  bool Flood(const std::string& bytes);
  int connections() const { return connections_; }

 private:
  enum class Sight { kNothing, kAnswer, kEnd };

  bool EnsureConnected();
  bool Write(const std::string& bytes);
  Sight Look(int timeout_ms);
  void HangUp();

  const int port_;
  const std::string hello_;
  int fd_ = -1;
  int connections_ = 0;
  std::uint64_t question_ = 0;  // number of the last
  std::string answers_;         // frames, the last perhaps not whole
};

/// The hello of a client that is no task, and of the task `from` to the server that is `to`.
std::string ClientHello();
std::string TaskHello(std::uint64_t cluster_id, const TaskId& from, const TaskId& to);

/// Bytes without any order, or behind a header that is one: what a scanner of ports sends, and a
/// peer with a bug.
std::string RandomFrame(std::mt19937_64& random);
/// A well-formed frame of any kind, by the encoders of the runtime, of which up to three bits are
/// wrong; in one of sixteen perhaps bits of its lengths.
std::string MutatedFrame(std::mt19937_64& random);

}  // namespace weir::testing_process
