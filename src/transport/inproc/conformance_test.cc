// The conformance suite over in-process networks: real threads, virtual time, slow and ragged
// wires.
#include <gtest/gtest.h>

#include <utility>

#include "base/sim_scheduler.h"
#include "transport/conformance_testing.h"
#include "transport/inproc/network.h"

namespace weir::transport {
namespace {

class InprocWorld final : public World {
 public:
  InprocWorld(std::unique_ptr<Scheduler> scheduler, std::uint64_t seed,
              const inproc::Faults& faults)
      : scheduler_(std::move(scheduler)), network_(scheduler_.get(), seed) {
    network_.SetFaults(faults);
  }
  std::unique_ptr<Transport> NewTransport() override { return network_.NewTransport(); }
  std::string Host() const override { return "inproc"; }
  Scheduler* scheduler() override { return scheduler_.get(); }

 private:
  const std::unique_ptr<Scheduler> scheduler_;
  inproc::Network network_;
};

Backend OnThreads(int threads) {
  return {"Threads" + std::to_string(threads), [threads] {
            return std::make_unique<InprocWorld>(NewPoolScheduler(threads), 1, inproc::Faults());
          }};
}

Backend Simulated(std::uint64_t seed) {
  // Nothing here may lose a frame: that is what the suite asks.
  const inproc::Faults faults = {.delay_max = std::chrono::milliseconds(seed * 5),
                                 .split = seed % 2 == 0 ? 0 : 0.5};
  return {"Simulated" + std::to_string(seed), [seed, faults] {
            return std::make_unique<InprocWorld>(std::make_unique<SimScheduler>(seed), seed,
                                                 faults);
          }};
}

INSTANTIATE_TEST_SUITE_P(Inproc, TransportConformanceTest,
                         testing::Values(OnThreads(1), OnThreads(4), Simulated(0), Simulated(1),
                                         Simulated(2), Simulated(3)),
                         BackendName());

}  // namespace
}  // namespace weir::transport
