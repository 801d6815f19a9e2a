#include "base/status.h"
#include "graph/passes.h"

namespace weir::graph {

absl::StatusOr<PartitionedGraph> MakePlan(const GraphDef& placed, const Signature& signature,
                                          const TaskId& session_task) {
  WEIR_ASSIGN_OR_RETURN(GraphDef graph, PruneGraph(placed, signature, session_task));
  WEIR_RETURN_IF_ERROR(ExpandGradients(graph));
  HoistTickets(graph);
  WEIR_ASSIGN_OR_RETURN(PartitionedGraph plan, PartitionGraph(graph));
  // A feed that nothing needs has no node.
  plan.num_feeds = static_cast<int>(signature.feeds.size());
  plan.num_fetches = static_cast<int>(signature.fetches.size());
  return plan;
}

}  // namespace weir::graph
