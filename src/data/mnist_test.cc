#include "weir/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "data/data_testing.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A data set of 3 + 2 images of 2x2 pixels, whose files a test may then change.
class LoadMnistTest : public ::testing::Test {
 protected:
  LoadMnistTest() {
    folder_.Write("train-images-idx3-ubyte", IdxBytes({3, 2, 2}, SomeBytes(12)));
    folder_.Write("train-labels-idx1-ubyte", IdxBytes({3}, {0, 9, 1}));
    folder_.Write("t10k-images-idx3-ubyte", IdxBytes({2, 2, 2}, SomeBytes(8)));
    folder_.Write("t10k-labels-idx1-ubyte", IdxBytes({2}, {3, 4}));
  }

  void ExpectRefused(absl::StatusCode code, const std::string& text) {
    const absl::Status status = LoadMnist(folder_.path()).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(folder_.path()), HasSubstr(text)));
  }

  const TestFolder folder_;
};

TEST_F(LoadMnistTest, ReadsTheFourFiles) {
  const auto mnist = LoadMnist(folder_.path());
  ASSERT_TRUE(mnist.ok()) << mnist.status();
  EXPECT_EQ(mnist->train_images.sizes(), (std::vector<std::int64_t>{3, 2, 2}));
  EXPECT_EQ(mnist->train_labels.sizes(), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(mnist->test_images.sizes(), (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_EQ(mnist->test_labels.sizes(), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(mnist->train_labels.const_data_ptr<std::uint8_t>()[1], 9);
  EXPECT_EQ(mnist->test_images.scalar_type(), at::kByte);
}

TEST_F(LoadMnistTest, ReadsCompressedFilesToo) {
  for (const std::string name : {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    folder_.WriteGzip(name + ".gz", ReadBytes(folder_.Path(name)));
    std::filesystem::remove(folder_.Path(name));
  }
  const auto mnist = LoadMnist(folder_.path());
  ASSERT_TRUE(mnist.ok()) << mnist.status();
  EXPECT_EQ(mnist->test_labels.const_data_ptr<std::uint8_t>()[1], 4);
}

TEST_F(LoadMnistTest, AMissingFileIsNamedInBothForms) {
  std::filesystem::remove(folder_.Path("t10k-images-idx3-ubyte"));
  ExpectRefused(absl::StatusCode::kNotFound,
                "neither t10k-images-idx3-ubyte nor t10k-images-idx3-ubyte.gz");
}

// Even with a whole image file.
TEST_F(LoadMnistTest, ImagesAndLabelsMustBePairs) {
  std::filesystem::copy_file(TestdataPath("C7-09-labels.idx1-ubyte"),
                             folder_.Path("train-labels-idx1-ubyte"),
                             std::filesystem::copy_options::overwrite_existing);
  ExpectRefused(absl::StatusCode::kInvalidArgument, "3 images but 4 labels");
}

TEST_F(LoadMnistTest, AShortImageFileIsRefused) {
  std::filesystem::copy_file(TestdataPath("C7-09.idx3-ubyte"),
                             folder_.Path("train-images-idx3-ubyte"),
                             std::filesystem::copy_options::overwrite_existing);
  ExpectRefused(absl::StatusCode::kDataLoss, "expected 28 bytes, but the file has 26");
}

TEST_F(LoadMnistTest, LabelsMustBeDigits) {
  folder_.Write("t10k-labels-idx1-ubyte", IdxBytes({2}, {3, 10}));
  ExpectRefused(absl::StatusCode::kInvalidArgument, "label 1 is 10");
}

TEST_F(LoadMnistTest, RanksMustBeThoseOfImagesAndLabels) {
  folder_.Write("train-images-idx3-ubyte", IdxBytes({3, 4}, SomeBytes(12)));
  ExpectRefused(absl::StatusCode::kInvalidArgument, "expected 3 dimensions, found 2");
}

TEST_F(LoadMnistTest, BothSetsMustHaveImagesOfOneSize) {
  folder_.Write("t10k-images-idx3-ubyte", IdxBytes({2, 2, 3}, SomeBytes(12)));
  ExpectRefused(absl::StatusCode::kInvalidArgument, "different sizes");
}

TEST_F(LoadMnistTest, AnEmptySetIsRefused) {
  folder_.Write("t10k-images-idx3-ubyte", IdxBytes({0, 2, 2}, ""));
  folder_.Write("t10k-labels-idx1-ubyte", IdxBytes({0}, ""));
  ExpectRefused(absl::StatusCode::kInvalidArgument, "no images");
}

}  // namespace
}  // namespace weir
