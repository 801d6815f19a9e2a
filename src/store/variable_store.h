// All variables of a task, under (container, name). State outlives sessions; nothing is ever
// initialised over a live variable.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "store/run_initializer.h"
#include "store/variable.h"

namespace weir::store {

/// Thread-safe.
class VariableStore {
 public:
  /// The variable of (def.container, def.name), made when it is missing. InvalidArgument when one
  /// exists with another dtype or shape, naming both. Not initialised by this. Options of an
  /// existing variable stay.
  absl::StatusOr<std::shared_ptr<Variable>> Ensure(const VariableDef& def);

  /// NotFound names the container and what it holds.
  absl::StatusOr<std::shared_ptr<Variable>> Find(const std::string& container,
                                                 const std::string& name) const;

  /// Forgets every variable of the named containers. A running step keeps what it holds.
  void Reset(const std::vector<std::string>& containers);

  std::vector<std::shared_ptr<Variable>> All() const;

 private:
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Variable>> variables_
      WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::store
