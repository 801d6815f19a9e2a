#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "data/data_testing.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Elements(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

absl::Status ReadStatus(const std::string& path) {
  return ReadIdx(path).status();
}

TEST(ReadIdxTest, ReadsPlainAndGzipFilesOfEveryRank) {
  const TestFolder folder;
  for (const std::vector<std::uint32_t>& sizes : std::vector<std::vector<std::uint32_t>>{
           {5}, {2, 3}, {2, 3, 4}, {2, 3, 4, 5}, {1, 1, 1, 1}, {0}, {3, 0, 2}}) {
    std::size_t count = 1;
    for (const std::uint32_t size : sizes) count *= size;
    const std::string bytes = IdxBytes(sizes, SomeBytes(count));
    for (const std::string& path :
         {folder.Write("plain", bytes), folder.WriteGzip("gzip", bytes)}) {
      const auto tensor = ReadIdx(path);
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      EXPECT_EQ(tensor->scalar_type(), at::kByte);
      EXPECT_TRUE(tensor->is_contiguous());
      EXPECT_EQ(std::vector<std::uint32_t>(tensor->sizes().begin(), tensor->sizes().end()), sizes);
      EXPECT_EQ(Elements(*tensor), SomeBytes(count));
    }
  }
}

TEST(ReadIdxTest, ReadsMoreThanOneWindowOfZlib) {
  const TestFolder folder;
  const std::string elements = SomeBytes(std::size_t{17} << 20);
  const std::string bytes = IdxBytes({17, 1 << 20}, elements);
  EXPECT_EQ(Elements(ReadIdx(folder.Write("plain", bytes)).value()), elements);
  EXPECT_EQ(Elements(ReadIdx(folder.WriteGzip("gzip", bytes)).value()), elements);
}

TEST(ReadIdxTest, GzipIsToldByContentNotByName) {
  for (const char* name : {"C7-08.idx3-ubyte", "C7-08.idx3-ubyte.gz", "C7-08-renamed.idx3-ubyte"}) {
    const auto tensor = ReadIdx(TestdataPath(name));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->sizes(), (std::vector<std::int64_t>{2, 2, 2})) << name;
    EXPECT_EQ(Elements(*tensor), std::string("\x00\xff\x07\x08\x01\x02\x03\x04", 8)) << name;
  }
  const TestFolder folder;
  const std::string plain = IdxBytes({3}, "abc");
  EXPECT_EQ(Elements(ReadIdx(folder.Write("plain.gz", plain)).value()), "abc");
}

TEST(ReadIdxTest, AWebPageIsNamedAsNotGzip) {
  const absl::Status status = ReadStatus(TestdataPath("C7-08-page.idx3-ubyte.gz"));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("C7-08-page.idx3-ubyte.gz"), HasSubstr("not gzip"),
                                       HasSubstr("\"<htm\"")));
}

TEST(ReadIdxTest, AShortFileIsRefusedWithBothSizes) {
  const absl::Status status = ReadStatus(TestdataPath("C7-09.idx3-ubyte"));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("C7-09.idx3-ubyte"), HasSubstr("expected 28"), HasSubstr("has 26")));
}

TEST(ReadIdxTest, EveryOtherLengthIsRefusedWithBothSizes) {
  const TestFolder folder;
  const std::string whole = IdxBytes({3, 2, 2}, SomeBytes(12));
  for (std::size_t size = 0; size < whole.size() + 3; ++size) {
    if (size == whole.size()) continue;
    std::string bytes = whole + "xyz";
    bytes.resize(size);
    for (const std::string& path :
         {folder.Write("plain", bytes), folder.WriteGzip("gzip", bytes)}) {
      const absl::Status status = ReadStatus(path);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
      const int expected = size < 4 ? 4 : size < 16 ? 16 : 28;
      EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(path), HasSubstr(std::to_string(expected)),
                                           HasSubstr("has " + std::to_string(size))));
    }
  }
}

TEST(ReadIdxTest, GzipDataCutAnywhereAreRefused) {
  const TestFolder folder;
  const std::string whole = ReadBytes(folder.WriteGzip("whole", IdxBytes({3, 20}, SomeBytes(60))));
  for (std::size_t size = 2; size < whole.size(); ++size) {
    const absl::Status status = ReadStatus(folder.Write("cut", whole.substr(0, size)));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size << ": " << status;
    EXPECT_THAT(MessageOf(status), HasSubstr(folder.Path("cut")));
  }
}

