// An OptimizerSpec as attributes of an Apply node, the form in which it travels.
#pragma once

#include "absl/status/statusor.h"
#include "weir/graph.h"
#include "weir/optimizer.h"

namespace weir::optim {

/// Attributes rule, use_locking, "hyper.<name>", and the rate: "rate.schedule",
/// "rate.number.<name>", "rate.boundaries", "rate.rates", "rate.warm_up_steps",
/// "rate.warm_up_starts".
void SetSpecAttrs(const OptimizerSpec& spec, AttrMap& attrs);

/// The spec of a node's attributes. InvalidArgument when one of them is missing or is no number.
absl::StatusOr<OptimizerSpec> SpecFromAttrs(const AttrMap& attrs);

}  // namespace weir::optim
