#include "ops/shape/slice.h"

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
#include "ops/shape/slice.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;

TEST(Slice, ClampsLikePython) {
  const Tensor x = counting({10});

  EXPECT_EQ(slice(x, 0, 2, 5).to_vector<float>(), Floats({2, 3, 4}));
  EXPECT_EQ(slice(x, 0, -3).to_vector<float>(), Floats({7, 8, 9}));
  EXPECT_EQ(slice(x, 0, {}, -8).to_vector<float>(), Floats({0, 1}));
  EXPECT_EQ(slice(x, 0, 1, 100, 4).to_vector<float>(), Floats({1, 5, 9}));
  EXPECT_EQ(slice(x, 0, 8, 3).shape(), Shape({0}));
  EXPECT_THROW(slice(x, 0, {}, {}, -1), InvalidArgument);
  EXPECT_THROW(slice(x, 1), InvalidArgument);
}

TEST(Slice, IsAView) {
  const Tensor x = counting({2, 4});
  const Tensor y = slice(x, 1, 1, {}, 2);

  y.fill_(0);
  EXPECT_EQ(x.to_vector<float>(), Floats({0, 0, 2, 0, 4, 0, 6, 0}));
}

TEST(Slice, NarrowStaysInside) {
  const Tensor x = counting({5});

  EXPECT_EQ(narrow(x, 0, 1, 3).to_vector<float>(), Floats({1, 2, 3}));
  EXPECT_EQ(narrow(x, 0, -2, 2).to_vector<float>(), Floats({3, 4}));
  EXPECT_EQ(narrow(x, 0, 5, 0).shape(), Shape({0}));
  EXPECT_THROW(narrow(x, 0, 3, 3), InvalidArgument);
  EXPECT_THROW(narrow(x, 0, 0, -1), InvalidArgument);
  EXPECT_THROW(narrow(full({}, 1.0), 0, 0, 1), InvalidArgument);
}

TEST(Slice, SelectDropsTheDim) {
  const Tensor x = counting({2, 3});

  EXPECT_EQ(select(x, 0, 1).to_vector<float>(), Floats({3, 4, 5}));
  EXPECT_EQ(select(x, 1, -1).to_vector<float>(), Floats({2, 5}));
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(select(x, 0, i)[0].item<float>(), static_cast<float>(3 * i));
  EXPECT_THROW(select(x, 0, 2), InvalidArgument);
  EXPECT_THROW(select(x, 0, -3), InvalidArgument);
}

TEST(Slice, SplitsIntoParts) {
  const Tensor x = counting({7});
  const auto sizes = [](const Tensors& parts) {
    std::vector<int64_t> result;
    for (const Tensor& part : parts)
      result.push_back(part.size(0));
    return result;
  };

  EXPECT_EQ(sizes(split(x, 3)), (std::vector<int64_t>{3, 3, 1}));
  EXPECT_EQ(sizes(split(x, {1, 2, 4})), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(split(x, {1, 2, 4})[2][0].item<float>(), 3);
  EXPECT_EQ(sizes(chunk(counting({6}), 4)), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(sizes(chunk(zeros({0}), 2)), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(unbind(counting({2, 2})).size(), 2U);
  EXPECT_EQ(unbind(counting({2, 2}), 1)[1].to_vector<float>(), Floats({1, 3}));
  EXPECT_EQ(sizes(split(x, {7})), std::vector<int64_t>{7});
  EXPECT_THROW(split(x, {3}), InvalidArgument);  // a list of one size, not parts of 3
  EXPECT_THROW(split(x, {3, 3}), InvalidArgument);
  EXPECT_THROW(split(x, {8, -1}), InvalidArgument);
  EXPECT_THROW(split(x, 0), InvalidArgument);
  EXPECT_THROW(chunk(x, 0), InvalidArgument);
}

TEST(Slice, GradientsAreRight) {
  const Tensor x = leaf({4, 3});
  const auto fn = [](const Tensors& in) {
    const Tensor& v = in[0];
    const Tensors parts = split(v, 3);
    return Tensors{slice(v, 0, 1, {}, 2) * 3, select(v, 1, 2) * select(v, 1, 0), narrow(v, 0, 1, 2),
                   parts[0] * parts[1]};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

TEST(Slice, ChunkTakesAnyNumberOfChunks) {
  EXPECT_EQ(chunk(ones({4}), INT64_MAX).size(), 4U);
}

}  // namespace
}  // namespace flow
