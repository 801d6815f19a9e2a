// A partition, compiled: everything a step needs that does not change from step to step.
//
// Variables are looked up, operators bound, optimizer slots made and inputs resolved to positions
// once, here, so that a step does no look-up by name and its state is a few flat arrays.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/passes.h"
#include "store/variable_store.h"
#include "weir/graph.h"

namespace weir::executor {

struct CompileEnvironment {
  store::VariableStore* store =
      nullptr;  // not owned; holds every variable of the partition already
  /// Functions this process holds, by handle; null where there are none.
  const std::map<std::int64_t, TensorFunction>* functions = nullptr;
  /// Container of variables that name none: the job's name.
  std::string default_container;
};

/// A value that leaves the device.
struct SendEdge {
  std::uint32_t edge = 0;
  std::string to_device;
  bool control = false;
};

/// A value that comes from another device.
struct RecvEdge {
  std::uint32_t edge = 0;
  std::string from_device;
  bool control = false;
  at::ScalarType dtype = at::ScalarType::Undefined;
  Shape shape;
};

class ProgramImpl;

/// Immutable; shared by all steps that run it.
class Program {
 public:
  /// InvalidArgument, NotFound (a variable that is not in the store, a function this process does
  /// not hold), with the node's name.
  static absl::StatusOr<std::shared_ptr<const Program>> Compile(
      const graph::PartitionDef& partition, const CompileEnvironment& environment);
  explicit Program(std::unique_ptr<const ProgramImpl> impl);
  ~Program();

  const std::string& device() const;
  const std::vector<SendEdge>& sends() const;
  const std::vector<RecvEdge>& recvs() const;
  /// True when a step of it is so little work that handing it to another thread would cost more
  /// (all shapes known and small; no Function).
  bool is_small() const;

  const ProgramImpl& impl() const { return *impl_; }

 private:
  std::unique_ptr<const ProgramImpl> impl_;
};

/// What VariableDef a Variable node stands for.
absl::StatusOr<store::VariableDef> VariableDefFromNode(const Node& node, std::uint64_t graph_seed,
                                                       const std::string& default_container);

}  // namespace weir::executor
