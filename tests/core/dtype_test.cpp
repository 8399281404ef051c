#include "core/dtype.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/scalar.h"

namespace flow {
namespace {

TEST(DType, NamesParseBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_THROW(parse_dtype("float8"), InvalidArgument);
}

TEST(DType, PromotionFollowsTheLattice) {
  EXPECT_EQ(promote(bool_, uint8), uint8);
  EXPECT_EQ(promote(int64, float16), float16);
  EXPECT_EQ(promote(float16, bfloat16), float32);
  EXPECT_EQ(promote(float32, float64), float64);
  EXPECT_EQ(promote(uint8, int8), int16);
  EXPECT_EQ(promote(uint8, int16), int16);
  EXPECT_EQ(promote(int16, int32), int32);
  EXPECT_EQ(promote(int16, bfloat16), bfloat16);
}

TEST(DType, ScalarsRaiseTheCategoryNotTheWidth) {
  EXPECT_EQ(promote(int32, Scalar(2)), int32);
  EXPECT_EQ(promote(int32, Scalar(2.5)), float32);
  EXPECT_EQ(promote(float16, Scalar(2.5)), float16);
  EXPECT_EQ(promote(bool_, Scalar(1)), int64);
  EXPECT_EQ(promote(bool_, Scalar(true)), bool_);
}

TEST(Float16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = Float16::to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Float16::to_float(Float16::from_float(value))));
    } else {
      EXPECT_EQ(Float16::from_float(value), bits);
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(float(Float16(2049.0F)), 2048.0F);  // halfway between 2048 and 2050
  EXPECT_EQ(float(Float16(2051.0F)), 2052.0F);
  EXPECT_EQ(float(Float16(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(float(Float16(65520.0F))));
  EXPECT_EQ(float(Float16(0x1p-25F)), 0.0F);  // halfway between 0 and the least subnormal
  EXPECT_EQ(float(Float16(0x1.8p-25F)), 0x1p-24F);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  EXPECT_EQ(float(BFloat16(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(float(BFloat16(1.0F + 0x1.8p-8F)), 1.0F + 0x1p-7F);
  EXPECT_TRUE(std::isnan(float(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace flow