TEST(ReadIdxTest, ADamagedGzipFileSaysWhatWasExpected) {
  const TestFolder folder;
  const std::string elements = SomeBytes(1000000);
  std::string bytes = ReadBytes(folder.WriteGzip("whole", IdxBytes({1000000}, elements)));
  bytes[bytes.size() - 6] ^= 1;  // the checksum
  const absl::Status status = ReadStatus(folder.Write("damaged", bytes));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(folder.Path("damaged")),
                                       HasSubstr("expected 1000008 bytes"), HasSubstr("damaged")));
}

// Headers that claim up to 2^128 bytes: were memory taken before the check, this test would not end
// well.
TEST(ReadIdxTest, SizesAreCheckedBeforeMemoryIsTaken) {
  const TestFolder folder;
  const std::uint32_t huge = 0xffffffff;
  for (const std::vector<std::uint32_t>& sizes :
       std::vector<std::vector<std::uint32_t>>{{huge},
                                               {huge, huge},
                                               {huge, huge, huge},
                                               {huge, huge, huge, huge},
                                               {0, huge, huge, huge}}) {
    const std::string bytes = IdxBytes(sizes, "abc");
    EXPECT_EQ(ReadStatus(folder.Write("plain", bytes)).code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(ReadStatus(folder.WriteGzip("gzip", bytes)).code(), absl::StatusCode::kDataLoss);
  }
}

TEST(ReadIdxTest, OtherElementTypesAreNamed) {
  const TestFolder folder;
  const std::pair<std::uint8_t, const char*> rows[] = {
      {0x09, "signed byte (0x09)"}, {0x0B, "short (0x0B)"},  {0x0C, "int (0x0C)"},
      {0x0D, "float (0x0D)"},       {0x0E, "double (0x0E)"}, {0x42, "unknown (0x42)"}};
  for (const auto& [type, name] : rows) {
    const absl::Status status = ReadStatus(folder.Write("typed", IdxBytes({1}, "a", type)));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(folder.Path("typed")), HasSubstr(name)));
  }
}

TEST(ReadIdxTest, OtherRanksAreRefused) {
  const TestFolder folder;
  for (const std::size_t rank : {0, 5, 200}) {
    const auto path = folder.Write("ranked", IdxBytes(std::vector<std::uint32_t>(rank, 1), "a"));
    EXPECT_THAT(MessageOf(ReadStatus(path)), HasSubstr("rank is " + std::to_string(rank)));
  }
}

TEST(ReadIdxTest, AFileThatIsNoneIsRefused) {
  const TestFolder folder;
  const absl::Status missing = ReadStatus(folder.Path("missing"));
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(missing), HasSubstr(folder.Path("missing")));
  EXPECT_THAT(MessageOf(ReadStatus(folder.path())), HasSubstr("not a regular file"));
}

RC_GTEST_PROP(ReadIdxPropertyTest, ChangedBytesAreReadOrRefused, ()) {
  const TestFolder folder;
  const std::string whole = IdxBytes({3, 2, 2}, SomeBytes(12));
  std::string bytes = *rc::gen::arbitrary<bool>() ? whole : ReadBytes(folder.WriteGzip("g", whole));
  for (const auto& [place, byte] :
       *rc::gen::arbitrary<std::vector<std::pair<std::size_t, char>>>()) {
    bytes[place % bytes.size()] = byte;
  }
  const auto tensor = ReadIdx(folder.Write("changed", bytes));
  if (tensor.ok()) {
    RC_ASSERT(tensor->nbytes() <= 28U);
  } else {
    RC_ASSERT(MessageOf(tensor.status()).find(folder.Path("changed")) != std::string::npos);
  }
}

RC_GTEST_PROP(ReadIdxPropertyTest, RandomBytesAreRefused, (const std::string& bytes)) {
  const TestFolder folder;
  const bool gzip = *rc::gen::arbitrary<bool>();
  const std::string path = folder.Write("random", gzip ? "\x1f\x8b\x08" + bytes : bytes);
  RC_ASSERT(!ReadIdx(path).ok() || bytes.starts_with(std::string("\0\0\x08", 3)));
}

}  // namespace
}  // namespace weir
