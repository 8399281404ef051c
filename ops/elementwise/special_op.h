// Definitions of the ops of ops/elementwise/special.h that have one input.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// n = 0 is digamma.
struct PolygammaAttrs {
  int64_t n = 0;

  static constexpr auto fields() { return std::tuple(key_field("n", &PolygammaAttrs::n)); }
};

// How many binary digits the dtype of a nextafter has.
struct NextafterAttrs {
  int64_t digits = 0;

  template <class C>
  C number() const {
    return static_cast<C>(digits);
  }

  static constexpr auto fields() {
    return std::tuple(key_field("digits", &NextafterAttrs::digits));
  }
};

// The exponent of frexp, in the dtype of x.
Tensor frexp_exponent(const TensorArg& x);

// How often an event of a Poisson process with this rate, or of `count` events with probability p
// each, happened, by a uniform u in [0, 1). Broadcasts; floating, of one dtype.
Tensor poisson_count(const TensorArg& rate, const TensorArg& u);
Tensor binomial_count(const TensorArg& count, const TensorArg& p, const TensorArg& u);

extern const OpDef kLgamma, kPolygamma, kErfinv;

}  // namespace flow::ops
