#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/sort.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/arrange.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

TEST(TensorMethods, ViewsShareMemory) {
  const Tensor x = zeros({2, 3});

  x.swapaxes(0, 1).slice(0, 1, 3).fill_(2);
  x.unbind(1)[0].fill_(1);
  x.diagonal().fill_(5);

  EXPECT_EQ(x.to_vector<float>(), (Floats{5, 2, 2, 1, 5, 2}));
  EXPECT_EQ(x.unflatten(1, {3, 1}).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(x.movedim(0, 1).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.split({1, 2}, 1)[1].shape(), (Shape{2, 2}));
  EXPECT_EQ(x.chunk(2, 1)[0].shape(), (Shape{2, 2}));
}

TEST(TensorMethods, UnfoldGivesWindowsAlongANewLastDim) {
  const Tensor x = tensor({1.F, 2.F, 3.F, 4.F, 5.F});

  EXPECT_EQ(x.unfold(0, 3, 2).shape(), (Shape{2, 3}));
  EXPECT_EQ(x.unfold(0, 3, 2).to_vector<float>(), (Floats{1, 2, 3, 3, 4, 5}));
  EXPECT_EQ(zeros({4, 5}).unfold(0, 2, 1).shape(), (Shape{3, 5, 2}));
  EXPECT_THROW(x.unfold(0, 6, 1), InvalidArgument);
  EXPECT_THROW(x.unfold(0, 2, 0), InvalidArgument);
}

TEST(TensorMethods, NumbersAreOperandsToo) {
  const Tensor x = tensor({4.F, -2.F});

  EXPECT_EQ(x.add(1).to_vector<float>(), (Floats{5, -1}));
  EXPECT_EQ(x.sub(1, {.alpha = 2}).to_vector<float>(), (Floats{2, -4}));
  EXPECT_EQ(x.div(3, {.rounding_mode = "floor"}).to_vector<float>(), (Floats{1, -1}));
  EXPECT_EQ(x.clamp({.min = 0}).to_vector<float>(), (Floats{4, 0}));
  EXPECT_EQ(x.gt(0).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(x.where(x.gt(0), 7).to_vector<float>(), (Floats{4, 7}));
  EXPECT_EQ(x.masked_fill(x.lt(0), 9).to_vector<float>(), (Floats{4, 9}));
}

TEST(TensorMethods, ReductionsTakeDimsAndOptions) {
  const Tensor x = tensor({{1.F, 5.F, 2.F}, {4.F, 3.F, 6.F}});

  EXPECT_EQ(x.max(1).indices.to_vector<int64_t>(), (Longs{1, 2}));
  EXPECT_EQ(x.amax(0, {.keepdim = true}).shape(), (Shape{1, 3}));
  EXPECT_EQ(x.std({0, 1}, {.unbiased = false}).shape(), Shape());
  EXPECT_EQ(x.norm({.p = 1, .dim = 1}).to_vector<float>(), (Floats{8, 13}));
  EXPECT_EQ(x.topk(2).values.to_vector<float>(), (Floats{5, 2, 6, 4}));
  EXPECT_EQ(x.sort({.dim = 0, .descending = true}).values.to_vector<float>(),
            (Floats{4, 5, 6, 1, 3, 2}));
  EXPECT_EQ(x.trace().item(), 4);
  EXPECT_EQ(x.diff().to_vector<float>(), (Floats{4, -3, -1, 3}));
  EXPECT_EQ(x.diff({.n = 1, .dim = 0}).to_vector<float>(), (Floats{3, -2, 4}));
}

TEST(TensorMethods, NanIsLeftOut) {
  const Tensor x = tensor({{1.F, NAN, 2.F}, {NAN, NAN, NAN}});

  EXPECT_EQ(x.nansum(1).to_vector<float>(), (Floats{3, 0}));
  EXPECT_EQ(x.nanmean().item(), 1.5);
  EXPECT_TRUE(std::isnan(x.nanmean(1).to_vector<float>()[1]));
  EXPECT_EQ(tensor({0.F, NAN, 3.F}).count_nonzero().item<int64_t>(), 2);
  EXPECT_THROW(tensor({1, 2}).nanmean(), InvalidArgument);
}

TEST(TensorMethods, InPlaceFormsReturnTheTensor) {
  const Tensor x = tensor({-1.F, 4.F});

  EXPECT_TRUE(x.relu_().is_same(x));
  EXPECT_EQ(x.sqrt_().to_vector<float>(), (Floats{0, 2}));
  EXPECT_EQ(x.clamp_({.max = 1}).to_vector<float>(), (Floats{0, 1}));
  EXPECT_EQ(x.masked_fill_(x.eq(0), 3).to_vector<float>(), (Floats{3, 1}));
  EXPECT_EQ(x.index_put_({0}, 8).to_vector<float>(), (Floats{8, 1}));
  EXPECT_EQ(x.index_add_(0, tensor({1, 1}), tensor({1.F, 2.F})).to_vector<float>(), (Floats{8, 4}));
  EXPECT_EQ(x.scatter_(0, tensor({1}), 0).to_vector<float>(), (Floats{8, 0}));
  EXPECT_EQ(x.unsqueeze_(0).shape(), (Shape{1, 2}));
  EXPECT_EQ(x.bernoulli_(1).to_vector<float>(), (Floats{1, 1}));
  EXPECT_THROW(x.bernoulli_(1.5), InvalidArgument);
}

TEST(TensorMethods, EqualComparesShapesAndElements) {
  const Tensor x = tensor({1.F, 2.F});

  EXPECT_TRUE(x.equal(tensor({1.F, 2.F})));
  EXPECT_FALSE(x.equal(tensor({1.F, 3.F})));
  EXPECT_FALSE(x.equal(tensor({{1.F, 2.F}})));
  EXPECT_FALSE(tensor({NAN}).equal(tensor({NAN})));
}

}  // namespace
}  // namespace flow
