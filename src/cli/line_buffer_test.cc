#include "cli/line_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

namespace weir::cli {
namespace {

using testing::ElementsAre;

std::vector<std::string> Take(LineBuffer& lines, const std::string& text) {
  return lines.Take(text.data(), text.size());
}

RC_GTEST_PROP(LineBufferTest, LinesDoNotDependOnHowTheBytesArrive, ()) {
  std::string text;
  for (const auto symbol : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3)))
    text += symbol == 0 ? '\n' : static_cast<char>('a' + symbol);
  LineBuffer at_once(1000), in_pieces(1000);
  const std::vector<std::string> expected = Take(at_once, text);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = *rc::gen::inRange<std::size_t>(1, 8);
    for (const std::string& line : Take(in_pieces, text.substr(at, size))) lines.push_back(line);
    at += size;
  }
  RC_ASSERT(lines == expected);
  RC_ASSERT(in_pieces.TakeRest() == at_once.TakeRest());
}

TEST(LineBufferTest, ALineWithoutEndIsCut) {
  LineBuffer lines(8);
  EXPECT_THAT(Take(lines, "12345678"), ElementsAre());
  EXPECT_THAT(Take(lines, "9"), ElementsAre("123456789"));
  EXPECT_THAT(Take(lines, "tail\nnext"), ElementsAre("tail"));
  EXPECT_EQ(lines.TakeRest(), "next");
}

}  // namespace
}  // namespace weir::cli
