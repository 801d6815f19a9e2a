#include "graph/module_replicas.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "graph/random_state.h"

namespace weir::graph {
namespace {

using torch::autograd::Edge;
namespace autograd = torch::autograd::impl;

// A module keeps its tensors in members of its own, which nobody can replace from outside. What
// they hold and where their gradient goes can be.
void Alias(at::Tensor& parameter, const at::Tensor& value) {
  const bool recorded = at::GradMode::is_enabled() && value.requires_grad();
  autograd::set_gradient_edge(parameter, Edge());
  parameter.set_data(value.detach());
  if (recorded) autograd::set_gradient_edge(parameter, autograd::gradient_edge(value));
}

// Cloning initialises anew what it then overwrites. How many copies there are is not for those who
// draw random numbers to notice.
std::shared_ptr<torch::nn::Module> Clone(const torch::nn::Module& module) {
  const KeptRandomState state;
  return module.clone();
}

}  // namespace

void ModuleReplica::Bind(const std::vector<at::Tensor>& values) {
  for (std::size_t i = 0; i < parameters.size(); ++i) Alias(parameters[i], values[i]);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    buffers[i].set_data(values[parameters.size() + i].detach().clone());
}

void ModuleReplica::Unbind() {
  for (at::Tensor& parameter : parameters) {
    autograd::set_gradient_edge(parameter, Edge());
    parameter.set_data(at::empty({0}, parameter.options().requires_grad(false)));
  }
  for (at::Tensor& buffer : buffers) autograd::set_gradient_edge(buffer, Edge());
}

std::unique_ptr<ModuleReplica> CopyOf(const torch::nn::Module& module) {
  auto replica = std::make_unique<ModuleReplica>();
  replica->module = Clone(module);
  for (at::Tensor& parameter : replica->module->parameters()) {
    parameter.set_requires_grad(false);
    replica->parameters.push_back(parameter);
  }
  for (const at::Tensor& buffer : replica->module->buffers()) replica->buffers.push_back(buffer);
  return replica;
}

std::shared_ptr<ModuleReplica> ModuleReplicas::Take() {
  std::unique_ptr<ModuleReplica> replica;
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      replica = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (replica == nullptr) replica = CopyOf(*prototype_);
  return {replica.release(), [home = shared_from_this()](ModuleReplica* used) {
            home->Return(std::unique_ptr<ModuleReplica>(used));
          }};
}

void ModuleReplicas::Return(std::unique_ptr<ModuleReplica> replica) {
  replica->Unbind();
  MutexLock lock(mutex_);
  idle_.push_back(std::move(replica));
}

}  // namespace weir::graph
