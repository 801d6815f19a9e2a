#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "executor/compile_context.h"
#include "graph/op_registry.h"

namespace weir::executor {
namespace {

// Elements of all values of a partition up to which a step of it counts as small: where operators
// compute, and where values are only received, applied and sent. A pass over a value is done in
// less time than it takes to wake another thread for it, or not much more.
constexpr std::int64_t kSmallElements = 16 * 1024;
constexpr std::int64_t kSmallStateElements = 1024 * 1024;

std::string LabelOf(const Node& node) {
  const std::string op =
      node.op == "Aten" ? graph::AttrOr<std::string>(node, "operator", node.op) : node.op;
  return absl::StrCat("node '", node.name, "' (", op, ")");
}

absl::Status MakeKernels(CompileContext& context) {
  ProgramImpl& program = context.program();
  for (std::size_t n = 0; n < context.graph().nodes.size(); ++n) {
    const Node& node = context.graph().nodes[n];
    program.labels.push_back(LabelOf(node));
    absl::StatusOr<std::unique_ptr<const Kernel>> kernel = MakeKernel(context, static_cast<int>(n));
    if (!kernel.ok()) {
      return Annotate(kernel.status(), absl::StrCat(program.labels[n], " on ", program.device));
    }
    program.eager.push_back((*kernel)->eager() && !program.layout.nodes[n].recorded);
    program.kernels.push_back(*std::move(kernel));
  }
  return absl::OkStatus();
}

void FindReady(ProgramImpl& program) {
  for (std::uint32_t n = 0; n < program.layout.pending.size(); ++n) {
    if (program.layout.pending[n] == 0) {
      (program.eager[n] ? program.ready_eager : program.ready).push_back(n);
    }
  }
}

bool ComputesNothing(const GraphDef& graph) {
  return std::none_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op == "Aten" || node.op == "Backward" || node.op == "Function";
  });
}

bool IsSmall(const GraphDef& graph, const ProgramImpl& program) {
  const std::int64_t limit = ComputesNothing(graph) ? kSmallStateElements : kSmallElements;
  std::int64_t elements = 0;
  for (const Node& node : graph.nodes) {
    for (const OutputInfo& output : node.outputs) {
      if (output.dtype == at::ScalarType::Undefined) continue;
      if (!output.shape) return false;
      std::int64_t size = 1;
      for (const std::int64_t dim : *output.shape) {
        if (dim < 0 || dim > limit) return false;
        size = std::min(size * dim, limit + 1);
      }
      elements += size;
      if (elements > limit) return false;
    }
  }
  return std::all_of(program.kernels.begin(), program.kernels.end(),
                     [](const auto& kernel) { return kernel->cheap(); });
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Program>> Program::Compile(
    const graph::PartitionDef& partition, const CompileEnvironment& environment) {
  auto program = std::make_unique<ProgramImpl>();
  program->device = partition.device;
  absl::StatusOr<Layout> layout = MakeLayout(partition.graph);
  if (!layout.ok()) return Annotate(layout.status(), partition.device);
  program->layout = *std::move(layout);
  CompileContext context(partition, environment, *program);
  WEIR_RETURN_IF_ERROR(MakeKernels(context));
  FindReady(*program);
  program->small = IsSmall(partition.graph, *program);
  return std::make_shared<const Program>(std::move(program));
}

Program::Program(std::unique_ptr<const ProgramImpl> impl) : impl_(std::move(impl)) {}

Program::~Program() = default;

const std::string& Program::device() const {
  return impl_->device;
}

const std::vector<SendEdge>& Program::sends() const {
  return impl_->sends;
}

const std::vector<RecvEdge>& Program::recvs() const {
  return impl_->recvs;
}

bool Program::is_small() const {
  return impl_->small;
}

}  // namespace weir::executor
