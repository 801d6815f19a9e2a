#include "transport/registry.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::transport {
namespace {

TEST(RegistryTest, ClosesWhatIsInOnce) {
  Registry registry;
  std::string closed;
  const int a = 0;
  const int b = 0;
  EXPECT_TRUE(registry.Add(&a, [&] { closed += 'a'; }));
  EXPECT_TRUE(registry.Add(&b, [&] { closed += 'b'; }));
  registry.Remove(&a);
  registry.Remove(&a);
  registry.CloseAll();
  registry.CloseAll();
  EXPECT_EQ(closed, "b");
}

TEST(RegistryTest, LetsNothingInOnceClosed) {
  Registry registry;
  registry.CloseAll();
  const int a = 0;
  EXPECT_FALSE(registry.Add(&a, [] { FAIL(); }));
}

TEST(RegistryTest, ClosingMayRemove) {
  Registry registry;
  const int a = 0;
  ASSERT_TRUE(registry.Add(&a, [&] { registry.Remove(&a); }));
  registry.CloseAll();
}

}  // namespace
}  // namespace weir::transport
