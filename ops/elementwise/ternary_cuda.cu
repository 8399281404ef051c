// CUDA kernels of ops/elementwise/ternary.h.
#include <cmath>

#include "ops/elementwise/formulas_cuda.cuh"
#include "ops/elementwise/ternary_op.h"

namespace flow::ops {

void register_ternary_cuda(KernelTable& table);

namespace {

// x + value a b; integers wrap around.
template <class C>
struct AddcmulOf {
  C value;

  explicit AddcmulOf(const void* attrs)
      : value(static_cast<C>(static_cast<const AddcAttrs*>(attrs)->value)) {}

  __device__ C operator()(C x, C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      const auto product =
          static_cast<uint64_t>(value) * static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
      return static_cast<C>(static_cast<uint64_t>(x) + product);
    } else {
      return x + value * (a * b);
    }
  }
};

template <class C>
struct AddcdivOf {
  C value;

  explicit AddcdivOf(const void* attrs)
      : value(static_cast<C>(static_cast<const AddcAttrs*>(attrs)->value)) {}

  __device__ C operator()(C x, C a, C b) const { return x + value * (a / b); }
};

template <class C>
__device__ C lerp_element(C start, C end, C weight) {
  const C distance = end - start;
  return std::abs(weight) < C{0.5} ? start + weight * distance : end - distance * (1 - weight);
}

template <class C>
struct LerpOf {
  explicit LerpOf(const void* /*attrs*/) {}

  __device__ C operator()(C start, C end, C weight) const {
    return lerp_element(start, end, weight);
  }
};

template <class C>
struct LerpScalarOf {
  C weight;

  explicit LerpScalarOf(const void* attrs)
      : weight(static_cast<const ScalarAttrs*>(attrs)->value.template to<C>()) {}

  __device__ C operator()(C start, C end) const { return lerp_element(start, end, weight); }
};

}  // namespace

void register_ternary_cuda(KernelTable& table) {
  add_formula<AddcmulOf, Elements::kNumeric, 3>(table, kAddcmul);
  add_formula<AddcdivOf, Elements::kFloating, 3>(table, kAddcdiv);
  add_formula<LerpOf, Elements::kFloating, 3>(table, kLerp);
  add_formula<LerpScalarOf, Elements::kFloating, 2>(table, kLerpScalar);
}

}  // namespace flow::ops
