// What a partition is compiled to: flat arrays that steps read, and nothing that they write.
//
// Values live in slots. Each output of a node has one for what leaves the node, free of autograd's
// history; an output that its own segment uses has a second, "live", for the tensor that autograd
// follows; and each value that enters a segment to be differentiated has a third kind, a "leaf":
//
//   slots = [ one for each output | live ones | leaves ]
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/kernel.h"
#include "executor/program.h"
#include "store/variable.h"

namespace weir::executor {

inline constexpr std::uint32_t kNone = 0xffffffff;

/// Positions [begin, end) of one of the arrays below.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
};

struct OutputPlan {
  std::uint32_t live = kNone;          // slot
  std::uint32_t version_slot = kNone;  // where its version is noted
  Range consumers;                     // of Layout::targets
};

struct NodePlan {
  Range inputs;    // of Layout::inputs
  Range releases;  // of Layout::releases
  Range controls;  // of Layout::targets: who waits for the node itself
  Range outputs;   // of Layout::outputs, which are also slots
  bool recorded = false;
};

/// Where values go and who waits for whom. Made by MakeLayout, pure data.
struct Layout {
  std::vector<NodePlan> nodes;
  std::vector<OutputPlan> outputs;
  std::vector<std::uint32_t> inputs;    // slots read, in order of data inputs
  std::vector<std::uint32_t> releases;  // slots of which a node gives back one reference each
  std::vector<std::uint32_t> targets;   // nodes
  std::uint32_t first_leaf = 0;
  std::vector<std::uint32_t> leaf_sources;  // by leaf: the slot whose value it takes
  // What a step starts from:
  std::vector<std::int32_t> pending;     // by node: inputs that are missing
  std::vector<std::int32_t> references;  // by slot: nodes that will read it
  std::vector<std::int32_t> backwards;   // by segment: its Backward nodes
};

/// A compiled partition. Immutable.
class ProgramImpl {
 public:
  std::string device;
  Layout layout;
  std::vector<std::unique_ptr<const Kernel>> kernels;  // by node
  std::vector<std::string> labels;         // by node, for errors: "node 'fc1/matmul' (aten::mm)"
  std::vector<bool> eager;                 // by node
  std::vector<std::uint32_t> ready;        // nodes that wait for nothing, ascending
  std::vector<std::uint32_t> ready_eager;  // the same, of eager kernels
  std::uint32_t num_version_slots = 0;
  std::vector<SendEdge> sends;
  std::vector<RecvEdge> recvs;
  /// Variables that this program takes tickets from.
  std::vector<std::shared_ptr<store::Variable>> ticket_counters;
  /// Constants' storages: what is fetched of them has to be copied.
  std::vector<const void*> constants;
  bool small = false;
};

}  // namespace weir::executor
