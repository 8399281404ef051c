// Array forms of ops/kernel/vector.h and ops/kernel/vector_math.h for tests: vector_probe.cpp is
// compiled once for each instruction set, as kernels are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/float16.h"
#include "ops/kernel/cpu_features.h"

namespace flow::ops {

// y[i] = f(x[i]).
struct VectorFunction {
  std::string_view name;
  void (*f32)(float* y, const float* x, int64_t n);
  void (*f64)(double* y, const double* x, int64_t n);
};

// y[i] = f(a[i], b[i]); comparisons give 1 or 0.
struct VectorOperator {
  std::string_view name;
  void (*f32)(float* y, const float* a, const float* b, int64_t n);
  void (*f64)(double* y, const double* a, const double* b, int64_t n);
};

struct VectorProbe {
  int64_t num_lanes;
  std::vector<VectorFunction> functions;
  std::vector<VectorOperator> operators;
  void (*add_stream)(float* y, const float* a, const float* b, int64_t n);
  void (*to_half)(Float16* y, const float* x, int64_t n);
  void (*from_half)(float* y, const Float16* x, int64_t n);
  void (*to_bfloat)(BFloat16* y, const float* x, int64_t n);
  void (*from_bfloat)(float* y, const BFloat16* x, int64_t n);
  // Considers only the first num_lanes elements.
  float (*sum)(const float* x);
  float (*max_of)(const float* x);
  float (*min_of)(const float* x);
  // Reads the elements of x from n on as 7.
  void (*load_some)(float* y, const float* x, int64_t n);
};

FLOW_DECLARE_PER_ISA(VectorProbe make_vector_probe())

inline std::vector<VectorProbe> probes_of_this_machine() {
  const std::array variants = FLOW_ISA_VARIANTS(make_vector_probe);
  std::vector<VectorProbe> probes;
  for (size_t i = 0; i <= static_cast<size_t>(detected_isa()) && i < variants.size(); ++i) {
    if (variants[i] != nullptr) probes.push_back(variants[i]());
  }
  return probes;
}

}  // namespace flow::ops
