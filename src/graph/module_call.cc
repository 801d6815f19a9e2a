#include "graph/module_call.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace weir::graph {
namespace {

// Autograd has saved tensors of the replica for the way back.
void Keep(const std::shared_ptr<ModuleReplica>& replica, const at::Tensor& output) {
  if (output.defined() && output.requires_grad())
    output.register_hook([replica](const at::Tensor&) {});
}

// An infinity less itself is no number, and would not leave the variable as it was.
at::Tensor Difference(const at::Tensor& now, const at::Tensor& before) {
  return at::sub(now, before).masked_fill_(at::eq(now, before), 0);
}

void AppendRows(const at::Tensor& now, const at::Tensor& before, std::vector<at::Tensor>& outputs) {
  const at::Tensor rows = at::ne(now, before).flatten(1).any(1).nonzero().flatten();
  outputs.push_back(rows);
  outputs.push_back(Difference(now.index_select(0, rows), before.index_select(0, rows)));
}

void AppendChanges(const ModuleReplica& replica, const std::vector<at::Tensor>& values,
                   std::vector<at::Tensor>& outputs) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < replica.buffers.size(); ++i) {
    const at::Tensor now = replica.buffers[i].detach();
    const at::Tensor& before = values[values.size() - replica.buffers.size() + i];
    const BufferChange change = ChangeOf(now);
    if (change == BufferChange::kSum) outputs.push_back(Difference(now, before));
    if (change == BufferChange::kRows) AppendRows(now, before, outputs);
  }
}

}  // namespace

BufferChange ChangeOf(const at::Tensor& buffer) {
  if (buffer.scalar_type() == at::kBool) return BufferChange::kNone;
  return buffer.dim() < 2 ? BufferChange::kSum : BufferChange::kRows;
}

ModuleCall::ModuleCall(std::shared_ptr<ModuleReplicas> replicas, ModuleForward forward,
                       std::size_t num_inputs, bool changes)
    : replicas_(std::move(replicas)),
      forward_(std::move(forward)),
      num_inputs_(static_cast<std::ptrdiff_t>(num_inputs)),
      changes_(changes) {}

std::vector<at::Tensor> ModuleCall::operator()(const std::vector<at::Tensor>& values) const {
  const std::shared_ptr<ModuleReplica> replica = replicas_->Take();
  replica->Bind({values.begin() + num_inputs_, values.end()});
  std::vector<at::Tensor> outputs =
      forward_(*replica->module, {values.begin(), values.begin() + num_inputs_});
  for (const at::Tensor& output : outputs) Keep(replica, output);
  if (changes_) AppendChanges(*replica, values, outputs);
  return outputs;
}

}  // namespace weir::graph
