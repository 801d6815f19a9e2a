#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/kernels/kernels.h"
#include "graph/op_registry.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace weir::executor {
namespace {

using Maker = KernelOr (*)(CompileContext&, const Node&);

Maker FindMaker(std::string_view op) {
  constexpr std::pair<std::string_view, Maker> kMakers[] = {
      {"Aten", MakeAten},
      {"Identity", MakeIdentity},
      {"Const", MakeConst},
      {"Group", MakeGroup},
      {"Variable", MakeVariable},
      {"Read", MakeRead},
      {"Assign", MakeAssign},
      {"AssignAdd", MakeAssignAdd},
      {"IsInitialized", MakeIsInitialized},
      {"Gather", MakeGather},
      {"ScatterAdd", MakeScatterAdd},
      {"ScatterUpdate", MakeScatterUpdate},
      {"ShardIds", MakeShardIds},
      {"SumRows", MakeSumRows},
      {"AddRows", MakeAddRows},
      {"Split", MakeSplit},
      {"Function", MakeFunction},
      {"Apply", MakeApply},
      {"Average", MakeAverage},
      {"Ticket", MakeTicket},
      {"CompleteStep", MakeCompleteStep},
      {"Feed", MakeFeed},
      {"Fetch", MakeFetch},
      {"Send", MakeSend},
      {"Recv", MakeRecv},
      {"Backward", MakeBackward},
      {"SumGradients", MakeSumGradients},
      {"ClipGradients", MakeClipGradients},
      {"AddWeightDecay", MakeAddWeightDecay},
  };
  for (const auto& [name, maker] : kMakers) {
    if (name == op) return maker;
  }
  return nullptr;
}

}  // namespace

absl::Status CheckArity(const Node& node, int inputs, std::size_t outputs) {
  if (graph::NumDataInputs(node) == inputs && node.outputs.size() == outputs) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("has ", graph::NumDataInputs(node), " inputs and ",
                                                 node.outputs.size(), " outputs, not ", inputs,
                                                 " and ", outputs));
}

absl::Status CheckTensor(const at::Tensor& tensor, const OutputInfo& expected, const char* what) {
  const bool right_dtype =
      expected.dtype == at::ScalarType::Undefined || tensor.scalar_type() == expected.dtype;
  if (right_dtype && ShapeAllows(expected.shape, tensor.sizes())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", DtypeName(tensor.scalar_type()), ShapeToString(tensor.sizes().vec()),
      ", but the graph says ", DtypeName(expected.dtype), ShapeToString(expected.shape)));
}

absl::StatusOr<std::unique_ptr<const Kernel>> MakeKernel(CompileContext& context, int index) {
  const Node& node = context.node(index);
  const Maker maker = FindMaker(node.op);
  if (maker == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no executor runs the op ", node.op));
  }
  return maker(context, node);
}

}  // namespace weir::executor
