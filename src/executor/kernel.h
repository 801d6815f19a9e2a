// What runs one node: kernels, and what a kernel sees of the step that runs it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "executor/program.h"
#include "rendezvous/value.h"
#include "store/ticket_book.h"

namespace weir::executor {

class StepState;

/// Ends a node that was deferred; called exactly once, on any thread.
using Completion = std::function<void(absl::StatusOr<Value>)>;

/// What kernels ask of the step around them. Called on the step's thread.
class StepHost {
 public:
  virtual ~StepHost() = default;

  virtual const store::StepId& id() const = 0;
  /// nullptr when the run gives no such feed.
  virtual const at::Tensor* feed(std::int64_t index) const = 0;
  virtual void AddFetch(int index, at::Tensor tensor) = 0;
  virtual void Send(const SendEdge& edge, Value value) = 0;
  virtual void Receive(std::uint32_t edge, Completion done) = 0;
  virtual void HoldTicket(std::uint64_t ticket) = 0;
  /// `tensor` is a variable's own buffer: what is fetched of it has to be copied.
  virtual void NoteInPlaceRead(const at::Tensor& tensor) = 0;
  /// The node goes on until the completion is called; its Accept then gets the value.
  virtual Completion Defer(std::uint32_t node) = 0;
  /// Runs what has become ready and is worth running inside another node: sends, above all.
  virtual void RunEager() = 0;
};

/// One node of one step, while it runs.
class NodeContext {
 public:
  NodeContext(StepHost& host, StepState& state, std::uint32_t node)
      : host_(host), state_(state), node_(node) {}

  StepHost& step() { return host_; }
  /// Data inputs: a tensor that autograd follows where the node is recorded. Stays valid while the
  /// node runs.
  const Value& input(std::size_t index) const;
  std::size_t num_inputs() const;
  /// Every output is set exactly once, at the end by whoever completes the node. Consumers become
  /// ready at once.
  void SetOutput(std::size_t index, Value value);
  /// Leaves the node running: it ends when the completion is called.
  Completion Defer();
  bool deferred() const { return deferred_; }
  /// The version that a node noted here; see CompileContext::VersionSlotOf.
  std::uint64_t version(std::uint32_t version_slot) const;
  /// Counts one Backward of `segment`; true for the last one, after which its tape is not needed.
  bool IsLastBackward(std::uint32_t segment);

 private:
  StepHost& host_;
  StepState& state_;
  const std::uint32_t node_;
  bool deferred_ = false;
};

/// Runs one node. Immutable, one for each node of a program, shared by the steps that run it at the
/// same time. Errors get the device and, unless `names_node()`, the node put in front by the step.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual absl::Status Run(NodeContext& context) const = 0;
  /// A deferred node has got its value.
  virtual absl::Status Accept(NodeContext& context, Value value) const {
    context.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }
  /// Starts before everything else that is ready, and even inside a backward call: what passes
  /// values on, and costs little.
  virtual bool eager() const { return false; }
  virtual bool names_node() const { return false; }
  /// False when it may take long however small its tensors are.
  virtual bool cheap() const { return true; }
};

}  // namespace weir::executor
