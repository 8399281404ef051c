#include "ops/shape/diagonal.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

TEST(Diagonal, IsAView) {
  const Tensor x = reshape(arange(12, {.dtype = float32}), {3, 4});

  EXPECT_EQ(diagonal(x).to_vector<float>(), Floats({0, 5, 10}));
  EXPECT_EQ(diagonal(x, 2).to_vector<float>(), Floats({2, 7}));
  EXPECT_EQ(diagonal(x, -1).to_vector<float>(), Floats({4, 9}));
  EXPECT_EQ(diagonal(x, 4).shape(), Shape({0}));
  EXPECT_EQ(diagonal(x, -7).shape(), Shape({0}));
  diagonal(x, 1).fill_(0);
  EXPECT_EQ(x.to_vector<float>(), Floats({0, 0, 2, 3, 4, 5, 0, 7, 8, 9, 10, 0}));
}

TEST(Diagonal, StandsInTheLastDim) {
  const Tensor x = reshape(arange(12, {.dtype = float32}), {2, 3, 2});

  EXPECT_EQ(diagonal(x, 0, 0, 2).to_vector<float>(), Floats({0, 7, 2, 9, 4, 11}));
  EXPECT_EQ(diagonal(x, 0, -1, 0).shape(), Shape({3, 2}));
  EXPECT_EQ(diagonal(x.transpose(0, 1), 1, 1, 2).to_vector<float>(), Floats({1, 3, 5}));
}

TEST(Diagonal, GradientStandsOnIt) {
  const Tensor x = ones({2, 3}, {.requires_grad = true});

  sum(diagonal(x, 1)).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 1, 0, 0, 0, 1}));
}

TEST(Diagonal, EmbedsVectors) {
  const Tensor x = tensor({1.f, 2.f});

  EXPECT_EQ(diag(x).to_vector<float>(), Floats({1, 0, 0, 2}));
  EXPECT_EQ(diag(x, -1).to_vector<float>(), Floats({0, 0, 0, 1, 0, 0, 0, 2, 0}));
  EXPECT_EQ(diag(diag(x, 3), 3).to_vector<float>(), Floats({1, 2}));
  EXPECT_EQ(diag_embed(ones({3, 2}), 1, 0, 2).shape(), Shape({3, 3, 3}));
}

TEST(Diagonal, WrongDimsAreRefused) {
  EXPECT_THROW(diagonal(ones({3})), InvalidArgument);
  EXPECT_THROW(diagonal(ones({3, 3}), 0, 1, -1), InvalidArgument);
  EXPECT_THROW(diagonal(ones({3, 3}), 0, 0, 2), InvalidArgument);
  EXPECT_THROW(diag(ones({2, 2, 2})), InvalidArgument);
  EXPECT_THROW(diag_embed(ones({2}), 0, 1, 1), InvalidArgument);
}

}  // namespace
}  // namespace flow
