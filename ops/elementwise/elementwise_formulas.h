// Makes the formulas of ops/elementwise/elementwise_loops.h from functions of elements: a struct
// with apply(a, b) or apply(x), taking and returning the type a kernel computes in.
#pragma once

#include "ops/promotion.h"

namespace flow::ops {

template <class F>
struct OfTensor {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](C x) { return F::apply(x); };
  }
};

// F<C> is a function object that is made of the call's attrs, for one or more elements of type C.
template <template <class> class F>
struct OfAttrs {
  template <class C>
  static auto make(const void* attrs) {
    return F<C>(attrs);
  }
};

template <class F>
struct OfTensors {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](C a, C b) { return F::apply(a, b); };
  }
};

// The scalar on the right of F, or on its left.
template <class F>
struct WithScalar {
  template <class C>
  static auto make(const void* attrs) {
    const C s = static_cast<const ScalarAttrs*>(attrs)->value.template to<C>();
    return [s](C a) { return F::apply(a, s); };
  }
};

template <class F>
struct OfScalar {
  template <class C>
  static auto make(const void* attrs) {
    const C s = static_cast<const ScalarAttrs*>(attrs)->value.template to<C>();
    return [s](C a) { return F::apply(s, a); };
  }
};

}  // namespace flow::ops
