// Where tools/fetch_mnist puts the data.
#pragma once

#include <cstdlib>
#include <string>

namespace examples {

inline std::string MnistFolder() {
  if (const char* cache = std::getenv("WEIR_CACHE")) return std::string(cache) + "/mnist";
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::string(cache) + "/weir/mnist";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.cache/weir/mnist";
}

}  // namespace examples
