// Makes function objects from formulas: Of<C> is made of the attrs of a call and takes and returns
// elements of type C, the type a kernel computes in. OfAttrs adapts it to
// ops/elementwise/elementwise_loops.h.
#pragma once

#include "core/device/host_device.h"

namespace flow::ops {

// A formula without attrs: a struct with a static apply(x...).
template <class F>
struct Applied {
  template <class C>
  struct Of {
    explicit Of(const void* /*attrs*/) {}

    template <class... X>
    FLOW_HOST_DEVICE auto operator()(X... x) const {
      return F::apply(x...);
    }
  };
};

template <class Row>
concept HasAttrs = requires {
  typename Row::Attrs;
};

template <class Row>
concept HasFunctionObject = requires {
  typename Row::template Of<float>;
};

// A row that has attrs, but no function object, takes one number of them.
template <class Row>
concept HasNumber = HasAttrs<Row> && !HasFunctionObject<Row>;

// The function object of a row of ops/elementwise/row_table.h.
template <class Row>
struct RowFormula : Applied<Row> {};

template <HasNumber Row>
struct RowFormula<Row> {
  template <class C>
  struct Of {
    C number;

    explicit Of(const void* attrs)
        : number(static_cast<const typename Row::Attrs*>(attrs)->template number<C>()) {}

    template <class... X>
    FLOW_HOST_DEVICE auto operator()(X... x) const {
      return Row::apply(x..., number);
    }
  };
};

template <HasFunctionObject Row>
struct RowFormula<Row> {
  template <class C>
  using Of = typename Row::template Of<C>;
};

template <template <class> class F>
struct OfAttrs {
  template <class C>
  static auto make(const void* attrs) {
    return F<C>(attrs);
  }
};

template <class F>
using OfTensors = OfAttrs<Applied<F>::template Of>;

}  // namespace flow::ops
