// Kernels of ops/elementwise/activation_and_grad_op.h. They give the bits of the single ops.
#include <algorithm>

#include "ops/elementwise/activation_and_grad_op.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/unary_formulas.h"
#include "ops/elementwise/unary_rows.h"
#include "ops/kernel/strided_loop.h"
#include "ops/kernel/vector_math.h"

#include "ops/kernel/isa_begin.h"

void register_activation_and_grad_cpu(KernelTable& table);

namespace {

// The forms of one element, which the reference computes, and of a vector.
struct GeluPair {
  using Activation = Gelu;
  using Gradient = GeluGrad;

  [[gnu::always_inline]] static auto value(auto x) { return gelu_erf(x); }

  [[gnu::always_inline]] static auto gradient(auto dy, auto x) { return dy * gelu_erf_slope(x); }
};

struct GeluTanhPair {
  using Activation = GeluTanh;
  using Gradient = GeluTanhGrad;

  [[gnu::always_inline]] static auto value(auto x) { return gelu_tanh(x); }

  [[gnu::always_inline]] static auto gradient(auto dy, auto x) { return dy * gelu_tanh_slope(x); }
};

struct SiluPair {
  using Activation = Silu;
  using Gradient = SiluGrad;

  [[gnu::always_inline]] static auto value(auto x) { return silu(x); }

  [[gnu::always_inline]] static auto gradient(auto dy, auto x) {
    const auto one = decltype(x)::fill(1);
    const auto s = sigmoid(x);
    return dy * (s * fma(x, one - s, one));
  }
};

// What n elements of row-major memory become. The compiler computes what both share once.
template <class Pair, class T>
[[gnu::flatten]] void run_block(const KernelContext& ctx, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const T* dy = ctx.in(0).as<T>();
  const T* x = ctx.in(1).as<T>();
  T* dx = ctx.out(0).as<T>();
  T* y = ctx.out(1).as<T>();
  int64_t i = begin;
  for (; i + V::kLanes <= end; i += V::kLanes) {
    const V own = V::load(x + i);
    const V gradient = Pair::gradient(V::load(dy + i), own);
    Pair::value(own).store(y + i);
    gradient.store(dx + i);
  }
  if (i == end) return;
  const V own = V::load_n(x + i, end - i);
  const V gradient = Pair::gradient(V::load_n(dy + i, end - i), own);
  Pair::value(own).store_n(y + i, end - i);
  gradient.store_n(dx + i, end - i);
}

template <class Pair, class T>
void run_dense(const KernelContext& ctx) {
  ctx.pool().parallel_for(0, ctx.out(0).numel(), kElementwiseGrain,
                          [&](int64_t begin, int64_t end) { run_block<Pair, T>(ctx, begin, end); });
}

template <class Pair>
KernelChoice select_dense(const KernelQuery& query) {
  const auto is_row_major = [](const MetaPtr& meta) {
    return meta->is_contiguous && meta->blocked == nullptr;
  };
  if (!std::all_of(query.inputs.begin(), query.inputs.end(), is_row_major)) return {};
  if (query.output(0).dtype == DType::kFloat32) return {run_dense<Pair, float>};
  if (query.output(0).dtype == DType::kFloat64) return {run_dense<Pair, double>};
  return {};
}

#if FLOW_ISA == 0
// Outputs have the strides of the inputs that they overwrite. Operand 0 of the loop is output 0.
template <class Pair, class T>
void run_reference(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  using C = Compute<T>;
  parallel_stretches(ctx.pool(), state, [&](const LoopNest::Offsets& offsets, int64_t n) {
    const auto& stride = state.inner_stride();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at_dy = offsets[1] + i * stride[1], at_x = offsets[2] + i * stride[2];
      const auto dy = static_cast<C>(ctx.in(0).as<T>()[at_dy]);
      const auto x = static_cast<C>(ctx.in(1).as<T>()[at_x]);
      ctx.out(0).as<T>()[at_dy] = static_cast<T>(Pair::Gradient::apply(dy, x));
      ctx.out(1).as<T>()[at_x] = static_cast<T>(Pair::Activation::apply(x));
    }
  });
}

template <class Pair>
KernelChoice select_reference(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype, [&]<class T>() { choice.fn = run_reference<Pair, T>; });
  choice.state = share_loop_nest(query.output(0), query.inputs);
  return choice;
}
#endif

template <class Pair>
void add_pair(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  table.add(op, DeviceType::kCpu, {"reference", select_reference<Pair>});
#endif
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_dense<Pair>});
}

}  // namespace

void register_activation_and_grad_cpu(KernelTable& table) {
  add_pair<GeluPair>(table, kGeluAndGrad);
  add_pair<GeluTanhPair>(table, kGeluTanhAndGrad);
  add_pair<SiluPair>(table, kSiluAndGrad);
}

#include "ops/kernel/isa_end.h"
