// Modules of libtorch as part of a graph.
//
//   auto net = std::make_shared<Net>();  // struct Net : torch::nn::Cloneable<Net> { ... }
//   weir::Module module(graph, net, "net");   // under the scope of a device setter
//   auto logits = module({images})[0];
//   auto loss = weir::ops::cross_entropy_loss(logits, labels);
//   auto train = job->strategy().Minimize(weir::Adam{}, loss);
//   session.Run(feeds, {loss}, {train, module.updates()});
//   ...
//   auto values = session.Run({}, module.state());
//   module.Load(values->fetches);  // the trained values are in `net` now
//
// The module's parameters and buffers become variables; what the module computes runs in the
// process that built the graph, as any Function. Include this header where it is used: it brings
// libtorch's modules along.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "weir/graph.h"

namespace weir {

/// Calls the forward of a module whose type was forgotten.
using ModuleForward = std::function<std::vector<at::Tensor>(torch::nn::Module& module,
                                                            const std::vector<at::Tensor>& inputs)>;

namespace module_internal {

inline std::vector<at::Tensor> ToVector(at::Tensor output) {
  return {std::move(output)};
}
inline std::vector<at::Tensor> ToVector(std::vector<at::Tensor> outputs) {
  return outputs;
}
template <class... Tensors>
std::vector<at::Tensor> ToVector(const std::tuple<Tensors...>& outputs) {
  return std::apply([](const auto&... tensors) { return std::vector<at::Tensor>{tensors...}; },
                    outputs);
}

template <class M, std::size_t... I>
bool TryForward(M& module, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& outputs,
                std::index_sequence<I...>) {
  if constexpr (requires { module.forward(inputs[I]...); }) {
    if (inputs.size() != sizeof...(I)) return false;
    outputs = ToVector(module.forward(inputs[I]...));
    return true;
  }
  return false;
}

template <class M, std::size_t... N>
bool TryArities(M& module, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor>& outputs,
                std::index_sequence<N...>) {
  return (TryForward(module, inputs, outputs, std::make_index_sequence<N + 1>()) || ...);
}

}  // namespace module_internal

/// The forward of an M: 1 to 6 tensors to a tensor, a tuple of tensors or a vector of them.
template <class M>
ModuleForward ForwardOf() {
  return [](torch::nn::Module& module, const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> outputs;
    if (!module_internal::TryArities(dynamic_cast<M&>(module), inputs, outputs,
                                     std::make_index_sequence<6>())) {
      throw std::invalid_argument("its forward does not take " + std::to_string(inputs.size()) +
                                  " tensors");
    }
    return outputs;
  };
}

/// A module and its variables. Cheap to copy; lives no longer than its graph is used.
///
/// What a module must be for its steps to be those of the plain one:
/// - It can be copied by torch::nn::Module::clone: M is a torch::nn::Cloneable.
/// - No two of its parameters and buffers share memory.
/// - Its state is its registered buffers, changed in place (`total.add_(x)`). A member that is
///   assigned anew (`total = total + x`) no longer is the buffer: its change is lost to the
///   variable and stays behind in a copy that some later step may or may not get.
/// - Its forward leaves its parameters alone. What it writes to them (an Embedding with max_norm)
///   may go to the variable itself, under the eyes of every other reader, or to a copy that is
///   thrown away, as the variable happens to be read.
class Module {
 public:
  /// Makes a variable of every parameter, "<name>/<parameter>" with the parameter's value as the
  /// first one, trainable if it requires a gradient, and a non-trainable one of every buffer. The
  /// scopes around it place them; a partitioner is asked of parameters that are no scalars. The
  /// module itself is kept but never run: each call takes a copy, and every step runs on a copy of
  /// that. Errors are the graph's: a module that cannot be cloned, parameters that share memory.
  template <class M>
  Module(Graph& graph, std::shared_ptr<M> module, const std::string& name = "module",
         const VariableOptions& options = {})
      : Module(graph, std::move(module), ForwardOf<M>(), name, options) {}

  /// The same for a type that only `forward` knows.
  Module(Graph& graph, std::shared_ptr<torch::nn::Module> module, ModuleForward forward,
         const std::string& name, const VariableOptions& options);

  /// One node that runs forward on a copy of the module as it is now, each part of it in the mode
  /// that it is in: for both modes, call it once after train() and once after eval(). Ranks and
  /// dtypes of the inputs are known; -1 is a dimension of any size that forward takes. What it
  /// returns is found out by running further copies on zeros of several sizes. Empty after an
  /// error, which the graph then holds.
  ///
  /// What forward draws at random (dropout) comes from libtorch's generator of the process, as in
  /// the plain module; the copies draw nothing. It has no seed of its own for each step, unlike the
  /// operators of Graph::Aten: forward cannot be given a generator, and to seed the one of the
  /// process for a step would let no two steps run at a time. So a run repeats its numbers after
  /// torch::manual_seed if one step is in flight at a time in the process.
  std::vector<Output> operator()(const std::vector<Output>& inputs);

  /// Adds to the buffers what the calls made so far, with any part in training mode, have changed
  /// in them, the running statistics of a batch norm for one: a target beside the training step.
  /// Call it after those calls; before them it does nothing. Of tables, from rank 2 on, the rows
  /// that changed travel. An infinity stays, but nothing leads from it to another value. Buffers of
  /// bools stay as they are.
  ///
  /// Changes of several workers add up, like gradients, and like them each is that of a value read
  /// earlier. For running statistics with momentum 0.1 this settles as long as fewer than about 15
  /// updates of others fall between a worker's read and its own; with more workers lower the
  /// momentum, or let one worker alone run updates().
  ///
  /// It waits for no ticket of the training step: a Run that ends with OutOfRange at the step limit
  /// may have changed the buffers all the same.
  Operation updates();

  /// Every parameter and buffer, to be fetched and given to Load.
  std::vector<Output> state() const;
  /// Names of `state`, those of named_parameters and named_buffers.
  std::vector<std::string> names() const;
  /// Writes fetched values of `state` into the module. InvalidArgument when they do not fit, or
  /// when the module has got other parameters or buffers since.
  absl::Status Load(const std::vector<at::Tensor>& values) const;

 private:
  struct Shared;
  absl::Status MakeVariables(const VariableOptions& options);

  std::shared_ptr<Shared> shared_;
};

}  // namespace weir
