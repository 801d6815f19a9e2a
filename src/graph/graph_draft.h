// A node that is being made: what the methods of Graph hand to each other.
#pragma once

#include "weir/graph.h"

namespace weir {

struct Graph::Draft {
  Node node;                    // has its final name
  bool ok = true;               // no error was made with it so far
  bool ignores_scopes = false;  // neither device nor control scopes count for it
};

}  // namespace weir
