#include "ops/index/embedding.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/index/embedding_bag.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(Embedding, TakesRows) {
  const Tensor weight = tensor({{0.f, 1.f}, {10.f, 11.f}, {20.f, 21.f}});
  const Tensor input = tensor(std::vector<int64_t>{2, 0, 2, 1}, {2, 2});

  const Tensor y = embedding(input, weight);
  EXPECT_EQ(y.shape(), Shape({2, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({20, 21, 0, 1, 20, 21, 10, 11}));
  EXPECT_EQ(embedding(cast(input, int32).t(), weight).to_vector<float>(),
            Floats({20, 21, 20, 21, 0, 1, 10, 11}));
}

TEST(Embedding, OutOfRangeNamesValueAndRows) {
  const Tensor weight = zeros({3, 2});

  for (const int64_t bad : {-1, 3}) {
    try {
      embedding(tensor(std::vector<int64_t>{0, bad}, {2}), weight);
      FAIL() << "no error";
    } catch (const InvalidArgument& error) {
      const std::string expected = str("index ", bad, " is out of range for 3 rows");
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(embedding(tensor({0.5f}), weight), InvalidArgument);
  EXPECT_THROW(embedding(tensor(std::vector<int64_t>{0}, {1}), zeros({3})), InvalidArgument);
  EXPECT_THROW(embedding(tensor(std::vector<int64_t>{0}, {1}), weight, {.padding_idx = 3}),
               InvalidArgument);
}

TEST(Embedding, GradientAddsUpRowsAndSkipsPadding) {
  const Tensor weight = zeros({3, 2}, {.requires_grad = true});
  const Tensor input = tensor(std::vector<int64_t>{1, 2, 1}, {3});
  const Tensor dy = tensor({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});

  const auto gradient = [&](const EmbeddingOptions& options) {
    const Tensor y = embedding(input, weight, options);
    return grad({y}, {weight}, {.grad_outputs = {dy}})[0].to_vector<float>();
  };
  EXPECT_EQ(gradient({}), Floats({0, 0, 6, 8, 3, 4}));
  EXPECT_EQ(gradient({.padding_idx = 1}), Floats({0, 0, 0, 0, 3, 4}));
  EXPECT_EQ(gradient({.padding_idx = -1}), Floats({0, 0, 6, 8, 0, 0}));
}

TEST(Embedding, GradientsAreRight) {
  const Tensor weight = tensor(Doubles{1, -2, 0.5, 3, 4, -1}, {3, 2}, {.requires_grad = true});
  const Tensor input = tensor(std::vector<int64_t>{2, 0, 2}, {3});
  const auto fn = [&](const std::vector<Tensor>& in) {
    const Tensor y = embedding(input, in[0], {.padding_idx = 0});
    return y * y;
  };

  // The padding row contributes to the values but not to the gradient.
  EXPECT_TRUE(
      gradcheck([&](const std::vector<Tensor>& in) { return embedding(input, in[0]); }, {weight}));
  const Tensor dy = full({3, 2}, 1.0, {.dtype = float64, .requires_grad = true});
  const Tensor dw = grad({embedding(input, weight, {.padding_idx = 0})}, {weight},
                         {.grad_outputs = {dy}, .create_graph = true})[0];
  EXPECT_EQ(
      grad({dw}, {dy}, {.grad_outputs = {ones({3, 2}, {.dtype = float64})}})[0].to_vector<double>(),
      Doubles({1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(fn({weight}).shape(), Shape({3, 2}));
}

TEST(Embedding, GradientDoesNotDependOnTheThreads) {
  std::vector<int64_t> rows(5000);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<int64_t>(i * i % 7);
  const Tensor input = tensor(rows, {5000});
  const Tensor dy = arange(5000 * 96, {.dtype = float32}).reshape({5000, 96}) / 977;
  const auto gradient = [&](int threads) {
    RankContext context({}, threads);
    const RankScope scope(context);
    const Tensor weight = zeros({7, 96}, {.requires_grad = true});
    return grad({embedding(input, weight)}, {weight}, {.grad_outputs = {dy}})[0].to_vector<float>();
  };

  EXPECT_EQ(gradient(1), gradient(3));
}

TEST(Embedding, ScalesGradientsByFrequency) {
  const Tensor weight = tensor({{1.f, 2.f}, {3.f, 4.f}, {6.f, 8.f}}, {.requires_grad = true});

  sum(embedding(tensor({0, 2, 0}), weight, {.scale_grad_by_freq = true})).backward();

  EXPECT_EQ(weight.grad().to_vector<float>(), Floats({1, 1, 0, 0, 1, 1}));
}

TEST(Embedding, ShortensTheRowsTaken) {
  const Tensor weight = tensor({{1.0, 2.0}, {3.0, 4.0}, {6.0, 8.0}, {30.0, 40.0}},
                               {.dtype = float64, .requires_grad = true});

  const Tensor y = embedding(tensor({1, 2, 1, 0}), weight, {.max_norm = 2.5});

  EXPECT_NEAR(y.to_vector<double>()[0], 1.49999997, 1e-12);
  EXPECT_NEAR(weight.to_vector<double>()[5], 1.99999998, 1e-12);
  EXPECT_EQ(weight.to_vector<double>()[1], 2);
  EXPECT_EQ(weight.to_vector<double>()[7], 40);
  embedding(tensor({3}), weight, {.max_norm = 7, .norm_type = 1});
  EXPECT_NEAR(weight.to_vector<double>()[7], 4, 1e-7);
  EXPECT_THROW(embedding(tensor({3}), weight, {.max_norm = 0}), InvalidArgument);
}

TEST(EmbeddingBag, PaddingRowsCountForNothing) {
  for (const float padding : {INFINITY, std::nanf("")}) {
    const Tensor weight = tensor({{padding}, {2.f}, {4.f}});
    for (const std::string mode : {"sum", "mean", "max"}) {
      const EmbeddingBagOptions options{.mode = mode, .padding_idx = 0};
      EmbeddingBagOptions by_offsets = options;
      by_offsets.offsets = tensor({int64_t{0}});
      EXPECT_EQ(embedding_bag(tensor({{0, 1}}), weight, options).item<float>(), 2) << mode;
      EXPECT_EQ(embedding_bag(tensor({0, 1}), weight, by_offsets).item<float>(), 2) << mode;
    }
  }
}

TEST(EmbeddingBag, RefusesOffsetsThatDoNotDivideTheIndices) {
  const Tensor weight = ones({3, 1}), indices = tensor({0, 1, 2, 0, 1});
  const auto sums = [&](const std::vector<int64_t>& offsets) {
    return embedding_bag(
               indices, weight,
               {.offsets = tensor(offsets, {static_cast<int64_t>(offsets.size())}), .mode = "sum"})
        .to_vector<float>();
  };
  EXPECT_EQ(sums({0, 3, 3}), Floats({3, 0, 2}));
  EXPECT_EQ(sums({0, 5}), Floats({5, 0}));
  EXPECT_THROW(sums({1, 3}), InvalidArgument);
  EXPECT_THROW(sums({0, 9}), InvalidArgument);
  EXPECT_THROW(sums({0, 3, 2}), InvalidArgument);
}

}  // namespace
}  // namespace flow
