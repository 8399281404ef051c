// The formulas of ops of ops/elementwise/special_op.h that CPU and CUDA kernels share.
#pragma once

#include <cstdint>

#include "core/device/host_device.h"
#include "ops/elementwise/special/gamma.h"
#include "ops/elementwise/special_op.h"

namespace flow::ops {

struct Erfinv {
  template <class T>
  FLOW_HOST_DEVICE static T apply(T x) {
    return static_cast<T>(special::erf_inverse(static_cast<double>(x)));
  }
};

template <class C>
struct PolygammaOf {
  int64_t n;

  explicit PolygammaOf(const void* attrs) : n(static_cast<const PolygammaAttrs*>(attrs)->n) {}

  FLOW_HOST_DEVICE C operator()(C x) const {
    return static_cast<C>(special::polygamma(n, static_cast<double>(x)));
  }
};

}  // namespace flow::ops
