#include "executor/compile_context.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/op_registry.h"

namespace weir::executor {

CompileContext::CompileContext(const graph::PartitionDef& partition,
                               const CompileEnvironment& environment, ProgramImpl& program)
    : partition_(partition),
      environment_(environment),
      program_(program),
      segments_(partition.graph) {}

bool CompileContext::IsSameTask(const std::string& device) const {
  const absl::StatusOr<DeviceSpec> mine = DeviceSpec::Parse(partition_.device);
  const absl::StatusOr<DeviceSpec> other = DeviceSpec::Parse(device);
  return mine.ok() && other.ok() && mine->job == other->job && mine->task == other->task;
}

absl::StatusOr<std::shared_ptr<store::Variable>> CompileContext::VariableOf(const Node& node,
                                                                            int input) {
  const auto is_no_handle = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("its input ", input, " is not a variable's handle"));
  };
  if (graph::NumDataInputs(node) <= input) return is_no_handle();
  const Node& variable = this->node(node.inputs[static_cast<std::size_t>(input)].node);
  if (variable.op != "Variable") return is_no_handle();
  WEIR_ASSIGN_OR_RETURN(const store::VariableDef def,
                        VariableDefFromNode(variable, 0, environment_.default_container));
  return environment_.store->Find(def.container, def.name);
}

int CompileContext::ReadOf(const Node& node) const {
  const std::vector<Node>& nodes = partition_.graph.nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if ((nodes[n].op == "Read" || nodes[n].op == "Gather") && !nodes[n].inputs.empty() &&
        nodes[n].inputs[0] == node.inputs[0]) {
      return static_cast<int>(n);
    }
  }
  return -1;
}

std::uint32_t CompileContext::VersionSlotOf(int index) {
  Layout& layout = program_.layout;
  OutputPlan& output = layout.outputs[layout.nodes[static_cast<std::size_t>(index)].outputs.begin];
  if (output.version_slot == kNone) output.version_slot = program_.num_version_slots++;
  return output.version_slot;
}

}  // namespace weir::executor
