#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/vector_probe.h"

namespace flow::ops {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kValues[] = {0.0F,  -0.0F,      1.0F,       -1.0F, 0.5F,  -0.5F, 1.5F,  2.5F,
                             -2.5F, 8388607.5F, 16777216.F, 1e30F, -3.7F, kInf,  -kInf, kNan};

template <class T>
bool is_same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
struct UnaryReference {
  std::string_view name;
  T (*apply)(T);
};

template <class T>
struct BinaryReference {
  std::string_view name;
  T (*apply)(T, T);
};

template <class T>
std::vector<UnaryReference<T>> unary_references() {
  return {{"sqrt", [](T x) { return std::sqrt(x); }},
          {"abs", [](T x) { return std::fabs(x); }},
          {"negate", [](T x) { return -x; }},
          {"floor", [](T x) { return std::floor(x); }},
          {"ceil", [](T x) { return std::ceil(x); }},
          {"trunc", [](T x) { return std::trunc(x); }},
          {"round_even", [](T x) { return std::nearbyint(x); }}};
}

template <class T>
T nan_or(T a, T b, T otherwise) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : otherwise;
}

template <class T>
std::vector<BinaryReference<T>> binary_references() {
  return {{"add", [](T a, T b) { return a + b; }},
          {"subtract", [](T a, T b) { return a - b; }},
          {"multiply", [](T a, T b) { return a * b; }},
          {"divide", [](T a, T b) { return a / b; }},
          {"copysign", [](T a, T b) { return std::copysign(a, b); }},
          {"min", [](T a, T b) { return a < b ? a : b; }},
          {"max", [](T a, T b) { return a > b ? a : b; }},
          {"minimum", [](T a, T b) { return nan_or(a, b, a < b ? a : b); }},
          {"maximum", [](T a, T b) { return nan_or(a, b, a > b ? a : b); }},
          {"less", [](T a, T b) { return T(a < b); }},
          {"less_equal", [](T a, T b) { return T(a <= b); }},
          {"greater", [](T a, T b) { return T(a > b); }},
          {"greater_equal", [](T a, T b) { return T(a >= b); }},
          {"equal", [](T a, T b) { return T(a == b); }},
          {"not_equal", [](T a, T b) { return T(a != b); }},
          {"either_nan", [](T a, T b) { return T(std::isnan(a) || std::isnan(b)); }},
          {"both_finite", [](T a, T b) { return T(std::isfinite(a) && std::isfinite(b)); }}};
}

template <class Entry>
const Entry& find(const std::vector<Entry>& entries, std::string_view name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
  if (found == entries.end()) throw std::out_of_range(std::string(name));
  return *found;
}

template <class T>
void run(const VectorFunction& f, T* y, const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    f.f32(y, x, n);
  } else {
    f.f64(y, x, n);
  }
}

template <class T>
void run(const VectorOperator& f, T* y, const T* a, const T* b, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    f.f32(y, a, b, n);
  } else {
    f.f64(y, a, b, n);
  }
}

template <class T>
class Vector : public testing::Test {};

using ElementTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Vector, ElementTypes);

TYPED_TEST(Vector, UnaryOperationsEqualScalarOnes) {
  using T = TypeParam;
  const std::vector<T> x(std::begin(kValues), std::end(kValues));

  for (const VectorProbe& probe : probes_of_this_machine()) {
    for (const auto& reference : unary_references<T>()) {
      std::vector<T> y(x.size());
      run(find(probe.functions, reference.name), y.data(), x.data(), std::ssize(x));

      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_TRUE(is_same(y[i], reference.apply(x[i])))
            << reference.name << "(" << x[i] << ") is " << y[i] << ", " << probe.num_lanes;
      }
    }
  }
}

TYPED_TEST(Vector, BinaryOperationsEqualScalarOnes) {
  using T = TypeParam;
  std::vector<T> a;
  std::vector<T> b;
  for (const float x : kValues) {
    for (const float y : kValues) {
      a.push_back(T(x));
      b.push_back(T(y));
    }
  }

  for (const VectorProbe& probe : probes_of_this_machine()) {
    for (const auto& reference : binary_references<T>()) {
      std::vector<T> y(a.size());
      run(find(probe.operators, reference.name), y.data(), a.data(), b.data(), std::ssize(a));

      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_TRUE(is_same(y[i], reference.apply(a[i], b[i])))
            << reference.name << "(" << a[i] << ", " << b[i] << ") is " << y[i] << ", "
            << probe.num_lanes;
      }
    }
  }
}

// Sizes across the unrolled loop, the vector loop and the tail; guards around the result.
TYPED_TEST(Vector, MapTouchesItsElementsOnly) {
  using T = TypeParam;
  for (const VectorProbe& probe : probes_of_this_machine()) {
    for (int64_t n = 0; n <= 70; ++n) {
      const auto size = static_cast<size_t>(n);
      std::vector<T> x(size);
      for (size_t i = 0; i < size; ++i)
        x[i] = T(i + 1);
      std::vector<T> y(size + 2, T(-5));
      run(find(probe.functions, "negate"), y.data() + 1, x.data(), n);

      EXPECT_EQ(y.front(), T(-5));
      EXPECT_EQ(y.back(), T(-5)) << n;
      for (size_t i = 0; i < size; ++i)
        EXPECT_EQ(y[i + 1], -T(i + 1)) << i << " of " << n;
    }
  }
}

