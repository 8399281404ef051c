#include "ops/index/sort.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Ints64 = std::vector<int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Sort, OrdersAlongADim) {
  const Tensor x = tensor({{3.f, 1.f, 2.f}, {5.f, 6.f, 4.f}});

  const auto [values, indices] = sort(x);
  EXPECT_EQ(values.to_vector<float>(), Floats({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(indices.to_vector<int64_t>(), Ints64({1, 2, 0, 2, 0, 1}));
  EXPECT_EQ(sort(x, {.descending = true}).values.to_vector<float>(), Floats({3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(sort(x.t(), {.dim = 0}).values.to_vector<float>(), Floats({1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(argsort(x, {.dim = 0, .descending = true}).to_vector<int64_t>(),
            Ints64({1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(sort(full({}, 2.0)).values.item<float>(), 2);
}

TEST(Sort, NanIsLargestAndEqualsKeepTheirOrder) {
  const Tensor x = tensor({kNan, 1.f, kInf, 1.f, kNan});

  EXPECT_EQ(argsort(x).to_vector<int64_t>(), Ints64({1, 3, 2, 0, 4}));
  EXPECT_EQ(argsort(x, {.descending = true}).to_vector<int64_t>(), Ints64({0, 4, 2, 1, 3}));
}

TEST(Sort, TopkPicksTheBest) {
  const Tensor x = tensor({{3.f, 9.f, 2.f, 7.f}, {5.f, 6.f, 4.f, 8.f}});

  const auto [values, indices] = topk(x, 2);
  EXPECT_EQ(values.to_vector<float>(), Floats({9, 7, 8, 6}));
  EXPECT_EQ(indices.to_vector<int64_t>(), Ints64({1, 3, 3, 1}));
  EXPECT_EQ(topk(x, 1, {.dim = 0, .largest = false}).values.to_vector<float>(),
            Floats({3, 6, 2, 7}));
  EXPECT_EQ(topk(x, 0).values.shape(), Shape({2, 0}));
  EXPECT_THROW(topk(x, 5), InvalidArgument);
  EXPECT_THROW(topk(x, -1), InvalidArgument);
}

TEST(Sort, GradientsAreRight) {
  const Tensor x = tensor(Doubles{2, 7, -3, 1, 0.5, 4}, {2, 3}, {.requires_grad = true});
  const auto fn = [](const Tensors& in) {
    return Tensors{sort(in[0]).values * in[0], topk(in[0], 2).values,
                   sort(in[0], {.dim = 0, .descending = true}).values};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

}  // namespace
}  // namespace flow
