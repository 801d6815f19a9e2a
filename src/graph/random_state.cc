#include "graph/random_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace weir::graph {
namespace {

// The generator is one for the process, and so is the lock of who restores it.
Mutex& Restorer() {
  static Mutex mutex;
  return mutex;
}

at::Generator Default() {
  return at::detail::getDefaultCPUGenerator();
}

}  // namespace

KeptRandomState::KeptRandomState() {
  Restorer().Lock();
  at::Generator generator = Default();
  const std::scoped_lock lock(generator.mutex());
  state_ = generator.get_state();
}

KeptRandomState::~KeptRandomState() {
  {
    at::Generator generator = Default();
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(state_);
  }
  Restorer().Unlock();
}

}  // namespace weir::graph
