// Elementwise losses on the CPU. The unreduced loss and all gradients are elementwise kernels; a
// reduced loss is computed in blocks that stay in L1 and added up in double, 16384 elements at a
// time, so that the result does not depend on the number of threads.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/strided_loop.h"
#include "ops/kernel/vector.h"
#include "ops/kernel/vector_math.h"
#include "ops/local_parts.h"
#include "ops/loss/loss_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

// Each loss: value(x, t, p) and slope(x, t, p) = d value / dx of one element, p its parameter.

struct Mse {
  template <class C>
  static C value(C x, C t, C /*p*/) {
    return (x - t) * (x - t);
  }

  template <class C>
  static C slope(C x, C t, C /*p*/) {
    return C{2} * (x - t);
  }
};

// The sign of d; NaN stays NaN.
template <class C>
C sign_of(C d) {
  return d > C{0} ? C{1} : d < C{0} ? C{-1} : d;
}

struct L1 {
  template <class C>
  static C value(C x, C t, C /*p*/) {
    return std::abs(x - t);
  }

  template <class C>
  static C slope(C x, C t, C /*p*/) {
    return C(x > t) - C(x < t);  // 0 where either is NaN, as PyTorch
  }
};

template <class C>
Vec<C> sign_of(Vec<C> d) {
  const Vec<C> zero = Vec<C>::zero();
  return select(d > zero, Vec<C>::fill(1), select(d < zero, Vec<C>::fill(-1), d));
}

// The next two have vector forms because compilers turn their conditions into jumps, which depend
// on the data: for AVX2 they took 20 times longer.
struct SmoothL1 {
  template <class C>
  static C value(C x, C t, C beta) {
    const C d = std::abs(x - t);
    return d < beta ? C(0.5) * d * d / beta : d - C(0.5) * beta;
  }

  template <class C>
  static C slope(C x, C t, C beta) {
    const C d = x - t;
    return std::abs(d) < beta ? d / beta : sign_of(d);
  }

  template <class C>
  static Vec<C> vector_value(Vec<C> x, Vec<C> t, C beta) {
    const Vec<C> d = abs(x - t);
    const Vec<C> limit = Vec<C>::fill(beta);
    const Vec<C> half = Vec<C>::fill(C(0.5));
    return select(d < limit, half * d * d / limit, d - half * limit);
  }

  template <class C>
  static Vec<C> vector_slope(Vec<C> x, Vec<C> t, C beta) {
    const Vec<C> d = x - t;
    const Vec<C> limit = Vec<C>::fill(beta);
    return select(abs(d) < limit, d / limit, sign_of(d));
  }
};

struct Huber {
  template <class C>
  static C value(C x, C t, C delta) {
    const C d = std::abs(x - t);
    return d <= delta ? C(0.5) * d * d : delta * (d - C(0.5) * delta);
  }

  template <class C>
  static C slope(C x, C t, C delta) {
    const C d = x - t;
    return std::abs(d) <= delta ? d : delta * sign_of(d);
  }

  template <class C>
  static Vec<C> vector_value(Vec<C> x, Vec<C> t, C delta) {
    const Vec<C> d = abs(x - t);
    const Vec<C> limit = Vec<C>::fill(delta);
    const Vec<C> half = Vec<C>::fill(C(0.5));
    return select(d <= limit, half * d * d, limit * (d - half * limit));
  }

  template <class C>
  static Vec<C> vector_slope(Vec<C> x, Vec<C> t, C delta) {
    const Vec<C> d = x - t;
    const Vec<C> limit = Vec<C>::fill(delta);
    return select(abs(d) <= limit, d, limit * sign_of(d));
  }
};

[[noreturn, gnu::noinline]] void refuse_probability() {
  throw InvalidArgument(
      "[binary_cross_entropy] some element of the input or the target is not between 0 and 1; give "
      "probabilities, or use binary_cross_entropy_with_logits");
}

// As in PyTorch, logarithms are at least -100 and denominators at least the float32 next to 1e-12.
struct Bce {
  template <class C>
  static C value(C x, C t, C /*p*/) {
    constexpr C kLowest = -100;
    const bool is_fit = x >= C{0} && x <= C{1} && t >= C{0} && t <= C{1};  // false for NaN
    if (!is_fit) refuse_probability();
    return (t - C{1}) * std::max(std::log1p(-x), kLowest) - t * std::max(std::log(x), kLowest);
  }

  template <class C>
  static C slope(C x, C t, C /*p*/) {
    constexpr C kLeast = C(1e-12F);
    const C v = (C{1} - x) * x;
    return (x - t) / (v < kLeast ? kLeast : v);
  }

  template <class C>
  static Vec<C> vector_value(Vec<C> x, Vec<C> t, C /*p*/) {
    const Vec<C> lowest = Vec<C>::fill(-100);
    const Vec<C> none = Vec<C>::zero();
    const Vec<C> one = Vec<C>::fill(1);
    if (!all((x >= none) & (x <= one) & (t >= none) & (t <= one))) refuse_probability();
    return (t - Vec<C>::fill(1)) * max(lowest, log1p(-x)) - t * max(lowest, log(x));
  }
};

