#include "ops/reduce/scan.h"

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
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Ints64 = std::vector<int64_t>;

TEST(Scan, RunningSumsAndProducts) {
  const Tensor x = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});

  EXPECT_EQ(cumsum(x, 1).to_vector<float>(), Floats({1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(cumsum(x, 0).to_vector<float>(), Floats({1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(cumprod(x, -1).to_vector<float>(), Floats({1, 2, 6, 4, 20, 120}));
  EXPECT_EQ(cumsum(tensor({true, true}), 0).to_vector<int64_t>(), Ints64({1, 2}));
  EXPECT_EQ(cumsum(full({}, 4.0), 0).item<float>(), 4);
  EXPECT_EQ(cumsum(zeros({0}), 0).shape(), Shape({0}));
}

TEST(Scan, GradientsAreRightAroundZeros) {
  const Tensor x = tensor(Doubles{2, 0, -3, 1, 0.5, 4}, {2, 3}, {.requires_grad = true});
  const auto fn = [](const Tensors& in) {
    return Tensors{cumsum(in[0], 0) * in[0], cumprod(in[0], 1), cumprod(in[0], 0)};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

TEST(Scan, TakesADtype) {
  const Tensor x = tensor({100, 100, 100});

  EXPECT_EQ(cumsum(x, 0, {.dtype = float32}).to_vector<float>(),
            std::vector<float>({100, 200, 300}));
  EXPECT_EQ(cumsum(x, 0, {.dtype = uint8}).to_vector<int64_t>(),
            std::vector<int64_t>({100, 200, 44}));
  EXPECT_EQ(cumprod(x, 0, {.dtype = float64}).dtype(), float64);
}

}  // namespace
}  // namespace flow
