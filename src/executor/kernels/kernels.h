// The kernels, by op family. Each maker checks its node's attributes and resolves what it holds.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "executor/compile_context.h"

namespace weir::executor {

using KernelOr = absl::StatusOr<std::unique_ptr<const Kernel>>;

// kernels/flow.cc
KernelOr MakeConst(CompileContext& context, const Node& node);
KernelOr MakeIdentity(CompileContext& context, const Node& node);
KernelOr MakeGroup(CompileContext& context, const Node& node);

// kernels/transfer.cc
KernelOr MakeSend(CompileContext& context, const Node& node);
KernelOr MakeRecv(CompileContext& context, const Node& node);
KernelOr MakeFeed(CompileContext& context, const Node& node);
KernelOr MakeFetch(CompileContext& context, const Node& node);

// kernels/state.cc
KernelOr MakeVariable(CompileContext& context, const Node& node);
KernelOr MakeRead(CompileContext& context, const Node& node);
KernelOr MakeAssign(CompileContext& context, const Node& node);
KernelOr MakeAssignAdd(CompileContext& context, const Node& node);
KernelOr MakeIsInitialized(CompileContext& context, const Node& node);

// kernels/row_state.cc
KernelOr MakeGather(CompileContext& context, const Node& node);
KernelOr MakeScatterAdd(CompileContext& context, const Node& node);
KernelOr MakeScatterUpdate(CompileContext& context, const Node& node);

// kernels/shards.cc
KernelOr MakeShardIds(CompileContext& context, const Node& node);
KernelOr MakeSumRows(CompileContext& context, const Node& node);
KernelOr MakeSplit(CompileContext& context, const Node& node);

// kernels/training.cc
KernelOr MakeApply(CompileContext& context, const Node& node);
KernelOr MakeAverage(CompileContext& context, const Node& node);
KernelOr MakeTicket(CompileContext& context, const Node& node);
KernelOr MakeCompleteStep(CompileContext& context, const Node& node);

// kernels/compute.cc
KernelOr MakeAten(CompileContext& context, const Node& node);
KernelOr MakeFunction(CompileContext& context, const Node& node);

// kernels/gradients.cc
KernelOr MakeSumGradients(CompileContext& context, const Node& node);
KernelOr MakeClipGradients(CompileContext& context, const Node& node);
KernelOr MakeAddWeightDecay(CompileContext& context, const Node& node);
KernelOr MakeAddRows(CompileContext& context, const Node& node);

// kernels/backward.cc
KernelOr MakeBackward(CompileContext& context, const Node& node);

/// InvalidArgument unless the node has `inputs` data inputs and `outputs` outputs.
absl::Status CheckArity(const Node& node, int inputs, std::size_t outputs);

/// InvalidArgument unless `tensor` may be what `expected` says; `what` begins the message.
absl::Status CheckTensor(const at::Tensor& tensor, const OutputInfo& expected, const char* what);

}  // namespace weir::executor
