#include "ops/special/polynomial.h"

#include "core/default_dtype.h"
#include "core/error.h"
#include "core/tensor_impl.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// (slope x + constant) p[k] - previous p[k - 1]
struct Step {
  double slope;
  double constant;
  double previous;
};

struct Family {
  const char* name;
  Step first;  // p[1], of p[0] alone
  Step (*step)(double k);
  bool is_shifted = false;
};

Step chebyshev(double /*k*/) {
  return {2, 0, 1};
}

Step hermite_h(double k) {
  return {2, 0, 2 * k};
}

Step hermite_he(double k) {
  return {1, 0, k};
}

Step laguerre(double k) {
  return {-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)};
}

Step legendre(double k) {
  return {(2 * k + 1) / (k + 1), 0, k / (k + 1)};
}

Tensor line(const Tensor& x, const Step& step) {
  const Tensor scaled = step.slope == 1 ? x : mul(x, step.slope);
  return step.constant == 0 ? scaled : add(scaled, step.constant);
}

Tensor next(const Tensor& x, const Step& step, const Tensor& p, const Tensor& before) {
  return sub(mul(line(x, step), p), step.previous == 1 ? before : mul(before, step.previous));
}

// Each degree is a step of several ops, so a huge one would never end.
constexpr int64_t kLargestDegree = 100'000;

void check_degree(const Family& family, double degree, Site site) {
  if (degree <= static_cast<double>(kLargestDegree)) return;
  throw InvalidArgument(str("[", family.name, "] degree ", degree, " is above ", kLargestDegree,
                            ", the most that the recurrence is run for; give a smaller n"),
                        site);
}

Tensor of_number(const Family& family, const Tensor& x, int64_t n, Site site) {
  check_degree(family, static_cast<double>(n), site);
  if (n < 0) return zeros_like(x);
  if (n == 0) return ones_like(x);
  Tensor before = ones_like(x), p = line(x, family.first);
  for (int64_t k = 1; k < n; ++k) {
    Tensor after = next(x, family.step(static_cast<double>(k)), p, before);
    before = std::exchange(p, std::move(after));
  }
  return p;
}

// An element whose degree is reached keeps its value, so that none overflows because another one
// has a higher degree.
Tensor of_numbers(const Family& family, const Tensor& x, const Tensor& numbers, Site site) {
  const Shape shape = broadcast_shapes(x.shape(), numbers.shape(), family.name);
  const Tensor wide = expand(x, shape);
  if (wide.numel() == 0) return zeros_like(wide);
  const Tensor n = is_floating(numbers.dtype()) ? trunc(numbers.detach()) : numbers.detach();
  if (n.impl().trace != nullptr) {
    throw Unsupported(str("[", family.name,
                          "] the number of steps depends on the degrees in a "
                          "tensor, which cannot be traced; give n as a number"),
                      site);
  }
  // A degree that is NaN has no meaning; its element stays that of degree 0.
  const auto number = amax(is_floating(n.dtype()) ? nan_to_num(n) : n).item<double>(site);
  check_degree(family, number, site);
  const auto largest = static_cast<int64_t>(number);
  Tensor before = ones_like(wide);
  Tensor p = where(ge(n, 1), line(wide, family.first), before);
  for (int64_t k = 1; k < largest; ++k) {
    Tensor after = where(gt(n, k), next(wide, family.step(static_cast<double>(k)), p, before), p);
    before = std::exchange(p, std::move(after));
  }
  return masked_fill(p, lt(n, 0), 0);
}

Tensor polynomial(const Family& family, const TensorArg& x, const PolynomialDegree& degree) {
  return ops::named(family.name, x.site(), [&]() -> Tensor {
    const Tensor& numbers = degree.numbers();
    const DType promoted = numbers.defined() ? ops::result_dtype(x, numbers) : x->dtype();
    const DType dtype = is_floating(promoted) ? promoted : default_dtype();
    const bool is_narrow = dtype != DType::kFloat32 && dtype != DType::kFloat64;
    Tensor own = cast(x, is_narrow ? DType::kFloat32 : dtype);
    if (family.is_shifted) own = sub(mul(own, 2), 1);
    const Tensor y = numbers.defined() ? of_numbers(family, own, numbers, x.site())
                                       : of_number(family, own, degree.number(), x.site());
    return cast(y, dtype);
  });
}

constexpr Step kFirstT{1, 0, 0}, kFirstU{2, 0, 0}, kFirstV{2, -1, 0}, kFirstW{2, 1, 0};
constexpr Step kFirstL{-1, 1, 0};

}  // namespace

Tensor chebyshev_polynomial_t(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"chebyshev_polynomial_t", kFirstT, chebyshev}, x, n);
}

Tensor chebyshev_polynomial_u(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"chebyshev_polynomial_u", kFirstU, chebyshev}, x, n);
}

Tensor chebyshev_polynomial_v(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"chebyshev_polynomial_v", kFirstV, chebyshev}, x, n);
}

Tensor chebyshev_polynomial_w(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"chebyshev_polynomial_w", kFirstW, chebyshev}, x, n);
}

Tensor hermite_polynomial_h(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"hermite_polynomial_h", kFirstU, hermite_h}, x, n);
}

Tensor hermite_polynomial_he(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"hermite_polynomial_he", kFirstT, hermite_he}, x, n);
}

Tensor laguerre_polynomial_l(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"laguerre_polynomial_l", kFirstL, laguerre}, x, n);
}

Tensor legendre_polynomial_p(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"legendre_polynomial_p", kFirstT, legendre}, x, n);
}

Tensor shifted_chebyshev_polynomial_t(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"shifted_chebyshev_polynomial_t", kFirstT, chebyshev, true}, x, n);
}

Tensor shifted_chebyshev_polynomial_u(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"shifted_chebyshev_polynomial_u", kFirstU, chebyshev, true}, x, n);
}

Tensor shifted_chebyshev_polynomial_v(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"shifted_chebyshev_polynomial_v", kFirstV, chebyshev, true}, x, n);
}

Tensor shifted_chebyshev_polynomial_w(const TensorArg& x, const PolynomialDegree& n) {
  return polynomial({"shifted_chebyshev_polynomial_w", kFirstW, chebyshev, true}, x, n);
}

}  // namespace flow
