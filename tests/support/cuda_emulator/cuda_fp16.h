// The conversions of half precision that flow's kernels use.
#pragma once

#include "core/float16.h"

struct __half {
  unsigned short bits;
};

inline __half __ushort_as_half(unsigned short bits) {
  return {bits};
}

inline unsigned short __half_as_ushort(__half value) {
  return value.bits;
}

inline float __half2float(__half value) {
  return flow::Float16::to_float(value.bits);
}

inline __half __float2half_rn(float value) {
  return {flow::Float16::from_float(value)};
}
