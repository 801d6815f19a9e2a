// Aten nodes and libtorch's dispatcher: which operators may be nodes, and a node bound to its
// schema.
//
// An operator may be a node when running it twice on the same inputs (and generator) gives the same
// outputs and changes nothing else. The dispatcher's schemas say most of that; what they leave out
// is listed in aten_purity.cc.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weir/graph.h"

namespace weir::graph {

/// An operator that may be a node. Cheap to copy.
class AtenOperator {
 public:
  /// `name` is "aten::linear", `overload` "" for the plain one. InvalidArgument for an operator
  /// that does not exist (listing the overloads that do), writes to its arguments, hides such a
  /// write, draws random numbers without taking a generator, or returns anything but tensors. Which
  /// of these may depend on arguments is checked by AtenCall.
  static absl::StatusOr<AtenOperator> Find(const std::string& name, const std::string& overload);

  const c10::OperatorHandle& handle() const { return handle_; }
  const c10::FunctionSchema& schema() const { return handle_.schema(); }
  /// As libtorch prints it: "aten::relu(Tensor self) -> Tensor".
  std::string SchemaText() const;
  /// The number of tensors it returns; nullopt when it returns a list of them.
  std::optional<int> num_outputs() const;

 private:
  explicit AtenOperator(c10::OperatorHandle handle) : handle_(handle) {}

  c10::OperatorHandle handle_;
};

/// One Aten node, compiled: its operator found, its attributes checked against the schema and
/// converted. Immutable; Run may be called from many threads at a time.
class AtenCall {
 public:
  /// InvalidArgument naming the node, the operator, the argument and the schema, when an attribute
  /// is no argument or of the wrong type, an argument is missing, or inputs are left over.
  /// `device`, where given, is where a factory ("aten::zeros") makes its tensor; shape inference
  /// asks for the meta device.
  static absl::StatusOr<AtenCall> Build(const Node& node,
                                        std::optional<at::Device> device = std::nullopt);

  /// Calls the operator. `inputs` are the node's data inputs; an undefined tensor is None, which
  /// only optional arguments take. `generator` may be null unless needs_generator(); an undefined
  /// one is None, for runs that draw nothing. `outputs` is overwritten. InvalidArgument with
  /// libtorch's own message when the operator throws. No look-ups happen here, and no copies of
  /// tensors.
  absl::Status Run(const std::vector<at::Tensor>& inputs, const at::Generator* generator,
                   std::vector<at::Tensor>& outputs) const;

  /// It draws random numbers, from the generator given to Run.
  bool needs_generator() const { return generator_position_ >= 0; }
  const AtenOperator& op() const { return operator_; }

 private:
  class Builder;
  /// An argument whose value comes with each run.
  struct TensorArgument {
    enum class Kind { kTensor, kList, kOptionalList };
    Kind kind = Kind::kTensor;
    bool optional = false;     // kTensor: may be None
    std::size_t position = 0;  // on the stack
    std::size_t first_input = 0;
    std::vector<bool> present;  // lists: which elements take an input; the others are None
  };

  explicit AtenCall(AtenOperator op) : operator_(std::move(op)) {}
  absl::Status AbsentInput(const TensorArgument& argument) const;
  static c10::IValue MakeList(const TensorArgument& argument,
                              const std::vector<at::Tensor>& inputs);

  AtenOperator operator_;
  torch::jit::Stack template_;  // every argument; tensors and generator are None
  std::vector<TensorArgument> tensors_;
  std::size_t num_inputs_ = 0;
  int generator_position_ = -1;
  std::string context_;  // "node 'x' (aten::relu)", in front of every error
};

}  // namespace weir::graph
