#include "ops/shape/view.h"

#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/rows.h"
#include "ops/shape/slice.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;

TEST(View, ReshapeSharesMemoryWhereStridesAllow) {
  const Tensor x = counting({2, 6});
  const Tensor y = reshape(x, {3, -1});

  EXPECT_EQ(y.shape(), Shape({3, 4}));
  EXPECT_EQ(y.data<float>(), x.data<float>());
  y.fill_(7);
  EXPECT_EQ(x.to_vector<float>(), Floats(12, 7));
}

TEST(View, ReshapeCopiesWhereStridesDoNot) {
  const Tensor x = counting({2, 3}).t();
  const Tensor y = reshape(x, {6});

  EXPECT_NE(y.data<float>(), x.data<float>());
  EXPECT_EQ(y.to_vector<float>(), Floats({0, 3, 1, 4, 2, 5}));
}

TEST(View, ReshapeSplitsAndJoinsStridedDims) {
  const Tensor x = narrow(counting({4, 6}), 1, 1, 4);  // strides (6, 1)

  const Tensor split_dims = view(x, {2, 2, 2, 2});
  EXPECT_EQ(split_dims.strides(), Shape({12, 6, 2, 1}));
  EXPECT_EQ(view(x, {4, 1, 4}).strides()[0], 6);
  EXPECT_THROW(view(x, {16}), InvalidArgument);
  EXPECT_EQ(reshape(x, {16})[15].item<float>(), 22);
}

TEST(View, ReshapeRefusesOtherCounts) {
  const Tensor x = counting({2, 3});

  EXPECT_THROW(reshape(x, {4}), InvalidArgument);
  EXPECT_THROW(reshape(x, {-1, 4}), InvalidArgument);
  EXPECT_THROW(reshape(x, {-1, -1}), InvalidArgument);
  EXPECT_THROW(reshape(x, {-2, 3}), InvalidArgument);
  EXPECT_THROW(reshape(zeros({0, 3}), {0, -1}), InvalidArgument);
  EXPECT_EQ(reshape(zeros({0, 3}), {3, -1}).shape(), Shape({3, 0}));
}

TEST(View, FlattenJoinsDims) {
  const Tensor x = counting({2, 3, 4});

  EXPECT_EQ(flatten(x).shape(), Shape({24}));
  EXPECT_EQ(flatten(x, 1).shape(), Shape({2, 12}));
  EXPECT_EQ(flatten(x, 0, -2).shape(), Shape({6, 4}));
  EXPECT_EQ(flatten(full({}, 1.0)).shape(), Shape({1}));
  EXPECT_THROW(flatten(x, 2, 1), InvalidArgument);
}

TEST(View, SqueezeAndUnsqueeze) {
  const Tensor x = counting({1, 3, 1});

  EXPECT_EQ(squeeze(x).shape(), Shape({3}));
  EXPECT_EQ(squeeze(x, 0).shape(), Shape({3, 1}));
  EXPECT_EQ(squeeze(x, 1).shape(), Shape({1, 3, 1}));
  EXPECT_EQ(unsqueeze(x, -1).shape(), Shape({1, 3, 1, 1}));
  EXPECT_EQ(unsqueeze(x, 0).shape(), Shape({1, 1, 3, 1}));
  EXPECT_THROW(unsqueeze(x, 4), InvalidArgument);
}

TEST(View, PermutationsMoveDims) {
  const Tensor x = counting({2, 3, 4});

  EXPECT_EQ(permute(x, {2, 0, 1}).shape(), Shape({4, 2, 3}));
  EXPECT_EQ(transpose(x, 0, -1).shape(), Shape({4, 3, 2}));
  EXPECT_EQ(swapaxes(x, 0, 1).shape(), Shape({3, 2, 4}));
  EXPECT_EQ(movedim(x, 0, -1).shape(), Shape({3, 4, 2}));
  EXPECT_EQ(movedim(x, {0, 1}, {1, 0}).shape(), Shape({3, 2, 4}));
  EXPECT_EQ(t(counting({2, 3})).to_vector<float>(), Floats({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(t(counting({3})).shape(), Shape({3}));
  EXPECT_THROW(t(x), InvalidArgument);
  EXPECT_THROW(permute(x, {0, 1}), InvalidArgument);
  EXPECT_THROW(permute(x, {0, 1, 1}), InvalidArgument);
  EXPECT_THROW(movedim(x, {0, 0}, {1, 2}), InvalidArgument);
}

TEST(View, ExpandRepeatsWithoutMemory) {
  const Tensor x = counting({3, 1});
  const Tensor y = expand(x, {2, 3, 4});

  EXPECT_EQ(y.shape(), Shape({2, 3, 4}));
  EXPECT_EQ(y.strides(), Shape({0, 1, 0}));
  EXPECT_EQ(expand(x, {-1, 2}).to_vector<float>(), Floats({0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(broadcast_to(x, {3, 2}).shape(), Shape({3, 2}));
  EXPECT_EQ(expand_as(x, counting({3, 5})).shape(), Shape({3, 5}));
  EXPECT_THROW(expand(x, {4, 4}), InvalidArgument);
  EXPECT_THROW(expand(x, {3}), InvalidArgument);
  EXPECT_THROW(expand(x, {-1, 3, 1}), InvalidArgument);
}

TEST(View, GradientsAreRight) {
  const Tensor x = leaf({2, 3, 2});
  const auto fn = [](const Tensors& in) {
    const Tensor& v = in[0];
    return Tensors{reshape(v, {3, 4}) * 2, reshape(transpose(v, 0, 2), {-1}),
                   permute(v, {1, 2, 0}),  expand(v, {2, 2, 3, 2}),
                   unsqueeze(v, 1) * v,    squeeze(narrow(v, 0, 1, 1))};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

TEST(View, SqueezesSeveralDims) {
  const Tensor x = ones({1, 2, 1, 1});

  EXPECT_EQ(squeeze(x, {0, 1, -1}).shape(), Shape({2, 1}));
  EXPECT_THROW(squeeze(x, {0, 4}), InvalidArgument);
}

TEST(Rows, ALoopSeesEachRowAsAView) {
  const Tensor x = counting({3, 2});
  std::vector<Floats> rows;
  for (const Tensor& row : x) {
    rows.push_back(row.to_vector<float>());
    row.fill_(1);
  }
  EXPECT_EQ(rows, (std::vector<Floats>{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(x.to_vector<float>(), Floats(6, 1));

  int64_t count = 0;
  for ([[maybe_unused]] const Tensor& row : zeros({0, 2}))
    ++count;
  for ([[maybe_unused]] const Tensor& row : x * 2)  // the loop keeps the product
    ++count;
  EXPECT_EQ(count, 3);
}

TEST(Rows, GradientsReachTheTensor) {
  const Tensor x = leaf({2, 2});
  Tensor total = zeros({}, {.dtype = float64});
  double weight = 0;
  for (const Tensor& row : x)
    total = total + row.sum() * (weight += 1);
  total.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{1, 1, 2, 2}));
}

TEST(Rows, ATensorWithoutDimsHasNone) {
  try {
    for ([[maybe_unused]] const Tensor& row : ones({}))
      FAIL();
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("view_test.cpp"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace flow
