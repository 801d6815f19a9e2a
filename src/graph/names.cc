#include "graph/names.h"

#include <algorithm>

namespace weir::graph {
namespace {

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsFirst(char c) {
  return IsAlphanumeric(c) || c == '.';
}

bool IsLater(char c) {
  return IsFirst(c) || c == '_' || c == '\\' || c == '-' || c == '/';
}

}  // namespace

bool IsNodeName(std::string_view name) {
  return !name.empty() && IsFirst(name.front()) && std::ranges::all_of(name, IsLater);
}

}  // namespace weir::graph
