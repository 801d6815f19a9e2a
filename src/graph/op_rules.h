// What a node of each op must look like: the table of op_registry.h in a form that can be checked.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "weir/graph.h"

namespace weir::graph {

/// An attribute that must be there. `type` is the index of its alternative in AttrValue.
struct AttrRule {
  std::string_view name;
  std::size_t type = 0;
};

struct OpRule {
  static constexpr int kAny = -1;
  std::string_view op;
  int min_inputs = 0;
  int max_inputs = 0;  // kAny: no limit
  int outputs = 0;     // kAny: depends on the node
  std::span<const AttrRule> attrs;
};

/// nullptr for an unknown op. Every op of op_registry.h has a rule.
const OpRule* FindRule(std::string_view op);

/// The name of AttrValue's alternative number `type`.
std::string_view AttrTypeNameOf(std::size_t type);

}  // namespace weir::graph