TEST(VectorFloat, StreamingMapTouchesItsElementsOnlyAtAnyAlignment) {
  for (const VectorProbe& probe : probes_of_this_machine()) {
    for (size_t offset = 1; offset <= 17; ++offset) {
      for (const size_t n : {size_t{0}, size_t{1}, size_t{5}, size_t{16}, size_t{67}}) {
        const std::vector<float> a(n, 1.5F);
        const std::vector<float> b(n, 2.0F);
        std::vector<float> y(offset + n + 1, -5.0F);
        probe.add_stream(y.data() + offset, a.data(), b.data(), static_cast<int64_t>(n));

        EXPECT_EQ(y[offset - 1], -5.0F);
        EXPECT_EQ(y.back(), -5.0F);
        for (size_t i = 0; i < n; ++i)
          EXPECT_EQ(y[offset + i], 3.5F) << offset << ", " << n;
      }
    }
  }
}

TEST(VectorFloat, PartialLoadFillsTheRest) {
  const std::vector<float> x(16, 1.0F);

  for (const VectorProbe& probe : probes_of_this_machine()) {
    for (int64_t n = 0; n <= probe.num_lanes; ++n) {
      std::array<float, 16> y{};
      probe.load_some(y.data(), x.data() + 16 - n, n);

      for (int64_t i = 0; i < probe.num_lanes; ++i) {
        EXPECT_EQ(y[static_cast<size_t>(i)], i < n ? 1.0F : 7.0F);
      }
    }
  }
}

TEST(VectorFloat, ReductionsCoverAllLanesAndKeepNan) {
  for (const VectorProbe& probe : probes_of_this_machine()) {
    const auto lanes = static_cast<size_t>(probe.num_lanes);
    for (size_t peak = 0; peak < lanes; ++peak) {
      std::vector<float> x(lanes, -1.0F);
      x[peak] = 100.0F;
      EXPECT_EQ(probe.sum(x.data()), 100.0F - static_cast<float>(lanes - 1));
      EXPECT_EQ(probe.max_of(x.data()), 100.0F);
      EXPECT_EQ(probe.min_of(x.data()), -1.0F);

      x[peak] = kNan;
      EXPECT_TRUE(std::isnan(probe.max_of(x.data())));
      EXPECT_TRUE(std::isnan(probe.min_of(x.data())));
    }
  }
}

TEST(VectorSixteenBit, EveryPatternWidensAsCoreDoes) {
  std::vector<Float16> halves(65536);
  std::vector<BFloat16> bfloats(65536);
  for (size_t i = 0; i < halves.size(); ++i) {
    halves[i].bits = static_cast<uint16_t>(i);
    bfloats[i].bits = static_cast<uint16_t>(i);
  }

  for (const VectorProbe& probe : probes_of_this_machine()) {
    std::vector<float> y(halves.size());
    probe.from_half(y.data(), halves.data(), std::ssize(y));
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(is_same(y[i], static_cast<float>(halves[i]))) << i << ", " << probe.num_lanes;
    }
    probe.from_bfloat(y.data(), bfloats.data(), std::ssize(y));
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(is_same(y[i], static_cast<float>(bfloats[i]))) << i << ", " << probe.num_lanes;
    }
  }
}

// Strided patterns, and for every half the floats around it and around the midpoint to the next.
TEST(VectorSixteenBit, NarrowingRoundsAsCoreDoes) {
  std::vector<float> x = {kInf, -kInf, kNan, 65504.0F, 65519.996F, 65520.0F, 1e30F, 0x1p-25F};
  for (uint32_t i = 0; i < 0x7C00; ++i) {
    const uint32_t pattern = std::bit_cast<uint32_t>(Float16::to_float(static_cast<uint16_t>(i)));
    for (const uint32_t offset : {0U, 1U, 0xFFFU, 0x1000U, 0x1001U}) {
      x.push_back(std::bit_cast<float>(pattern + offset));
      x.push_back(-x.back());
    }
  }
  for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += 20011) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(pattern)));
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(pattern) & 0xFFFF8000U));
  }

  for (const VectorProbe& probe : probes_of_this_machine()) {
    std::vector<Float16> halves(x.size());
    std::vector<BFloat16> bfloats(x.size());
    probe.to_half(halves.data(), x.data(), std::ssize(x));
    probe.to_bfloat(bfloats.data(), x.data(), std::ssize(x));

    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(static_cast<float>(halves[i])));
        ASSERT_TRUE(std::isnan(static_cast<float>(bfloats[i])));
      } else {
        ASSERT_EQ(halves[i].bits, Float16::from_float(x[i])) << x[i] << ", " << probe.num_lanes;
        ASSERT_EQ(bfloats[i].bits, BFloat16::from_float(x[i])) << x[i] << ", " << probe.num_lanes;
      }
    }
  }
}

}  // namespace
}  // namespace flow::ops
