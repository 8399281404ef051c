#include "nn/layers/rotary.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "nn/flow.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

TEST(RotaryEmbedding, TurnsPairsByTheFormula) {
  const Tensor x = randn({2, 3, 5, 6}, {.dtype = float64});
  for (const bool interleaved : {false, true}) {
    nn::RotaryEmbedding rotary(6, {.base = 100, .interleaved = interleaved});
    const Doubles in = x.to_vector<double>(), out = rotary(x, 7).to_vector<double>();
    for (size_t row = 0; row < 30; ++row) {
      for (size_t i = 0; i < 3; ++i) {
        const size_t first = row * 6 + (interleaved ? 2 * i : i);
        const size_t second = row * 6 + (interleaved ? 2 * i + 1 : i + 3);
        const double angle =
            static_cast<double>(row % 5 + 7) * std::pow(100, -2 * static_cast<double>(i) / 6);
        EXPECT_NEAR(out[first], in[first] * std::cos(angle) - in[second] * std::sin(angle), 1e-12);
        EXPECT_NEAR(out[second], in[first] * std::sin(angle) + in[second] * std::cos(angle), 1e-12);
      }
    }
  }
}

TEST(RotaryEmbedding, ProductsDependOnDistancesOnly) {
  nn::RotaryEmbedding rotary(8);
  const Tensor q = randn({1, 8}, {.dtype = float64}), k = randn({1, 8}, {.dtype = float64});
  const auto product = [&](int64_t m, int64_t n) {
    return (rotary(q, m) * rotary(k, n)).sum().item();
  };
  EXPECT_NEAR(product(3, 1), product(103, 101), 1e-12);
  EXPECT_GT(std::abs(product(3, 1) - product(3, 2)), 1e-6);
  const Tensor x = randn({4, 8}, {.dtype = float64});
  EXPECT_TRUE(allclose(rotary(x, tensor({2, 3, 4, 5})), rotary(x, 2)));
}

TEST(RotaryEmbedding, KeepsDtypeLayoutAndGradients) {
  nn::RotaryEmbedding rotary(4);
  EXPECT_EQ(rotary(ones({3, 4}, {.dtype = bfloat16})).dtype(), bfloat16);
  const Tensor x = randn({3, 4}, {.dtype = float64, .requires_grad = true});
  rotary(x).square().sum().backward();
  EXPECT_TRUE(allclose(x.grad(), 2 * x.detach())) << "a rotation keeps norms";
  const auto expected = rotary(x.detach()).to_vector<double>();
  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    for (const Sbp layout : {sbp::split(0), sbp::split(1)}) {
      const Tensor global = x.detach().to_global(both, sbp::broadcast).to_global(both, layout);
      EXPECT_EQ(rotary(global).to_vector<double>(), expected);
    }
  });
}

TEST(RotaryEmbedding, RefusesOddWidthsAndOtherShapes) {
  EXPECT_THROW(nn::RotaryEmbedding(5), InvalidArgument);
  nn::RotaryEmbedding rotary(4);
  EXPECT_THROW(rotary(ones({3, 6})), InvalidArgument);
  EXPECT_THROW(rotary(ones({4})), InvalidArgument);
  EXPECT_THROW(rotary(ones({3, 4}, {.dtype = int64})), InvalidArgument);
  EXPECT_THROW(rotary(ones({3, 4}), tensor({1, 2})), InvalidArgument);
}

}  // namespace
}  // namespace flow
