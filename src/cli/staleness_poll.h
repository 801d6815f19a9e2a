// Asks the tasks that own variables, now and then, how stale the gradients are that reach them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "cluster/cluster_spec.h"
#include "rpc/control_plane.h"

namespace weir::cli {

/// Never blocks: the answers of one round are seen in the next.
class StalenessPoll {
 public:
  /// Of the ps tasks of `cluster`, or of its workers where it has no ps.
  explicit StalenessPoll(const ClusterSpec& cluster);

  /// Asks again, unless the last round is still out.
  void Ask();
  /// Median and largest staleness over the variables, the worst of them; nullopt before the first
  /// answer.
  struct Answer {
    std::uint64_t p50 = 0, max = 0;
  };
  std::optional<Answer> latest() const;

 private:
  struct Shared {
    mutable Mutex mutex;
    int out WEIR_GUARDED_BY(mutex) = 0;
    std::optional<Answer> answer WEIR_GUARDED_BY(mutex);
  };

  const std::unique_ptr<rpc::ControlPlane> control_plane_;
  std::vector<std::shared_ptr<rpc::TaskClient>> clients_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace weir::cli