struct BceWithLogits {
  template <class C>
  static C value(C x, C t, C /*p*/) {
    return (x > C{0} ? x : C{0}) - x * t + std::log1p(std::exp(-std::abs(x)));
  }

  template <class C>
  static C slope(C x, C t, C /*p*/) {
    return C{1} / (C{1} + std::exp(-x)) - t;
  }

  template <class C>
  static Vec<C> vector_value(Vec<C> x, Vec<C> t, C /*p*/) {
    return softplus(x) - x * t;
  }

  template <class C>
  static Vec<C> vector_slope(Vec<C> x, Vec<C> t, C /*p*/) {
    return sigmoid(x) - t;
  }
};

const LossAttrs& loss_attrs(const void* attrs) {
  return *static_cast<const LossAttrs*>(attrs);
}

template <class C>
C parameter_of(const void* attrs) {
  return static_cast<C>(loss_attrs(attrs).parameter);
}

template <class C>
C scale_of(const void* attrs) {
  return static_cast<C>(1.0 / static_cast<double>(loss_attrs(attrs).count));
}

// The formulas of ops/elementwise/elementwise_loops.h.
template <class L>
struct ScalarValue {
  template <class C>
  static auto make(const void* attrs) {
    return [p = parameter_of<C>(attrs)](C x, C t) { return L::value(x, t, p); };
  }
};

template <class L>
struct VectorValue {
  template <class C>
  static auto make(const void* attrs) {
    return [p = parameter_of<C>(attrs)](Vec<C> x, Vec<C> t) { return L::vector_value(x, t, p); };
  }
};

template <class L>
struct ScalarSlope {
  template <class C>
  static auto make(const void* attrs) {
    return [p = parameter_of<C>(attrs), scale = scale_of<C>(attrs)](C dy, C x, C t) {
      return dy * scale * L::slope(x, t, p);
    };
  }
};

template <class L>
struct VectorSlope {
  template <class C>
  static auto make(const void* attrs) {
    return [p = parameter_of<C>(attrs), scale = Vec<C>::fill(scale_of<C>(attrs))](
               Vec<C> dy, Vec<C> x, Vec<C> t) { return dy * scale * L::vector_slope(x, t, p); };
  }
};

// ---- reduced losses

using ValueFn = double (*)(double x, double t, double parameter);

struct ReductionState {
  LoopNest loop;
  BlockFn block = nullptr;  // losses as Compute<T>; the fast kernels
  ValueFn value = nullptr;  // the reference
};

std::shared_ptr<const ReductionState> prepare_reduction(const KernelQuery& query, BlockFn block,
                                                        ValueFn value) {
  // The output is a scalar, so the loop follows the order of x's memory.
  return std::make_shared<const ReductionState>(
      ReductionState{make_loop_nest(query.input(0), query.inputs.first(2)), block, value});
}

template <class T>
void store_result(const KernelContext& ctx, double total) {
  const double mean = total / static_cast<double>(ctx.attrs_as<LossAttrs>().count);
  *ctx.out(0).as<T>() = static_cast<T>(static_cast<Compute<T>>(mean));
}

#if FLOW_ISA == 0

template <class T>
void reduce_plainly(const KernelContext& ctx) {
  const LoopNest& state = ctx.state_as<ReductionState>().loop;
  const ValueFn value = ctx.state_as<ReductionState>().value;
  const LoopNest::Offsets& stride = state.inner_stride();
  const auto parameter = ctx.attrs_as<LossAttrs>().parameter;
  double total = 0;
  for_rows(state, 0, state.rows, [&](const LoopNest::Offsets& offsets) {
    const T* x = ctx.in(0).as<T>() + offsets[1];
    const T* t = ctx.in(1).as<T>() + offsets[2];
    for (int64_t i = 0; i < state.inner; ++i) {
      total += value(static_cast<double>(static_cast<Compute<T>>(x[i * stride[1]])),
                     static_cast<double>(static_cast<Compute<T>>(t[i * stride[2]])), parameter);
    }
  });
  store_result<T>(ctx, total);
}

template <class L>
KernelChoice select_loss_reference(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  if (!query.attrs_as<LossAttrs>().reduces) {
    return select_reference<ScalarValue<L>, Types::kFloating, 2>(query);
  }
  KernelChoice choice{nullptr, prepare_reduction(query, nullptr, L::template value<double>)};
  dispatch_floating(query.input(0).dtype, [&]<class T>() { choice.fn = reduce_plainly<T>; });
  return choice;
}

#endif

constexpr int64_t kBlock = 512;

