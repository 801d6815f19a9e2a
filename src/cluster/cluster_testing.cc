#include "cluster/cluster_testing.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace weir {

std::string ReadTestdata(const std::string& name) {
  std::ifstream file(WEIR_CLUSTER_TESTDATA "/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace weir
