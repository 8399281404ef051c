// Orthogonal polynomials.
#include "ops/special/polynomial.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

void bind_one(Bindings& table, const char* name,
              Tensor (*function)(const TensorArg&, const PolynomialDegree&)) {
  table.add(name, [function](Case& c) {
    const Tensor degrees = c.named("n");
    if (degrees.defined()) return function(c.in(0), degrees);
    return function(c.in(0), c.attrs.get<int64_t>("n"));
  });
}

}  // namespace

void bind_polynomials(Bindings& table) {
  bind_one(table, "chebyshev_polynomial_t", chebyshev_polynomial_t);
  bind_one(table, "chebyshev_polynomial_u", chebyshev_polynomial_u);
  bind_one(table, "chebyshev_polynomial_v", chebyshev_polynomial_v);
  bind_one(table, "chebyshev_polynomial_w", chebyshev_polynomial_w);
  bind_one(table, "hermite_polynomial_h", hermite_polynomial_h);
  bind_one(table, "hermite_polynomial_he", hermite_polynomial_he);
  bind_one(table, "laguerre_polynomial_l", laguerre_polynomial_l);
  bind_one(table, "legendre_polynomial_p", legendre_polynomial_p);
  bind_one(table, "shifted_chebyshev_polynomial_t", shifted_chebyshev_polynomial_t);
  bind_one(table, "shifted_chebyshev_polynomial_u", shifted_chebyshev_polynomial_u);
  bind_one(table, "shifted_chebyshev_polynomial_v", shifted_chebyshev_polynomial_v);
  bind_one(table, "shifted_chebyshev_polynomial_w", shifted_chebyshev_polynomial_w);
}

}  // namespace flow::conform
