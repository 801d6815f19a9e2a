// Copies of a module for steps that run at the same time.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace weir::graph {

/// One copy, with its tensors in the order of named_parameters and named_buffers. Its parameters
/// are no leaves of autograd: each stands for whatever tensor it was bound to.
struct ModuleReplica {
  std::shared_ptr<torch::nn::Module> module;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;

  /// Makes parameter i the alias of values[i], gradient included, and buffer j a copy of
  /// values[parameters.size() + j].
  void Bind(const std::vector<at::Tensor>& values);
  /// Lets go of what the parameters were bound to, and of what autograd knows of the buffers.
  void Unbind();
};

/// A copy of `module`, each part in the mode (training or evaluation) that it is in. Draws no
/// random numbers, as far as others see. Throws what clone throws.
std::unique_ptr<ModuleReplica> CopyOf(const torch::nn::Module& module);

/// Thread-safe, as long as nobody changes the prototype.
class ModuleReplicas : public std::enable_shared_from_this<ModuleReplicas> {
 public:
  explicit ModuleReplicas(std::shared_ptr<const torch::nn::Module> prototype)
      : prototype_(std::move(prototype)) {}

  /// A copy that nobody else uses until the last pointer to it is gone. Throws what clone throws.
  std::shared_ptr<ModuleReplica> Take();

 private:
  void Return(std::unique_ptr<ModuleReplica> replica);

  const std::shared_ptr<const torch::nn::Module> prototype_;
  Mutex mutex_;
  std::vector<std::unique_ptr<ModuleReplica>> idle_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::graph
