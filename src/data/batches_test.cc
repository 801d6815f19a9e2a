#include "weir/batches.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "data/data_testing.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

at::Tensor Bytes(std::vector<std::int64_t> sizes) {
  at::Tensor tensor = at::empty(sizes, at::kByte);
  auto* const bytes = tensor.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return tensor;
}

// n examples of one pixel; example i has pixel and label i, so that a batch tells what was drawn.
RandomBatches Counting(std::int64_t n, std::int64_t batch, std::uint64_t seed = 1, int worker = 0) {
  return RandomBatches::Create(Bytes({n, 1}), Bytes({n}), batch, seed, worker).value();
}

std::vector<std::int64_t> Labels(const Batch& batch) {
  const auto* const labels = batch.labels.const_data_ptr<std::int64_t>();
  return {labels, labels + batch.labels.numel()};
}

std::vector<std::int64_t> Draw(RandomBatches batches, int count) {
  std::vector<std::int64_t> drawn;
  for (int i = 0; i < count; ++i) {
    const auto labels = Labels(batches.Next());
    drawn.insert(drawn.end(), labels.begin(), labels.end());
  }
  return drawn;
}

TEST(ScaledRowsTest, EveryByteIsDividedBy255ExactlyOnce) {
  const at::Tensor rows = ScaledRows(Bytes({4, 8, 8}));
  EXPECT_EQ(rows.scalar_type(), at::kFloat);
  EXPECT_EQ(rows.sizes(), (std::vector<std::int64_t>{4, 64}));
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(rows.const_data_ptr<float>()[i], static_cast<float>(i) / 255.0f) << i;
  }
}

TEST(RandomBatchesTest, ABatchHoldsScaledImagesAndTheirLabels) {
  auto batches = RandomBatches::Create(Bytes({10, 2, 3}), Bytes({10}), 4, 7, 1).value();
  const auto [images, labels] = batches.Next();
  EXPECT_EQ(images.scalar_type(), at::kFloat);
  EXPECT_EQ(images.sizes(), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(labels.scalar_type(), at::kLong);
  EXPECT_EQ(labels.sizes(), (std::vector<std::int64_t>{4}));
  for (int i = 0; i < 4; ++i) {
    const auto example = labels.const_data_ptr<std::int64_t>()[i];
    for (int k = 0; k < 6; ++k) {
      EXPECT_EQ(images.const_data_ptr<float>()[i * 6 + k],
                static_cast<float>(example * 6 + k) / 255.0f);
    }
  }
}

TEST(RandomBatchesTest, ABatchIsNeverOverwritten) {
  RandomBatches batches = Counting(100, 50);
  const Batch first = batches.Next();
  const at::Tensor images = first.images.clone();
  const at::Tensor labels = first.labels.clone();
  for (int i = 0; i < 10; ++i) {
    const Batch next = batches.Next();
    EXPECT_NE(next.images.const_data_ptr(), first.images.const_data_ptr());
  }
  EXPECT_TRUE(at::equal(first.images, images));
  EXPECT_TRUE(at::equal(first.labels, labels));
}

TEST(RandomBatchesTest, EpochsAreShuffledAnew) {
  const auto drawn = Draw(Counting(100, 100), 2);
  const std::vector<std::int64_t> first(drawn.begin(), drawn.begin() + 100);
  const std::vector<std::int64_t> second(drawn.begin() + 100, drawn.end());
  std::vector<std::int64_t> sorted(100);
  std::iota(sorted.begin(), sorted.end(), 0);
  EXPECT_NE(first, sorted);
  EXPECT_NE(first, second);
}

TEST(RandomBatchesTest, SeedAndWorkerAloneDecideTheOrder) {
  EXPECT_EQ(Draw(Counting(100, 10, 5, 2), 30), Draw(Counting(100, 10, 5, 2), 30));
  EXPECT_EQ(Draw(Counting(100, 10, 5, 2), 30), Draw(Counting(100, 30, 5, 2), 10));
  std::set<std::vector<std::int64_t>> orders;
  const std::uint64_t high = std::uint64_t{1} << 32;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, high, high + 1}) {
    for (const int worker : {0, 1, 2}) orders.insert(Draw(Counting(100, 100, seed, worker), 1));
  }
  EXPECT_EQ(orders.size(), 12U);
}

// Which example comes first is uniform: 4,000 seeds over 5 examples, 800 each expected with a
// standard deviation of 25; 130 is more than five of them.
TEST(RandomBatchesTest, EveryExampleIsAsLikelyAsAnyOther) {
  std::map<std::int64_t, int> first, second;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const auto drawn = Draw(Counting(5, 2, seed), 1);
    ++first[drawn[0]];
    ++second[drawn[1]];
  }
  for (int example = 0; example < 5; ++example) {
    EXPECT_NEAR(first[example], 800, 130);
    EXPECT_NEAR(second[example], 800, 130);
  }
}

TEST(RandomBatchesTest, TakesImagesThatAreNotContiguous) {
  const at::Tensor images = Bytes({1, 20}).transpose(0, 1);
  auto batches = RandomBatches::Create(images, Bytes({20}), 20, 1, 0).value();
  const auto [rows, labels] = batches.Next();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(rows.const_data_ptr<float>()[i],
              static_cast<float>(labels.const_data_ptr<std::int64_t>()[i]) / 255.0f);
  }
}

TEST(RandomBatchesTest, RefusesWhatItCannotDrawFrom) {
  const auto error = [](at::Tensor images, at::Tensor labels, std::int64_t batch) {
    const auto batches = RandomBatches::Create(std::move(images), std::move(labels), batch, 1, 0);
    EXPECT_EQ(batches.status().code(), absl::StatusCode::kInvalidArgument);
    return MessageOf(batches.status());
  };
  EXPECT_THAT(error(Bytes({3, 2}), Bytes({4}), 1), HasSubstr("3 images but 4 labels"));
  EXPECT_THAT(error(Bytes({0, 2}), Bytes({0}), 1), HasSubstr("no examples"));
  EXPECT_THAT(error(Bytes({3, 2}), Bytes({3}), 0), HasSubstr("batch size is 0"));
  EXPECT_THAT(error(Bytes({3, 2}), Bytes({3}), -1), HasSubstr("batch size is -1"));
  EXPECT_THAT(error(Bytes({3, 2}), Bytes({3, 1}), 1), HasSubstr("labels of rank 1"));
  EXPECT_THAT(error(Bytes({3, 2}).to(at::kFloat), Bytes({3}), 1), HasSubstr("bytes"));
  EXPECT_THAT(error(at::Tensor(), Bytes({3}), 1), HasSubstr("bytes"));
}

// Whatever the sizes, after k epochs' worth of draws every example came k times; before that, no
// example is more than one draw ahead of another.
RC_GTEST_PROP(RandomBatchesPropertyTest, EachExampleComesOnceAnEpoch, (std::uint64_t seed)) {
  const auto n = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto batch = *rc::gen::inRange<std::int64_t>(1, 100);
  RandomBatches batches = Counting(n, batch, seed, 3);
  std::map<std::int64_t, std::int64_t> times;
  for (std::int64_t drawn = 0; drawn < 3 * n;) {
    for (const std::int64_t example : Labels(batches.Next())) {
      RC_ASSERT(times[example]++ == drawn++ / n);
    }
  }
  RC_ASSERT(times.size() == static_cast<std::size_t>(n));
}

}  // namespace
}  // namespace weir
