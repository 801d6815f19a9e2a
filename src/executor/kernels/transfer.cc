// Kernels through which values enter and leave a partition.
#include <ATen/Functions.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"
#include "store/dense.h"
#include "tensor/dtype.h"

namespace weir::executor {
namespace {

absl::StatusOr<std::uint32_t> EdgeOf(const Node& node) {
  WEIR_ASSIGN_OR_RETURN(const auto edge, graph::GetAttr<std::int64_t>(node, "edge"));
  if (edge < 0 || edge > std::numeric_limits<std::uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("bad edge ", edge));
  }
  return static_cast<std::uint32_t>(edge);
}

absl::StatusOr<int> IndexOf(const Node& node) {
  WEIR_ASSIGN_OR_RETURN(const auto index, graph::GetAttr<std::int64_t>(node, "index"));
  if (index < 0 || index > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("bad index ", index));
  }
  return static_cast<int>(index);
}

absl::Status CheckSendable(const at::Tensor& tensor) {
  if (tensor.layout() == at::kStrided && tensor.device().is_cpu() &&
      DtypeCode(tensor.scalar_type()) != 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("only dense tensors in host memory can be sent, not ", tensor.toString()));
}

// What is sent owns its storage and is plain bytes: a view would keep more alive than it shows, and
// would have to be copied by whoever puts it on the wire.
at::Tensor WithOwnStorage(const at::Tensor& tensor) {
  const at::Tensor plain = store::ToPlain(tensor);
  return plain.storage().nbytes() == plain.nbytes() ? plain : plain.clone();
}

class SendKernel final : public Kernel {
 public:
  SendKernel(SendEdge edge, std::uint32_t version_slot)
      : edge_(std::move(edge)), version_slot_(version_slot) {}

  absl::Status Run(NodeContext& context) const override {
    Value value;
    if (!edge_.control) value = context.input(0);
    if (value.tensor.defined()) {
      WEIR_RETURN_IF_ERROR(CheckSendable(value.tensor));
      WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kResourceExhausted, "copying what is sent",
                                   [&] { value.tensor = WithOwnStorage(value.tensor); }));
    }
    if (version_slot_ != kNone) value.version = context.version(version_slot_);
    context.step().Send(edge_, std::move(value));
    return absl::OkStatus();
  }
  bool eager() const override { return true; }

 private:
  const SendEdge edge_;
  const std::uint32_t version_slot_;
};

class RecvKernel final : public Kernel {
 public:
  RecvKernel(std::uint32_t edge, std::optional<OutputInfo> output)
      : edge_(edge), output_(std::move(output)) {}

  absl::Status Run(NodeContext& context) const override {
    context.step().Receive(edge_, context.Defer());
    return absl::OkStatus();
  }

  // The value may come from another process, and whatever runs next relies on the graph's word.
  absl::Status Accept(NodeContext& context, Value value) const override {
    if (!output_) return absl::OkStatus();
    if (value.tensor.defined()) {
      WEIR_RETURN_IF_ERROR(CheckTensor(value.tensor, *output_, "what was received"));
    }
    context.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }
  bool eager() const override { return true; }

 private:
  const std::uint32_t edge_;
  const std::optional<OutputInfo> output_;  // none: a control edge
};

class FeedKernel final : public Kernel {
 public:
  FeedKernel(int index, OutputInfo output) : index_(index), output_(std::move(output)) {}

  absl::Status Run(NodeContext& context) const override {
    const at::Tensor* feed = context.step().feed(index_);
    if (feed == nullptr || !feed->defined()) {
      return absl::InvalidArgumentError(absl::StrCat("nothing was fed at position ", index_));
    }
    WEIR_RETURN_IF_ERROR(CheckTensor(*feed, output_, "what was fed"));
    context.SetOutput(0, {.tensor = *feed});
    return absl::OkStatus();
  }

 private:
  const int index_;
  const OutputInfo output_;
};

class FetchKernel final : public Kernel {
 public:
  explicit FetchKernel(int index) : index_(index) {}
  absl::Status Run(NodeContext& context) const override {
    context.step().AddFetch(index_, context.input(0).tensor);
    return absl::OkStatus();
  }

 private:
  const int index_;
};

// The node whose version a Send echoes, by its name; kNone when it names none.
absl::StatusOr<std::uint32_t> EchoedVersion(CompileContext& context, const Node& node) {
  const auto name = graph::AttrOr<std::string>(node, "version_of", "");
  if (name.empty()) return kNone;
  const std::vector<Node>& nodes = context.graph().nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].name == name && !nodes[n].outputs.empty()) {
      return context.VersionSlotOf(static_cast<int>(n));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("version_of names '", name, "', which gives nothing in this partition"));
}

}  // namespace

KernelOr MakeSend(CompileContext& context, const Node& node) {
  SendEdge edge;
  edge.control = graph::AttrOr(node, "control", false);
  WEIR_RETURN_IF_ERROR(CheckArity(node, edge.control ? 0 : 1, 0));
  WEIR_ASSIGN_OR_RETURN(edge.edge, EdgeOf(node));
  WEIR_ASSIGN_OR_RETURN(edge.to_device, graph::GetAttr<std::string>(node, "to"));
  WEIR_ASSIGN_OR_RETURN(const std::uint32_t version_slot, EchoedVersion(context, node));
  context.program().sends.push_back(edge);
  return std::make_unique<SendKernel>(std::move(edge), version_slot);
}

KernelOr MakeRecv(CompileContext& context, const Node& node) {
  RecvEdge edge;
  edge.control = graph::AttrOr(node, "control", false);
  WEIR_RETURN_IF_ERROR(CheckArity(node, 0, edge.control ? 0 : 1));
  WEIR_ASSIGN_OR_RETURN(edge.edge, EdgeOf(node));
  WEIR_ASSIGN_OR_RETURN(edge.from_device, graph::GetAttr<std::string>(node, "from"));
  std::optional<OutputInfo> output;
  if (!edge.control) {
    output = node.outputs[0];
    edge.dtype = output->dtype;
    edge.shape = output->shape;
  }
  context.program().recvs.push_back(edge);
  return std::make_unique<RecvKernel>(edge.edge, std::move(output));
}

KernelOr MakeFeed(CompileContext&, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 0, 1));
  WEIR_ASSIGN_OR_RETURN(const int index, IndexOf(node));
  return std::make_unique<FeedKernel>(index, node.outputs[0]);
}

KernelOr MakeFetch(CompileContext&, const Node& node) {
  WEIR_RETURN_IF_ERROR(CheckArity(node, 1, 0));
  WEIR_ASSIGN_OR_RETURN(const int index, IndexOf(node));
  return std::make_unique<FetchKernel>(index);
}

}  // namespace weir::executor
