// Kernels of ops/elementwise/activation_and_grad_op.h. They give the bits of the single ops.
#include <algorithm>
#include <utility>

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

  [[gnu::always_inline]] static auto slope(auto x) { return gelu_erf_slope(x); }
};

struct GeluTanhPair {
  using Activation = GeluTanh;
  using Gradient = GeluTanhGrad;

  [[gnu::always_inline]] static auto value(auto x) { return gelu_tanh(x); }

  [[gnu::always_inline]] static auto slope(auto x) { return gelu_tanh_slope(x); }
};

struct SiluPair {
  using Activation = Silu;
  using Gradient = SiluGrad;

  [[gnu::always_inline]] static auto value(auto x) { return silu(x); }

  [[gnu::always_inline]] static auto slope(auto x) {
    const auto one = decltype(x)::fill(1);
    const auto s = sigmoid(x);
    return s * fma(x, one - s, one);
  }
};

// What is computed of an activation, for the vector forms and, of one element, for the reference.
struct WithGrad {  // (dy, x) -> dx, y

  template <class Pair>
  [[gnu::always_inline]] static auto results(auto dy, auto x) {
    return std::pair(dy * Pair::slope(x), Pair::value(x));
  }

  template <class Pair, class C>
  static std::pair<C, C> element(C dy, C x) {
    return {Pair::Gradient::apply(dy, x), Pair::Activation::apply(x)};
  }
};

struct WithSlope {  // (x, y) -> slope, y

  template <class Pair>
  [[gnu::always_inline]] static auto results(auto x, auto /*y*/) {
    return std::pair(Pair::slope(x), Pair::value(x));
  }

  template <class Pair, class C>
  static std::pair<C, C> element(C x, C /*y*/) {
    return {Pair::Gradient::apply(C{1}, x), Pair::Activation::apply(x)};
  }
};

// Elements [begin, end) of row-major memory. The compiler computes what both results share once.
template <class Form, class Pair, class T>
[[gnu::flatten]] void run_block(const KernelContext& ctx, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const T* first = ctx.in(0).as<T>();
  const T* second = ctx.in(1).as<T>();
  T* to_first = ctx.out(0).as<T>();
  T* to_second = ctx.out(1).as<T>();
  int64_t i = begin;
  for (; i + V::kLanes <= end; i += V::kLanes) {
    const auto results = Form::template results<Pair>(V::load(first + i), V::load(second + i));
    results.second.store(to_second + i);
    results.first.store(to_first + i);
  }
  if (i == end) return;
  const int64_t left = end - i;
  const auto results =
      Form::template results<Pair>(V::load_n(first + i, left), V::load_n(second + i, left));
  results.second.store_n(to_second + i, left);
  results.first.store_n(to_first + i, left);
}

template <class Form, class Pair, class T>
void run_dense(const KernelContext& ctx) {
  ctx.pool().parallel_for(
      0, ctx.out(0).numel(), kElementwiseGrain,
      [&](int64_t begin, int64_t end) { run_block<Form, Pair, T>(ctx, begin, end); });
}

template <class Form, class Pair>
KernelChoice select_dense(const KernelQuery& query) {
  const auto is_row_major = [](const MetaPtr& meta) {
    return meta->is_contiguous && meta->blocked == nullptr;
  };
  if (!std::all_of(query.inputs.begin(), query.inputs.end(), is_row_major)) return {};
  if (query.output(0).dtype == DType::kFloat32) return {run_dense<Form, Pair, float>};
  if (query.output(0).dtype == DType::kFloat64) return {run_dense<Form, Pair, double>};
  return {};
}

#if FLOW_ISA == 0
// Outputs have the strides of the inputs that they overwrite. Operand 0 of the loop is output 0.
template <class Form, class Pair, class T>
void run_reference(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  using C = Compute<T>;
  parallel_stretches(ctx.pool(), state, [&](const LoopNest::Offsets& offsets, int64_t n) {
    const auto& stride = state.inner_stride();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at_first = offsets[1] + i * stride[1], at_second = offsets[2] + i * stride[2];
      const auto [to_first, to_second] =
          Form::template element<Pair, C>(static_cast<C>(ctx.in(0).as<T>()[at_first]),
                                          static_cast<C>(ctx.in(1).as<T>()[at_second]));
      ctx.out(0).as<T>()[at_first] = static_cast<T>(to_first);
      ctx.out(1).as<T>()[at_second] = static_cast<T>(to_second);
    }
  });
}

template <class Form, class Pair>
KernelChoice select_reference(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype,
                    [&]<class T>() { choice.fn = run_reference<Form, Pair, T>; });
  choice.state = share_loop_nest(query.output(0), query.inputs);
  return choice;
}
#endif

template <class Form, class Pair>
void add_form(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  table.add(op, DeviceType::kCpu, {"reference", select_reference<Form, Pair>});
#endif
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_dense<Form, Pair>});
}

template <class Pair>
void add_pair(KernelTable& table, const OpDef& with_grad, const OpDef& with_slope) {
  add_form<WithGrad, Pair>(table, with_grad);
  add_form<WithSlope, Pair>(table, with_slope);
}

}  // namespace

void register_activation_and_grad_cpu(KernelTable& table) {
  add_pair<GeluPair>(table, kGeluAndGrad, kGeluAndSlope);
  add_pair<GeluTanhPair>(table, kGeluTanhAndGrad, kGeluTanhAndSlope);
  add_pair<SiluPair>(table, kSiluAndGrad, kSiluAndSlope);
}

#include "ops/kernel/isa_end.h"
