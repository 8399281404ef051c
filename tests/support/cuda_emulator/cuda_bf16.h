// The conversions of bfloat16 that flow's kernels use.
#pragma once

#include "core/float16.h"

struct __nv_bfloat16 {
  unsigned short bits;
};

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return {bits};
}

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
  return value.bits;
}

inline float __bfloat162float(__nv_bfloat16 value) {
  flow::BFloat16 element;
  element.bits = value.bits;
  return static_cast<float>(element);
}

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return {flow::BFloat16::from_float(value)};
}
