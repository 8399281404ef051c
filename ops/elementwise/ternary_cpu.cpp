// Kernels of ops/elementwise/ternary.h: three reads and one write for each element.
#include <cmath>

#include "ops/elementwise/binary_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/ternary_op.h"

#include "ops/kernel/isa_begin.h"

void register_ternary_cpu(KernelTable& table);

namespace {

template <class F>
struct Addc {
  template <class C>
  static auto make(const void* attrs) {
    const C value = static_cast<C>(static_cast<const AddcAttrs*>(attrs)->value);
    return [value](C x, C a, C b) { return Add::apply(x, Mul::apply(value, F::apply(a, b))); };
  }
};

// `is_product`: with the product of a and b, else with their quotient.
template <bool is_product>
struct AddcVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto value = Vec<C>::fill(static_cast<C>(static_cast<const AddcAttrs*>(attrs)->value));
    return
        [value](Vec<C> x, Vec<C> a, Vec<C> b) { return fma(value, is_product ? a * b : a / b, x); };
  }
};

template <class C>
C lerp_element(C start, C end, C weight) {
  const C distance = end - start;
  return std::abs(weight) < C{0.5} ? start + weight * distance : end - distance * (1 - weight);
}

template <class C>
Vec<C> lerp_vector(Vec<C> start, Vec<C> end, Vec<C> weight) {
  const Vec<C> distance = end - start;
  const auto is_near = abs(weight) < Vec<C>::fill(C{0.5});
  const Vec<C> left = weight - Vec<C>::fill(C{1});
  return fma(select(is_near, weight, left), distance, select(is_near, start, end));
}

struct Lerp {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](C start, C end, C weight) { return lerp_element(start, end, weight); };
  }
};

struct LerpVector {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](Vec<C> start, Vec<C> end, Vec<C> weight) { return lerp_vector(start, end, weight); };
  }
};

struct LerpScalar {
  template <class C>
  static auto make(const void* attrs) {
    const C weight = static_cast<const ScalarAttrs*>(attrs)->value.template to<C>();
    return [weight](C start, C end) { return lerp_element(start, end, weight); };
  }
};

struct LerpScalarVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto weight =
        Vec<C>::fill(static_cast<const ScalarAttrs*>(attrs)->value.template to<C>());
    return [weight](Vec<C> start, Vec<C> end) { return lerp_vector(start, end, weight); };
  }
};

template <class F>
void add_floating_ternary(KernelTable& table, const OpDef& op) {
  add_vectors<F, Float16, Float16, Float16, Float16>(table, op);
  add_vectors<F, BFloat16, BFloat16, BFloat16, BFloat16>(table, op);
  add_vectors<F, double, double, double, double>(table, op);
  add_vectors<F, float, float, float, float>(table, op);
}

}  // namespace

void register_ternary_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  add_reference<Addc<Mul>, Types::kNumeric, 3>(table, kAddcmul);
  add_reference<Addc<Div>, Types::kFloating, 3>(table, kAddcdiv);
  add_reference<Lerp, Types::kFloating, 3>(table, kLerp);
  add_reference<LerpScalar, Types::kFloating, 2>(table, kLerpScalar);
#endif
  add_loops<Addc<Mul>, int32_t, int32_t, int32_t, int32_t>(table, kAddcmul);
  add_loops<Addc<Mul>, int64_t, int64_t, int64_t, int64_t>(table, kAddcmul);
  add_floating_ternary<AddcVector<true>>(table, kAddcmul);
  add_floating_ternary<AddcVector<false>>(table, kAddcdiv);
  add_floating_ternary<LerpVector>(table, kLerp);
  add_floating_binary<LerpScalarVector>(table, kLerpScalar);
}

#include "ops/kernel/isa_end.h"
