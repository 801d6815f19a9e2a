#include "weir/safetensors.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <fstream>

namespace weir {
namespace {

class SafetensorsTest : public testing::Test {
 protected:
  ~SafetensorsTest() override { std::remove(path_.c_str()); }
  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  static std::string WithLength(const std::string& header, const std::string& data = "") {
    const std::uint64_t size = header.size();
    return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + header + data;
  }
  const std::string path_ = testing::TempDir() + "weir_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() +
                            ".safetensors";
};

TEST_F(SafetensorsTest, RoundTripsEveryDtype) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto dtype : {at::kBool, at::kByte, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
                           at::kFloat, at::kDouble}) {
    tensors[std::string("a/") + at::toString(dtype)] =
        at::arange(6, at::kFloat).reshape({2, 3}).to(dtype);
  }
  tensors["scalar"] = at::ones({}, at::kFloat);
  tensors["empty"] = at::empty({0, 4}, at::kFloat);
  tensors["negated"] = at::_neg_view(at::arange(6, at::kFloat));
  tensors["view"] = at::arange(6, at::kFloat).reshape({2, 3}).t();
  ASSERT_TRUE(SaveSafetensors(path_, tensors).ok());
  const auto loaded = LoadSafetensors(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->size(), tensors.size());
  for (const auto& [name, tensor] : tensors)
    EXPECT_TRUE(at::equal(loaded->at(name), tensor)) << name;
}

TEST_F(SafetensorsTest, ReadsAFileWrittenByHand) {
  Write(WithLength(
      R"({"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"__metadata__":{"format":"pt"}})",
      "\x01\x02\x03"));
  const auto loaded = LoadSafetensors(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->at("w")[2].item<int>(), 3);
}

TEST_F(SafetensorsTest, RefusesWhatDoesNotFit) {
  const char* const headers[] = {
      "not json",
      "[]x",
      R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,3]}})",
      R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})",
      R"({"w":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
      R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
      R"({"w":{"dtype":"U8","shape":[9223372036854775807,4],"data_offsets":[0,3]}})",
      R"({"w":{"dtype":"Q4","shape":[3],"data_offsets":[0,3]}})",
      R"({"w":{"shape":[3],"data_offsets":[0,3]}})",
      R"({"w":3})",
      "null",
      R"({"w":{"dtype":"U8","shape":[2.7],"data_offsets":[0,2]}})",
      R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",  // a hole at the end
      R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",  // and at the beginning
      R"({"w":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
      R"({"v":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
          "w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",  // overlap
  };
  for (const char* header : headers) {
    Write(WithLength(header, "\x01\x02\x03"));
    EXPECT_EQ(LoadSafetensors(path_).status().code(), absl::StatusCode::kInvalidArgument) << header;
  }
  Write("\x01");
  EXPECT_EQ(LoadSafetensors(path_).status().code(), absl::StatusCode::kInvalidArgument);
  Write(std::string(8, '\xff'));
  EXPECT_EQ(LoadSafetensors(path_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadSafetensors(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SafetensorsTest, AFailedSaveLeavesNothing) {
  const auto status = SaveSafetensors("/nonexistent/dir/w.safetensors", {{"w", at::ones({2})}});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  for (const at::Tensor& bad :
       {at::ones({2}, at::kComplexFloat), at::ones({2}).to_sparse(), at::Tensor()}) {
    const auto refused = SaveSafetensors(path_, {{"weight", bad}});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("'weight'"));
  }
  EXPECT_EQ(SaveSafetensors(path_, {{"\xff", at::ones({2})}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::ifstream(path_).good());
}

}  // namespace
}  // namespace weir
