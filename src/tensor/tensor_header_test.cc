#include "tensor/tensor_header.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tensor/dtype.h"
#include "tensor/tensor_buffer.h"

namespace weir {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(TensorHeaderTest, GoldenBytes) {
  const std::string body = EncodeTensorHeader({at::kFloat, 0x0102030405060708, {2, 300}});
  const unsigned char golden[] = {9, 2, 0, 0, 0, 0, 0, 0, 8,    7, 6, 5, 4, 3, 2, 1,
                                  2, 0, 0, 0, 0, 0, 0, 0, 0x2c, 1, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(body, std::string(reinterpret_cast<const char*>(golden), sizeof(golden)));
}

RC_GTEST_PROP(TensorHeaderTest, RoundTrips, ()) {
  TensorHeader header;
  header.dtype = *DtypeFromCode(*rc::gen::inRange<std::uint8_t>(1, 13));
  header.version = *rc::gen::arbitrary<std::uint64_t>();
  header.dims =
      *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 9));
  if (header.dims.size() > 16) header.dims.resize(16);
  const auto bytes = TensorBytes(header.dtype, header.dims);
  RC_PRE(bytes.ok());
  const auto decoded = DecodeTensorHeader(Bytes(EncodeTensorHeader(header)), *bytes);
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded->dtype == header.dtype);
  RC_ASSERT(decoded->version == header.version);
  RC_ASSERT(decoded->dims == header.dims);
}

RC_GTEST_PROP(TensorHeaderTest, RandomBytesAreRefusedOrConsistent,
              (const std::string& body, std::uint32_t payload)) {
  const auto decoded = DecodeTensorHeader(Bytes(body), payload);
  if (decoded.ok() && decoded->dtype != at::ScalarType::Undefined) {
    RC_ASSERT(*TensorBytes(decoded->dtype, decoded->dims) == payload);
  }
}

TEST(TensorHeaderTest, AbsentHasNoBytes) {
  const std::string body = EncodeTensorHeader({});
  EXPECT_TRUE(DecodeTensorHeader(Bytes(body), 0).ok());
  EXPECT_FALSE(DecodeTensorHeader(Bytes(body), 4).ok());
}

TEST(TensorHeaderTest, SizesAreCheckedAgainstOverflow) {
  const std::int64_t huge = std::int64_t{1} << 40;
  const std::string body = EncodeTensorHeader({at::kDouble, 0, {huge, huge, 16}});
  EXPECT_FALSE(DecodeTensorHeader(Bytes(body), 0).ok());
  const std::string empty = EncodeTensorHeader({at::kFloat, 0, {0, huge, huge}});
  EXPECT_FALSE(DecodeTensorHeader(Bytes(empty), 0).ok());
  const std::string negative = EncodeTensorHeader({at::kFloat, 0, {-1}});
  EXPECT_FALSE(DecodeTensorHeader(Bytes(negative), 4).ok());
}

TEST(TensorHeaderTest, WhatCannotTravelIsSaid) {
  EXPECT_TRUE(CheckCanTravel(at::Tensor()).ok());
  EXPECT_TRUE(CheckCanTravel(at::ones({2, 3})).ok());
  EXPECT_FALSE(CheckCanTravel(at::ones({2, 3}).to_sparse()).ok());
  EXPECT_FALSE(CheckCanTravel(at::zeros(std::vector<std::int64_t>(33, 1))).ok());
  EXPECT_FALSE(CheckCanTravel(at::zeros({1}, at::kComplexHalf)).ok());
}

TEST(TensorBufferTest, ABoolIsZeroOrOne) {
  EXPECT_TRUE(CheckBools(Bytes(std::string("\0\1\1", 3))).ok());
  EXPECT_FALSE(CheckBools(Bytes(std::string("\0\2", 2))).ok());
  EXPECT_FALSE(CheckBools(Bytes("\xff")).ok());
}

TEST(DtypeTest, CodesAndNames) {
  for (std::uint8_t code = 1; code <= 12; ++code) EXPECT_EQ(DtypeCode(*DtypeFromCode(code)), code);
  EXPECT_FALSE(DtypeFromCode(0).ok());
  EXPECT_FALSE(DtypeFromCode(13).ok());
  EXPECT_EQ(DtypeName(at::kFloat), "float32");
}

TEST(TensorBufferTest, SharesBytesBothWays) {
  const at::Tensor tensor = at::arange(6, at::kFloat).reshape({2, 3});
  Buffer buffer = BufferOfTensor(tensor);
  EXPECT_EQ(buffer.size, 24u);
  const std::weak_ptr<void> owner = buffer.owner;
  at::Tensor view = TensorOverBuffer(std::move(buffer), {3, 2}, at::kFloat);
  buffer = {};
  EXPECT_EQ(view.data_ptr(), tensor.data_ptr());
  EXPECT_FALSE(owner.expired());
  view = at::Tensor();
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace weir
