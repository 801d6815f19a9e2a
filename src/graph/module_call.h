// One call of a module as a function of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/module_replicas.h"
#include "weir/module.h"

namespace weir::graph {

/// How a call hands on what it changed in a buffer: as outputs of its own, what the buffer has
/// become less what it was. Where nothing has changed they say 0, infinite elements or not.
enum class BufferChange : std::uint8_t {
  kNone,  // not at all: bools have no difference
  kSum,   // one output of the buffer's shape, for AssignAdd
  kRows,  // two, the rows that changed and their differences, for ScatterAdd
};

/// Tables, from rank 2 on, are handed on by rows: one that stays as it is costs a comparison only.
BufferChange ChangeOf(const at::Tensor& buffer);

/// Takes inputs, parameters and buffers, in this order; returns what forward returns, and then the
/// changes of the buffers if `changes`. Thread-safe.
class ModuleCall {
 public:
  ModuleCall(std::shared_ptr<ModuleReplicas> replicas, ModuleForward forward,
             std::size_t num_inputs, bool changes);

  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& values) const;

 private:
  std::shared_ptr<ModuleReplicas> replicas_;
  ModuleForward forward_;
  std::ptrdiff_t num_inputs_;
  bool changes_;
};

}  // namespace weir::graph
