#include "ops/shape/arrange.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/index/index.h"
#include "ops/index/selection.h"
#include "ops/linear/vector_algebra.h"
#include "ops/shape/view.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

Floats values(const Tensor& x) {
  return x.to_vector<float>();
}

TEST(Arrange, DimsAreAddedAsEachFunctionSays) {
  EXPECT_EQ(atleast_1d(full({}, 2)).shape(), Shape{1});
  EXPECT_EQ(atleast_2d(full({}, 2)).shape(), (Shape{1, 1}));
  EXPECT_EQ(atleast_2d(ones({3})).shape(), (Shape{1, 3}));
  EXPECT_EQ(atleast_3d(ones({3})).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(atleast_3d(ones({2, 3})).shape(), (Shape{2, 3, 1}));
}

TEST(Arrange, TensorsAreViewsOfTheirCommonShape) {
  const Tensor x = ones({3, 1});
  const std::vector<Tensor> views = broadcast_tensors({x, ones({2}), ones({1, 1, 1})});

  for (const Tensor& view : views)
    EXPECT_EQ(view.shape(), (Shape{1, 3, 2}));
  x.fill_(4);
  EXPECT_EQ(values(views[0]), (Floats{4, 4, 4, 4, 4, 4}));
  EXPECT_THROW(broadcast_tensors({x, ones({2, 2})}), InvalidArgument);
}

TEST(Arrange, StacksSideBySideBelowAndBehind) {
  const Tensor a = counting({2}), b = counting({2, 2});

  EXPECT_EQ(values(hstack({a, a})), (Floats{0, 1, 0, 1}));
  EXPECT_EQ(hstack({b, b}).shape(), (Shape{2, 4}));
  EXPECT_EQ(values(vstack({a, b})), (Floats{0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(values(dstack({a, a})), (Floats{0, 0, 1, 1}));
  EXPECT_EQ(values(column_stack({a, b})), (Floats{0, 0, 1, 1, 2, 3}));
  EXPECT_THROW(vstack({a, ones({3})}), InvalidArgument);
  EXPECT_THROW(hstack({}), InvalidArgument);
}

TEST(Arrange, SplitsUnevenlyAndBeforePositions) {
  const Tensor x = counting({5});

  const std::vector<Tensor> halves = tensor_split(x, 2);
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(values(halves[0]), (Floats{0, 1, 2}));
  const std::vector<Tensor> parts = tensor_split(x, {1, 4, 3, -1});
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(values(parts[1]), (Floats{1, 2, 3}));
  EXPECT_EQ(parts[2].numel(), 0);
  EXPECT_EQ(values(parts[3]), (Floats{3}));
  EXPECT_EQ(values(parts[4]), (Floats{4}));
  EXPECT_THROW(tensor_split(x, 0), InvalidArgument);
  EXPECT_EQ(tensor_split(x, {1}).size(), 2U);  // before index 1, not into one part
  EXPECT_EQ(x.hsplit({2})[1].shape(), Shape{x.size(0) - 2});
}

TEST(Arrange, TurnsAndMirrors) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(values(fliplr(x)), (Floats{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(values(flipud(x)), (Floats{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values(rot90(x)), (Floats{2, 5, 1, 4, 0, 3}));
  EXPECT_EQ(values(rot90(x, -1)), (Floats{3, 0, 4, 1, 5, 2}));
  EXPECT_EQ(values(rot90(x, 2)), (Floats{5, 4, 3, 2, 1, 0}));
  EXPECT_THROW(fliplr(ones({3})), InvalidArgument);
  EXPECT_THROW(rot90(x, 1, {0, -2}), InvalidArgument);
}

TEST(Arrange, RepeatedElementsAreACopy) {
  const Tensor a = counting({2, 2});

  const Tensor once = repeat_interleave(a, 1, 0), rows = repeat_interleave(a[0], 1);
  a.fill_(7);

  EXPECT_EQ(values(once), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(values(rows), (Floats{0, 1}));
}

TEST(Arrange, SpreadsVectorsAndElements) {
  const Tensor a = counting({2}), b = counting({3});

  const std::vector<Tensor> grids = meshgrid({a, b});
  EXPECT_EQ(values(grids[0]), (Floats{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(values(grids[1]), (Floats{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(meshgrid({a, b}, {.indexing = "xy"})[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(values(outer(a, b)), (Floats{0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(values(repeat_interleave(a, 2)), (Floats{0, 0, 1, 1}));
  EXPECT_EQ(values(repeat_interleave(counting({2, 1}), 2, 1)), (Floats{0, 0, 1, 1}));
  EXPECT_EQ(unflatten(counting({6, 2}), 0, {2, -1}).shape(), (Shape{2, 3, 2}));
  EXPECT_THROW(meshgrid({ones({2, 2})}), InvalidArgument);
  EXPECT_THROW(repeat_interleave(a, -1), InvalidArgument);
  EXPECT_THROW(unflatten(a, 0, {3, -1}), InvalidArgument);
  EXPECT_THROW(outer(a, ones({2, 2})), InvalidArgument);
}

TEST(Arrange, TakesAndAddsAtPositions) {
  const Tensor x = counting({2, 3});
  const Tensor at = tensor(std::vector<int64_t>{5, -6}, {2});

  EXPECT_EQ(values(take(x, at)), (Floats{5, 0}));
  EXPECT_EQ(values(take_along_dim(x, tensor(std::vector<int64_t>{2, 0}, {2, 1}), 1)),
            (Floats{2, 3}));
  EXPECT_EQ(values(take_along_dim(x, tensor(std::vector<int64_t>{1}, {1, 1}), 0)),
            (Floats{3, 4, 5}));
  const Tensor rows = tensor(std::vector<int64_t>{1, 1}, {2});
  EXPECT_EQ(values(index_add(x, 0, rows, ones({2, 3}), 2)), (Floats{0, 1, 2, 7, 8, 9}));
  EXPECT_EQ(argwhere(x).shape(), (Shape{5, 2}));
  EXPECT_THROW(index_add(x, 0, rows, ones({1, 3})), InvalidArgument);
  EXPECT_THROW(take(x, ones({1})), InvalidArgument);
}

TEST(Arrange, AddedSlicesOfIntegersStayExact) {
  const int64_t large = (int64_t{1} << 40) + 1;
  const Tensor x = tensor(std::vector<int64_t>{1, 2}, {2});
  const Tensor at = tensor(std::vector<int64_t>{1}, {1});
  const Tensor added = tensor(std::vector<int64_t>{large}, {1});

  EXPECT_EQ(index_add(x, 0, at, added, 3).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 2 + 3 * large}));
  EXPECT_THROW(index_add(x, 0, at, added, 0.5), InvalidArgument);  // as add(x, y, {.alpha = 0.5})
  EXPECT_THROW(x.index_add_(0, at, added, 0.5), InvalidArgument);
}

TEST(Arrange, SlicesAreNotAddedAtNegativePositions) {
  const Tensor x = counting({2, 3});
  const Tensor last = tensor(std::vector<int64_t>{-1}, {1});

  EXPECT_THROW(index_add(x, 0, last, ones({1, 3})), InvalidArgument);
  EXPECT_THROW(x.index_add_(0, last, ones({1, 3})), InvalidArgument);
  EXPECT_EQ(values(x), (Floats{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace flow
