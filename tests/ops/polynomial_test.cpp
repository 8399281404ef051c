// Facts of orthogonal polynomials beyond the golden cases: the first degrees, degrees in a tensor.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "nn/flow.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

const TensorOptions kDouble{.dtype = DType::kFloat64};

TEST(Polynomials, HaveTheirFirstDegrees) {
  const Tensor x = tensor({-2.0, 0.5, 1.0}, kDouble);

  EXPECT_LT(distance(chebyshev_polynomial_t(x, 3), 4 * x * x * x - 3 * x), 1e-14);
  EXPECT_LT(distance(hermite_polynomial_h(x, 2), 4 * x * x - 2), 1e-14);
  EXPECT_LT(distance(hermite_polynomial_he(x, 3), x * x * x - 3 * x), 1e-14);
  EXPECT_LT(distance(laguerre_polynomial_l(x, 2), (x * x - 4 * x + 2) / 2), 1e-14);
  EXPECT_LT(distance(legendre_polynomial_p(x, 2), (3 * x * x - 1) / 2), 1e-14);
  EXPECT_LT(distance(shifted_chebyshev_polynomial_u(x, 1), 4 * x - 2), 1e-14);
  EXPECT_EQ(chebyshev_polynomial_v(x, -1).to_vector<double>(), (Doubles{0, 0, 0}));
  EXPECT_EQ(chebyshev_polynomial_w(tensor({1, 2}), 1).dtype(), float32);
}

TEST(Polynomials, TakeOneDegreeForEachElement) {
  const Tensor x = tensor({0.5, 0.5, 0.5, 0.5}, kDouble).requires_grad_();
  const Tensor n = tensor({0, 1, 2, -1});

  const Tensor y = chebyshev_polynomial_t(x, n);
  y.sum().backward();

  EXPECT_EQ(y.to_vector<double>(), (Doubles{1, 0.5, -0.5, 0}));
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 1, 2, 0}));
}

TEST(Polynomials, PromoteTheDtypesOfElementsAndDegrees) {
  const Tensor x = tensor({0.5F, 1.0F}), n = tensor({2, 3});

  EXPECT_EQ(chebyshev_polynomial_t(x, n).dtype(), float32);
  EXPECT_EQ(chebyshev_polynomial_t(x, n.to(float64)).dtype(), float64);
  EXPECT_EQ(chebyshev_polynomial_t(x.to(float16), n.to(bfloat16)).dtype(), float32);
  EXPECT_EQ(chebyshev_polynomial_t(n, n).dtype(), float32);
  EXPECT_EQ(chebyshev_polynomial_t(n, n.to(float64)).dtype(), float64);
  EXPECT_EQ(chebyshev_polynomial_t(x, tensor(2.0, kDouble)).dtype(), float32) << "has no dims";
}

TEST(Polynomials, OfAHighDegreeLeaveOthersFinite) {
  const Tensor x = full({2}, 50.F).requires_grad_();

  const Tensor y = hermite_polynomial_h(x, tensor({2, 60}));
  narrow(y, 0, 0, 1).sum().backward();

  EXPECT_EQ(y.to_vector<double>()[0], 9998);
  EXPECT_FALSE(std::isfinite(y.to_vector<double>()[1]));
  EXPECT_EQ(x.grad().to_vector<double>()[0], 400);
}

// Each degree is a step, so that a call with a huge one would not end.
TEST(Polynomials, RefuseHugeDegrees) {
  const Tensor x = tensor({0.5, 0.5}, kDouble);

  EXPECT_THROW(hermite_polynomial_h(x, int64_t{1} << 40), InvalidArgument);
  EXPECT_THROW(hermite_polynomial_h(x, tensor(std::vector<int64_t>{3, int64_t{1} << 40})),
               InvalidArgument);
  EXPECT_THROW(legendre_polynomial_p(x, tensor({1.0, HUGE_VAL}, kDouble)), InvalidArgument);
}

}  // namespace
}  // namespace flow
