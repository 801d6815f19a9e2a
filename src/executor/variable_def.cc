#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "executor/program.h"
#include "graph/initializer_attrs.h"
#include "graph/op_registry.h"

namespace weir::executor {

absl::StatusOr<store::VariableDef> VariableDefFromNode(const Node& node, std::uint64_t graph_seed,
                                                       const std::string& default_container) {
  if (node.op != "Variable") {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name, "' (", node.op, ") is no variable"));
  }
  store::VariableDef def;
  def.name = node.name;
  def.container = graph::AttrOr<std::string>(node, "container", "");
  if (def.container.empty()) def.container = default_container;
  WEIR_ASSIGN_OR_RETURN(def.initializer, graph::InitializerFromAttrs(node));
  def.seed = graph_seed;
  def.drawn_as = graph::AttrOr<std::string>(node, "drawn_as", "");
  def.part = graph::AttrOr<std::string>(node, "part", "");
  def.trainable = graph::AttrOr(node, "trainable", def.trainable);
  def.use_locking = graph::AttrOr(node, "use_locking", def.use_locking);
  def.consistent_reads = graph::AttrOr(node, "consistent_reads", def.consistent_reads);
  def.read_in_place = graph::AttrOr(node, "read_in_place", def.read_in_place);
  return def;
}

}  // namespace weir::executor