// `x` itself at stride 1, else its n elements in `buffer`.
template <class T>
const T* gather(const T* x, int64_t stride, int64_t n, T* buffer) {
  if (stride == 1) return x;
  for (int64_t i = 0; i < n; ++i)
    buffer[i] = x[i * stride];
  return buffer;
}

template <class T>
const std::byte* as_bytes(const T* x) {
  return reinterpret_cast<const std::byte*>(x);
}

// The sum of the losses of n elements.
template <class T>
double sum_stretch(const KernelContext& ctx, const LoopNest::Offsets& offsets, int64_t n) {
  using C = Compute<T>;
  const auto& state = ctx.state_as<ReductionState>();
  const LoopNest::Offsets& stride = state.loop.inner_stride();
  const T* x = ctx.in(0).as<T>() + offsets[1];
  const T* t = ctx.in(1).as<T>() + offsets[2];
  alignas(64) C losses[kBlock];
  alignas(64) T x_buffer[kBlock];
  alignas(64) T t_buffer[kBlock];
  double total = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    const std::array operands{
        as_bytes(gather(x + i * stride[1], stride[1], count, x_buffer)),
        as_bytes(gather(t + i * stride[2], stride[2], count, t_buffer)),
    };
    state.block(ctx.attrs, reinterpret_cast<std::byte*>(losses), count, operands.data());
    total += static_cast<double>(row_sum<C>(count, [&](auto at) { return at.get(losses); }));
  }
  return total;
}

template <class T>
void reduce_blocks(const KernelContext& ctx) {
  const LoopNest& state = ctx.state_as<ReductionState>().loop;
  double total = 0;
  if (state.rows != 1) {
    for_rows(state, 0, state.rows, [&](const LoopNest::Offsets& offsets) {
      total += sum_stretch<T>(ctx, offsets, state.inner);
    });
  } else {
    const int64_t parts = (state.inner + kElementwiseGrain - 1) / kElementwiseGrain;
    std::vector<double> partial(static_cast<size_t>(parts));
    ctx.pool().parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = part * kElementwiseGrain;
        LoopNest::Offsets offsets = state.inner_stride();
        for (int64_t& offset : offsets)
          offset *= first;
        partial[static_cast<size_t>(part)] =
            sum_stretch<T>(ctx, offsets, std::min(kElementwiseGrain, state.inner - first));
      }
    });
    for (const double part : partial)
      total += part;
  }
  store_result<T>(ctx, total);
}

template <class Block>
KernelChoice select_loss(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.input(0).dtype, [&]<class T>() {
    if (query.attrs_as<LossAttrs>().reduces) {
      const BlockFn block = Kernel<Block, Compute<T>, T, T>::block;
      choice = {reduce_blocks<T>, prepare_reduction(query, block, nullptr)};
    } else {
      choice = select_elementwise<Block, T, T, T>(query);
    }
  });
  return choice;
}

template <class Block>
KernelChoice select_slope(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype,
                    [&]<class T>() { choice = select_elementwise<Block, T, T, T, T>(query); });
  return choice;
}

template <class L, class ValueBlock, class SlopeBlock>
void add_loss(KernelTable& table, const OpDef& loss, const OpDef& backward) {
#if FLOW_ISA == 0
  table.add(loss, DeviceType::kCpu, {"reference", select_loss_reference<L>});
  add_reference<ScalarSlope<L>, Types::kFloating, 3>(table, backward);
#endif
  table.add(loss, DeviceType::kCpu, {FLOW_ISA_NAME, select_loss<ValueBlock>});
  table.add(backward, DeviceType::kCpu, {FLOW_ISA_NAME, select_slope<SlopeBlock>});
}

template <class L>
void add_plain_loss(KernelTable& table, const OpDef& loss, const OpDef& backward) {
  add_loss<L, LoopBlock<ScalarValue<L>>, LoopBlock<ScalarSlope<L>>>(table, loss, backward);
}

template <class L>
void add_vector_loss(KernelTable& table, const OpDef& loss, const OpDef& backward) {
  add_loss<L, VectorBlock<VectorValue<L>>, VectorBlock<VectorSlope<L>>>(table, loss, backward);
}

}  // namespace

void register_loss_cpu(KernelTable& table);

void register_loss_cpu(KernelTable& table) {
  add_plain_loss<Mse>(table, kMseLoss, kMseLossBackward);
  add_plain_loss<L1>(table, kL1Loss, kL1LossBackward);
  add_vector_loss<SmoothL1>(table, kSmoothL1Loss, kSmoothL1LossBackward);
  add_vector_loss<Huber>(table, kHuberLoss, kHuberLossBackward);
  add_loss<Bce, VectorBlock<VectorValue<Bce>>, LoopBlock<ScalarSlope<Bce>>>(table, kBceLoss,
                                                                            kBceLossBackward);
  add_vector_loss<BceWithLogits>(table, kBceWithLogitsLoss, kBceWithLogitsLossBackward);
}

#include "ops/kernel/isa_end.h"
