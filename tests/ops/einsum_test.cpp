#include "ops/linear/einsum.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

// Values of PyTorch 2.
TEST(Einsum, MultipliesMatrices) {
  const Tensor a = reshape(arange(6, {.dtype = float32}), {2, 3});
  const Tensor b = reshape(arange(12, {.dtype = float32}), {3, 4}) - 5;

  EXPECT_EQ(einsum("ij,jk", {a, b}).to_vector<float>(), Floats({5, 8, 11, 14, -4, 8, 20, 32}));
  EXPECT_EQ(einsum("ij, jk -> ki", {a, b}).to_vector<float>(),
            Floats({5, -4, 8, 8, 11, 20, 14, 32}));
  EXPECT_EQ(tensordot(a, b, 1).to_vector<float>(), Floats({5, 8, 11, 14, -4, 8, 20, 32}));
  const Tensor c = reshape(arange(8, {.dtype = float32}), {4, 2});
  EXPECT_EQ(einsum("ab,bc,ca->", {a, b, c}).item<float>(), 488);
}

TEST(Einsum, SumsOverSeveralDims) {
  const Tensor x = reshape(arange(24, {.dtype = float32}), {2, 3, 4}) - 11;

  EXPECT_EQ(einsum("bij,bik->jk", {x, x.narrow(2, 0, 2)}).to_vector<float>(),
            Floats({286, 280, 280, 280, 274, 280, 268, 280}));
  const Tensor y = reshape(arange(24, {.dtype = float32}), {4, 3, 2});
  EXPECT_EQ(tensordot(x, y, {1, 2}, {1, 0}).to_vector<float>(), Floats({-572, -638, 1012, 1090}));
}

TEST(Einsum, EllipsisStandsForFurtherDims) {
  const Tensor x = reshape(arange(12, {.dtype = float32}), {2, 2, 3});
  const Tensor b = reshape(arange(12, {.dtype = float32}), {3, 4}) - 5;
  const Tensor y = einsum("...i,ij->...j", {x, b});

  EXPECT_EQ(y.shape(), Shape({2, 2, 4}));
  EXPECT_EQ(y.to_vector<float>(),
            Floats({5, 8, 11, 14, -4, 8, 20, 32, -13, 8, 29, 50, -22, 8, 38, 68}));
  EXPECT_EQ(einsum("a...->...", {x}).to_vector<float>(), Floats({6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(einsum("...a,...b", {ones({2, 3}), ones({4, 2, 5})}).shape(), Shape({4, 2, 3, 5}));
  EXPECT_EQ(einsum("...a,a->", {x, tensor({1.f, 0.f, 0.f})}).item<float>(), 18);
}

TEST(Einsum, RepeatedLettersTakeTheDiagonal) {
  const Tensor x = reshape(arange(8, {.dtype = float32}), {2, 2, 2});
  const Tensor y = reshape(arange(4, {.dtype = float32}), {2, 2});

  EXPECT_EQ(einsum("ii", {y}).item<float>(), 3);
  EXPECT_EQ(einsum("ii->i", {y}).to_vector<float>(), Floats({0, 3}));
  EXPECT_EQ(einsum("iii->i", {x}).to_vector<float>(), Floats({0, 7}));
  EXPECT_EQ(einsum("iij,jk->ik", {x, y}).to_vector<float>(), Floats({2, 3, 14, 27}));
}

TEST(Einsum, WithoutArrowLettersAreInAlphabeticalOrder) {
  const Tensor y = einsum("bA,ba", {reshape(arange(4, {.dtype = float32}), {2, 2}),
                                    reshape(arange(6, {.dtype = float32}), {2, 3})});

  EXPECT_EQ(y.to_vector<float>(), Floats({6, 8, 10, 9, 13, 17}));
  EXPECT_EQ(einsum("ba", {ones({2, 3})}).shape(), Shape({3, 2}));
}

TEST(Einsum, OuterProductsAndBroadcastDims) {
  const Tensor y =
      einsum("i,j,k->kji", {tensor({1.f, 2.f}), tensor({3.f, 4.f}), tensor({5.f, 6.f})});
  const Tensor column = tensor({{2.f}, {3.f}});
  const Tensor a = reshape(arange(6, {.dtype = float32}), {2, 3});

  EXPECT_EQ(y.to_vector<float>(), Floats({15, 30, 20, 40, 18, 36, 24, 48}));
  EXPECT_EQ(einsum("ij,ij->i", {column, a}).to_vector<float>(), Floats({6, 36}));
  EXPECT_EQ(einsum("ij,ij->j", {column, a}).to_vector<float>(), Floats({9, 14, 19}));
  EXPECT_EQ(einsum(",i->i", {tensor(2.f), tensor({1.f, 3.f})}).to_vector<float>(), Floats({2, 6}));
  EXPECT_EQ(einsum("ij,jk->ik", {ones({2, 0}), ones({0, 3})}).to_vector<float>(),
            Floats({0, 0, 0, 0, 0, 0}));
}

TEST(Einsum, HasGradients) {
  const Tensor q = ones({2, 3, 4}, {.requires_grad = true});
  const Tensor k = reshape(arange(40, {.dtype = float32}), {2, 5, 4});

  sum(einsum("bqd,bkd->bqk", {q, k})).backward();

  EXPECT_EQ(q.grad()[0][0].to_vector<float>(), Floats({40, 45, 50, 55}));
}

TEST(Einsum, WrongEquationsAreRefused) {
  const Tensor x = ones({2, 3});

  EXPECT_THROW(einsum("ij", {x, x}), InvalidArgument);
  EXPECT_THROW(einsum("ij,jk", {x}), InvalidArgument);
  EXPECT_THROW(einsum("ijk", {x}), InvalidArgument);
  EXPECT_THROW(einsum("ij,jk", {x, x}), InvalidArgument);
  EXPECT_THROW(einsum("ii", {x}), InvalidArgument);
  EXPECT_THROW(einsum("ij->k", {x}), InvalidArgument);
  EXPECT_THROW(einsum("ij->ii", {x}), InvalidArgument);
  EXPECT_THROW(einsum("i1", {x}), InvalidArgument);
  EXPECT_THROW(einsum("i......", {x}), InvalidArgument);
  EXPECT_THROW(einsum("ij", {}), InvalidArgument);
  EXPECT_THROW(tensordot(x, x, 1), InvalidArgument);
  EXPECT_THROW(tensordot(x, x, {0, 0}, {0, 1}), InvalidArgument);
  EXPECT_THROW(tensordot(x, x, {0}, {0, 1}), InvalidArgument);
}

TEST(Einsum, ContractsSplitDimsOfGlobalTensors) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor a = ones({2, 5}, {.placement = both, .sbp = sbp::split(1)});
    const Tensor b = ones({5, 3}, {.placement = both, .sbp = sbp::split(0)});

    EXPECT_EQ(einsum("ij,jk->ik", {a, b}).to_vector<float>(), Floats({5, 5, 5, 5, 5, 5}));
  });
}

}  // namespace
}  // namespace flow
