#include "ops/elementwise/trigonometry.h"

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

const TensorOptions kDouble{.dtype = float64};

void expect_near(const Tensor& y, const Shape& shape, const Doubles& wanted) {
  EXPECT_EQ(y.shape(), shape);
  expect_values(y, wanted, 1e-13);
}

using Function = Tensor (*)(const TensorArg& x);

TEST(Trigonometry, ValuesAndSlopes) {
  struct Row {
    Function function;
    double y;
    double slope;
  };

  for (const auto& [function, y, slope] : std::vector<Row>{
           {tan, 0.5463024898437905, 1.2984464104095248},
           {asin, 0.5235987755982989, 1.1547005383792515},
           {acos, 1.0471975511965979, -1.1547005383792515},
           {atan, 0.4636476090008061, 0.8},
           {sinh, 0.5210953054937474, 1.1276259652063807},
           {cosh, 1.1276259652063807, 0.5210953054937474},
           {asinh, 0.48121182505960347, 0.8944271909999159},
           {atanh, 0.5493061443340548, 4.0 / 3},
       }) {
    const Tensor x = tensor(0.5, {.dtype = float64, .requires_grad = true});
    const Tensor result = function(x);
    result.backward();
    EXPECT_NEAR(result.item(), y, 1e-14);
    EXPECT_NEAR(x.grad().item(), slope, 1e-14);
  }
  EXPECT_NEAR(acosh(tensor(2.0, {.dtype = float64})).item(), 1.3169578969248166, 1e-14);
}

TEST(Trigonometry, OutsideOfTheDomainIsNan) {
  EXPECT_TRUE(std::isnan(asin(tensor(1.5f)).item()));
  EXPECT_TRUE(std::isnan(acosh(tensor(0.5f)).item()));
  EXPECT_EQ(atan(tensor({1})).dtype(), float32);
}

TEST(Trigonometry, Atan2KnowsAllQuadrants) {
  const double pi = std::numbers::pi;
  const Tensor y = tensor({1.0, 1.0, -1.0, -1.0, 0.0, 0.0}, {.dtype = float64});
  const Tensor x = tensor({1.0, -1.0, -1.0, 1.0, -1.0, 1.0}, {.dtype = float64});

  expect_near(atan2(y, x), {6}, {pi / 4, 3 * pi / 4, -3 * pi / 4, -pi / 4, pi, 0});
  EXPECT_EQ(atan2(tensor({1}), tensor({2})).dtype(), float32);
  EXPECT_EQ(atan2(ones({2, 1}), ones({3})).shape(), Shape({2, 3}));
}

TEST(Trigonometry, TheGradientOfAtan2AtTheOriginIsZero) {
  const Tensor y = tensor({0.0, 1.0}, {.dtype = float64, .requires_grad = true});
  const Tensor x = tensor({0.0, 1.0}, {.dtype = float64, .requires_grad = true});

  atan2(y, x).sum().backward();

  expect_near(y.grad(), {2}, {0, 0.5});
  expect_near(x.grad(), {2}, {0, -0.5});
}

// Their squares underflow, or overflow.
TEST(Trigonometry, Atan2HasSlopesOfTinyAndLargeNumbers) {
  for (const auto& [dtype, size] : std::vector<std::pair<DType, double>>{{float16, 1e-4},
                                                                         {float16, 1e4},
                                                                         {bfloat16, 1e-25},
                                                                         {float32, 1e-25},
                                                                         {float32, 1e25},
                                                                         {float64, 1e-200}}) {
    const Tensor y = (tensor({3.0, 0.0}, kDouble) * size).to(dtype).requires_grad_();
    const Tensor x = (tensor({4.0, 2.0}, kDouble) * size).to(dtype).requires_grad_();

    atan2(y, x).backward((ones({2}, kDouble) * size).to(dtype));

    EXPECT_EQ(y.grad().dtype(), dtype);
    expect_values(y.grad(), {0.16, 0.5}, 4e-3);
    expect_values(x.grad(), {-0.12, 0}, 4e-3);
  }
}

}  // namespace
}  // namespace flow
