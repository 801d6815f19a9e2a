// What kernels are made from: a node, its partition, and what it may hold on to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/device.h"
#include "executor/layout.h"
#include "executor/program_impl.h"
#include "graph/passes.h"

namespace weir::executor {

class CompileContext {
 public:
  /// Arguments outlive the context. `program` has its layout already.
  CompileContext(const graph::PartitionDef& partition, const CompileEnvironment& environment,
                 ProgramImpl& program);

  const GraphDef& graph() const { return partition_.graph; }
  const Node& node(int index) const {
    return partition_.graph.nodes[static_cast<std::size_t>(index)];
  }
  const CompileEnvironment& environment() const { return environment_; }
  ProgramImpl& program() { return program_; }
  const SegmentNumbers& segments() const { return segments_; }

  /// True when `device` belongs to the same task as this partition: what is sent there is not
  /// copied on the way.
  bool IsSameTask(const std::string& device) const;

  /// The variable whose handle is input `input` of `node`. InvalidArgument when that is no handle.
  absl::StatusOr<std::shared_ptr<store::Variable>> VariableOf(const Node& node, int input = 0);
  /// The first Read of, or Gather from, the variable that `node` has the handle of, -1 when there
  /// is none here.
  int ReadOf(const Node& node) const;
  /// Where the version of output 0 of node `index` can be found once it has been set.
  std::uint32_t VersionSlotOf(int index);

 private:
  const graph::PartitionDef& partition_;
  const CompileEnvironment& environment_;
  ProgramImpl& program_;
  const SegmentNumbers segments_;
};

/// Makes the kernel of node `index` by its op; its layout is done. InvalidArgument for an unknown
/// op or bad attributes, NotFound for what this process does not hold.
absl::StatusOr<std::unique_ptr<const Kernel>> MakeKernel(CompileContext& context, int index);

}  // namespace weir::executor
