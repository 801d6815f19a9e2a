#include "cluster/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <climits>
#include <string>
#include <vector>

namespace weir {
namespace {

TEST(IsNameTest, TakesALetterThenLettersDigitsAndUnderscores) {
  for (const char* name : {"a", "Z", "ps", "worker_2", "A_b_9"}) EXPECT_TRUE(IsName(name)) << name;
  for (const char* name : {"", "2ps", "_ps", "ps-1", "ps 1", "p\xc3\xa9", "ps/", "ps:0"}) {
    EXPECT_FALSE(IsName(name)) << name;
  }
}

TEST(ParseIndexTest, TakesDigitsThatFitAnInt) {
  EXPECT_EQ(ParseIndex("0"), 0);
  EXPECT_EQ(ParseIndex("007"), 7);
  EXPECT_EQ(ParseIndex("2147483647"), INT_MAX);
  for (const char* text :
       {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "2147483648", "99999999999999999999999999"}) {
    EXPECT_EQ(ParseIndex(text), std::nullopt) << text;
  }
}

TEST(SplitTest, KeepsEmptyParts) {
  EXPECT_EQ(Split("", ','), std::vector<std::string_view>({""}));
  EXPECT_EQ(Split("a", ','), std::vector<std::string_view>({"a"}));
  EXPECT_EQ(Split(",a,", ','), std::vector<std::string_view>({"", "a", ""}));
}

TEST(TrimTest, RemovesBlanksAtBothEndsOnly) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim(" \n "), "");
}

TEST(QuoteTest, EscapesWhatATerminalShouldNotSee) {
  EXPECT_EQ(Quote("a b"), "\"a b\"");
  EXPECT_EQ(Quote("\"\\"), "\"\\\"\\\\\"");
  EXPECT_EQ(Quote(std::string_view("\0\x1b\xff", 3)), "\"\\x00\\x1b\\xff\"");
}

RC_GTEST_PROP(QuoteTest, IsOneShortPrintableLine, (const std::string& bytes)) {
  const std::string quoted = Quote(bytes);
  RC_ASSERT(quoted.size() < 1000U);
  for (const char c : quoted) RC_ASSERT(c >= ' ' && c <= '~');
}

}  // namespace
}  // namespace weir
