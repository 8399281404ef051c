#include "nn/init.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "nn/flow.h"

namespace flow::nn::init {
namespace {

double largest(const Tensor& t) {
  return abs(t).max().item();
}

double deviation(const Tensor& t) {
  return std(t).item();
}

TEST(Init, GainsAreThoseOfPyTorch) {
  EXPECT_EQ(calculate_gain("linear"), 1);
  EXPECT_EQ(calculate_gain("tanh"), 5.0 / 3);
  EXPECT_DOUBLE_EQ(calculate_gain("relu"), std::sqrt(2));
  EXPECT_DOUBLE_EQ(calculate_gain("leaky_relu", 0.5), std::sqrt(1.6));
  EXPECT_EQ(calculate_gain("selu"), 0.75);
  EXPECT_THROW(calculate_gain("swish"), InvalidArgument);
}

TEST(Init, KaimingAndXavierHaveTheirBoundsAndDeviations) {
  manual_seed(3);
  const Tensor w = empty({40, 30, 5, 5});
  kaiming_uniform_(w, {.a = std::sqrt(5.0)});
  EXPECT_LE(largest(w), 1 / std::sqrt(750.0));
  EXPECT_GT(largest(w), 0.999 / std::sqrt(750.0));
  kaiming_normal_(w, {.mode = "fan_out", .nonlinearity = "relu"});
  EXPECT_NEAR(deviation(w), std::sqrt(2.0 / 1000), 5e-4);
  xavier_uniform_(w, 2);
  EXPECT_LE(largest(w), 2 * std::sqrt(6.0 / 1750));
  xavier_normal_(w);
  EXPECT_NEAR(deviation(w), std::sqrt(2.0 / 1750), 5e-4);
  EXPECT_THROW(kaiming_uniform_(w, {.mode = "fan"}), InvalidArgument);
  EXPECT_THROW(xavier_normal_(empty({3})), InvalidArgument);
}

TEST(Init, TruncNormalStaysWithinItsBounds) {
  manual_seed(3);
  const Tensor w = empty({5000});
  trunc_normal_(w, {.std = 2, .a = -1, .b = 3});
  const auto values = w.to_vector<double>();
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 3);
  // The mean of N(0, 2²) within [-1, 3]: 2 (φ(-1/2) - φ(3/2)) / (Φ(3/2) - Φ(-1/2)).
  EXPECT_NEAR(w.mean().item(), 2 * (0.352065 - 0.129518) / (0.933193 - 0.308538), 0.05);
}

TEST(Init, OrthogonalRowsOrColumnsHaveTheLengthOfTheGain) {
  manual_seed(3);
  const Tensor wide = empty({4, 2, 5}, {.dtype = float64}),
               tall = empty({7, 3}, {.dtype = float64});
  orthogonal_(wide, 2);
  orthogonal_(tall);
  const Tensor rows = wide.reshape({4, 10});
  EXPECT_LE(largest(matmul(rows, rows.t()) - eye(4, {.dtype = float64}) * 4.0), 1e-14);
  EXPECT_LE(largest(matmul(tall.t(), tall) - eye(3, {.dtype = float64})), 1e-14);
}

TEST(Init, EyeOnesAndZeros) {
  const Tensor w = empty({2, 3});
  EXPECT_EQ(eye_(w).to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(ones_(w).sum().item(), 6);
  EXPECT_EQ(zeros_(w).sum().item(), 0);
}

TEST(Init, DiracPassesChannelsOn) {
  const Tensor w = empty({4, 2, 3, 2});
  dirac_(w, 2);
  const auto values = w.to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    // Kernel (d, d) of each group of two, its middle: row 1 of 3, column 1 of 2.
    const bool is_one = i == 3 || i == 21 || i == 27 || i == 45;
    EXPECT_EQ(values[i], is_one ? 1.f : 0.f) << i;
  }
  EXPECT_EQ(dirac_(empty({3, 2, 3})).sum().item(), 2);
  EXPECT_THROW(dirac_(empty({3, 2})), InvalidArgument);
  EXPECT_THROW(dirac_(empty({3, 2, 3}), 2), InvalidArgument);
}

TEST(Init, SparseZeroesAFractionOfEachColumn) {
  manual_seed(3);
  const Tensor w = empty({10, 400});
  sparse_(w, 0.25, 2);
  const auto values = w.to_vector<double>();
  double square = 0;
  for (size_t c = 0; c < 400; ++c) {
    int num_zeros = 0;
    for (size_t row = 0; row < 10; ++row) {
      num_zeros += values[row * 400 + c] == 0;
      square += values[row * 400 + c] * values[row * 400 + c];
    }
    EXPECT_EQ(num_zeros, 3);
  }
  EXPECT_NEAR(std::sqrt(square / 2800), 2, 0.1);
  EXPECT_THROW(sparse_(empty({3}), 0.5), InvalidArgument);
  EXPECT_THROW(sparse_(w, 1.5), InvalidArgument);
}

TEST(Init, IntegersAreRefused) {
  const Tensor numbers = ones({3, 3}, {.dtype = int64});
  EXPECT_THROW(sparse_(numbers, 0.5), InvalidArgument);
  EXPECT_THROW(trunc_normal_(numbers), InvalidArgument);
  EXPECT_THROW(orthogonal_(numbers), InvalidArgument);
  EXPECT_EQ(numbers.sum().item<int64_t>(), 9);
}

TEST(Init, AWeightWithoutElementsIsLeftAlone) {
  EXPECT_EQ(kaiming_uniform_(empty({3, 0})).numel(), 0);
  EXPECT_EQ(kaiming_normal_(empty({0, 3}), {.mode = "fan_out"}).numel(), 0);
}

TEST(LayerInit, LayersStartAsInPyTorch) {
  manual_seed(3);
  // The quirk of the transposed convolution: fan_in counts dim 1 of its weight, out / groups.
  const ConvTranspose2d transposed(64, 4, 3);
  EXPECT_LE(largest(transposed.weight), 1.0 / 6);
  EXPECT_GT(largest(transposed.weight), 0.99 / 6);
  const MultiheadAttention attention(16, 4);
  EXPECT_LE(largest(attention.in_proj_weight), std::sqrt(6.0 / 64));
  EXPECT_EQ(attention.in_proj_bias.sum().item(), 0);
  EXPECT_EQ(attention.get_parameter("out_proj.bias").sum().item(), 0);
  const LSTM lstm(3, 4);
  EXPECT_LE(largest(lstm.get_parameter("weight_ih_l0")), 0.5);
  EXPECT_EQ(PReLU().weight.item(), 0.25);
  const Embedding embedding(5, 3, {.padding_idx = 1});
  EXPECT_EQ(largest(embedding.weight.select(0, 1)), 0);
}

}  // namespace
}  // namespace flow::nn::init
