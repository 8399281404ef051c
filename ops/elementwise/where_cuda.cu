// CUDA kernels of ops/elementwise/where.h.
#include "ops/elementwise/formulas_cuda.cuh"
#include "ops/elementwise/where_formulas.h"
#include "ops/elementwise/where_op.h"

namespace flow::ops {

void register_where_cuda(KernelTable& table);

namespace {

template <class C>
struct Choose {
  __device__ C operator()(bool condition, C a, C b) const { return condition ? a : b; }
};

template <class C>
struct FillWhere {
  C value;

  __device__ C operator()(C x, bool mask) const { return mask ? value : x; }
};

// The upper bound wins if min > max; NaN stays NaN.
template <class C>
struct ClampOf {
  Bounds<C> bounds;

  explicit ClampOf(const void* attrs) : bounds(bounds_of<C>(attrs)) {}

  __device__ C operator()(C x) const {
    const C raised = x < bounds.min ? bounds.min : x;
    return raised > bounds.max ? bounds.max : raised;
  }
};

template <class C>
struct ClampGradOf {
  bool has_min;
  bool has_max;
  Bounds<C> bounds;

  explicit ClampGradOf(const void* attrs)
      : has_min(static_cast<const ClampAttrs*>(attrs)->min.has_value()),
        has_max(static_cast<const ClampAttrs*>(attrs)->max.has_value()),
        bounds(bounds_of<C>(attrs)) {}

  __device__ C operator()(C dy, C x) const {
    const bool is_inside = (!has_min || x > bounds.min) && (!has_max || x < bounds.max);
    return is_inside ? dy : C{0};
  }
};

template <class T>
void where(const KernelContext& ctx) {
  run_elementwise<T, bool, T, T>(ctx, Choose<DeviceCompute<T>>{});
}

template <class T>
void masked_fill(const KernelContext& ctx) {
  using C = DeviceCompute<T>;
  const C value = ctx.attrs_as<ScalarAttrs>().value.to<C>();
  run_elementwise<T, T, bool>(ctx, FillWhere<C>{value});
}

KernelChoice select_where(const KernelQuery& query) {
  KernelFn fn = nullptr;
  dispatch_all(query.output(0).dtype, [&]<class T>() { fn = where<T>; });
  return choose_elementwise(query, fn);
}

KernelChoice select_masked_fill(const KernelQuery& query) {
  KernelFn fn = nullptr;
  dispatch_all(query.output(0).dtype, [&]<class T>() { fn = masked_fill<T>; });
  return choose_elementwise(query, fn);
}

}  // namespace

void register_where_cuda(KernelTable& table) {
  table.add(kWhere, DeviceType::kCuda, {"cuda", select_where});
  table.add(kMaskedFill, DeviceType::kCuda, {"cuda", select_masked_fill});
  add_formula<ClampOf, Elements::kAll, 1>(table, kClamp);
  add_formula<ClampGradOf, Elements::kAll, 2>(table, kClampGrad);
}

}  // namespace flow::ops
