// The scalar formulas of ops/elementwise/compare.h.
#pragma once

#include "core/device/host_device.h"

namespace flow::ops {

struct Eq {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return a == b;
  }
};

struct Ne {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return a != b;
  }
};

struct Lt {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return a < b;
  }
};

struct Le {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return a <= b;
  }
};

struct Gt {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return a > b;
  }
};

struct Ge {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return a >= b;
  }
};

struct LogicalAnd {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return (a != T{0}) & (b != T{0});
  }
};

struct LogicalOr {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return (a != T{0}) | (b != T{0});
  }
};

struct LogicalXor {
  template <class T>
  FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return (a != T{0}) != (b != T{0});
  }
};

}  // namespace flow::ops
