// The kernels batch_norm is made of. Sums over a channel are taken in double throughout: the
// variance is a small difference of them where a mean is large.

#include <algorithm>
#include <memory>
#include <type_traits>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/batch_norm_op.h"
#include "ops/local_parts.h"
#include "ops/row_loops.h"
#include "ops/vector.h"

#include "ops/isa_begin.h"

namespace {

template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, float, T>;

// x as (outer, channels, inner).
struct ChannelPlan {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
};

std::shared_ptr<const ChannelPlan> plan_channels(const TensorMeta& x) {
  ChannelPlan plan{.outer = x.local_shape[0], .channels = x.local_shape[1]};
  for (int64_t d = 2; d < x.local_shape.size(); ++d)
    plan.inner *= x.local_shape[d];
  return std::make_shared<const ChannelPlan>(plan);
}

#if FLOW_ISA == 0

// Calls fn(channel, offsets) for every element of x, row-major; offsets into the first tensors.
template <class Fn>
void for_elements(std::span<const TensorView> tensors, const Fn& fn) {
  const Shape& shape = tensors[0].shape();
  std::array<int64_t, 2> at{};
  for (int64_t i = 0; i < tensors[0].numel(); ++i) {
    int64_t channel = 0;
    at.fill(0);
    int64_t rest = i;
    for (int64_t d = shape.size() - 1; d >= 0; --d) {
      const int64_t index = rest % shape[d];
      rest /= shape[d];
      if (d == 1) channel = index;
      for (size_t k = 0; k < tensors.size(); ++k)
        at[k] += index * tensors[k].strides()[d];
    }
    fn(channel, i, at);
  }
}

template <class T>
void affine_plainly(const KernelContext& ctx) {
  using C = Wide<T>;
  const C* scale = ctx.in(1).as<C>();
  const C* shift = ctx.has_input(2) ? ctx.in(2).as<C>() : nullptr;
  const int64_t scale_stride = ctx.in(1).strides()[0];
  const int64_t shift_stride = shift != nullptr ? ctx.in(2).strides()[0] : 0;
  for_elements(ctx.inputs.first(1), [&](int64_t c, int64_t i, const auto& at) {
    C y = static_cast<C>(ctx.in(0).as<T>()[at[0]]) * scale[c * scale_stride];
    if (shift != nullptr) y += shift[c * shift_stride];
    ctx.out(0).as<T>()[i] = static_cast<T>(y);
  });
}

// Input 0 with itself, or with input 1.
template <class T>
void sums_plainly(const KernelContext& ctx) {
  const int64_t channels = ctx.in(0).shape()[1];
  double* sums = ctx.out(0).as<double>();
  std::fill_n(sums, 2 * channels, 0.0);
  const size_t last = ctx.inputs.size() - 1;
  for_elements(ctx.inputs, [&](int64_t c, int64_t /*i*/, const auto& at) {
    const auto a = static_cast<double>(static_cast<Wide<T>>(ctx.in(0).as<T>()[at[0]]));
    const auto b = static_cast<double>(static_cast<Wide<T>>(ctx.inputs[last].as<T>()[at[last]]));
    sums[c] += a * b;
    sums[channels + c] += a;
  });
}

void run_moments(const KernelContext& ctx) {
  const Strides& strides = ctx.in(0).strides();
  const double* sums = ctx.in(0).as<double>();
  double* moments = ctx.out(0).as<double>();
  const int64_t channels = ctx.in(0).shape()[1];
  const auto count = static_cast<double>(ctx.attrs_as<MomentsAttrs>().count);
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = sums[strides[0] + c * strides[1]] / count;
    moments[c] = mean;
    moments[channels + c] = std::max(0.0, sums[c * strides[1]] / count - mean * mean);
  }
}

// running = (1 - momentum) running + momentum new
template <class T>
void blend(const TensorView& running, const double* moment, int64_t stride, double momentum,
           double factor) {
  for (int64_t c = 0; c < running.shape()[0]; ++c) {
    T& value = running.as<T>()[c * running.strides()[0]];
    const auto old = static_cast<double>(static_cast<Wide<T>>(value));
    const double fresh = moment[c * stride] * factor;
    value = static_cast<T>(static_cast<Wide<T>>(old + momentum * (fresh - old)));
  }
}

void run_update(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<RunningStatsAttrs>();
  const Strides& strides = ctx.in(2).strides();
  const double* moments = ctx.in(2).as<double>();
  for (const int i : {0, 1}) {
    dispatch_floating(ctx.in(i).meta->dtype, [&]<class T>() {
      blend<T>(ctx.in(i), moments + i * strides[0], strides[1], attrs.momentum,
               i == 0 ? 1.0 : attrs.unbias);
    });
  }
}

template <KernelFn kFn>
KernelChoice select_plain(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return {kFn, nullptr};
}

KernelChoice select_affine_reference(const KernelQuery& query) {
  KernelChoice choice;
  if (!parts_fit(query)) return choice;
  dispatch_floating(query.input(0).dtype, [&]<class T>() { choice.fn = affine_plainly<T>; });
  return choice;
}

KernelChoice select_sums_reference(const KernelQuery& query) {
  KernelChoice choice;
  if (!parts_fit(query)) return choice;
  dispatch_floating(query.input(0).dtype, [&]<class T>() { choice.fn = sums_plainly<T>; });
  return choice;
}

#endif

constexpr int64_t kGrainElements = 16384;

template <class T, bool kShift>
void run_affine(const KernelContext& ctx) {
  using C = Wide<T>;
  using V = Vec<C>;
  const auto& plan = ctx.plan_as<ChannelPlan>();
  const T* x = ctx.in(0).as<T>();
  const C* scale = ctx.in(1).as<C>();
  const C* shift = kShift ? ctx.in(2).as<C>() : nullptr;
  T* y = ctx.out(0).as<T>();
  // Rows of one channel, or of all channels when nothing lies behind them.
  const int64_t length = plan.inner > 1 ? plan.inner : plan.channels;
  const int64_t rows = plan.inner > 1 ? plan.outer * plan.channels : plan.outer;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, length));
  ctx.pool().parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* source = x + row * length;
      T* target = y + row * length;
      if (plan.inner > 1) {
        const V factor = V::fill(scale[row % plan.channels]);
        const V term = V::fill(kShift ? shift[row % plan.channels] : C{0});
        for_row<C>(length, [&](auto at) { at.put(target, fma(at.get(source), factor, term)); });
      } else {
        for_row<C>(length, [&](auto at) {
          const V product = at.get(source) * at.get(scale);
          at.put(target, kShift ? product + at.get(shift) : product);
        });
      }
    }
  });
}

// (sum(a b), sum(a)) of n elements.
template <class T>
Sums<double, 2> sum_pair(const T* a, const T* b, int64_t n) {
  using V = Vec<double>;
  using Pair = Sums<double, 2>;
  const auto lanes = row_sum_lanes<Wide<T>>(n, [&](auto at) {
    const auto u = at.get(a);
    const auto v = at.get(b);
    if constexpr (std::is_same_v<Wide<T>, float>) {
      const V low = widen_low(u);
      const V high = widen_high(u);
      return Pair{{fma(low, widen_low(v), high * widen_high(v)), low + high}};
    } else {
      return Pair{{u * v, u}};
    }
  });
  return lanes;
}

template <class T>
void run_sums(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<ChannelPlan>();
  const T* a = ctx.in(0).as<T>();
  const T* b = ctx.inputs[ctx.inputs.size() - 1].as<T>();
  double* sums = ctx.out(0).as<double>();
  const int64_t per_channel = std::max<int64_t>(1, plan.outer * plan.inner);
  const int64_t grain = std::max<int64_t>(1, kGrainElements / per_channel);
  ctx.pool().parallel_for(0, plan.channels, grain, [&](int64_t begin, int64_t end) {
    if (plan.inner == 1) {
      std::fill(sums + begin, sums + end, 0.0);
      std::fill(sums + plan.channels + begin, sums + plan.channels + end, 0.0);
      for (int64_t n = 0; n < plan.outer; ++n) {
        for (int64_t c = begin; c < end; ++c) {
          const auto u = static_cast<double>(static_cast<Wide<T>>(a[n * plan.channels + c]));
          const auto v = static_cast<double>(static_cast<Wide<T>>(b[n * plan.channels + c]));
          sums[c] += u * v;
          sums[plan.channels + c] += u;
        }
      }
      return;
    }
    for (int64_t c = begin; c < end; ++c) {
      auto total = Sums<double, 2>::zero();
      for (int64_t n = 0; n < plan.outer; ++n) {
        const int64_t at = (n * plan.channels + c) * plan.inner;
        total = total + sum_pair(a + at, b + at, plan.inner);
      }
      sums[c] = sum(total.term[0]);
      sums[plan.channels + c] = sum(total.term[1]);
    }
  });
}

bool all_contiguous(const KernelQuery& query) {
  return std::all_of(query.inputs.begin(), query.inputs.end(),
                     [](MetaPtr meta) { return meta == nullptr || meta->is_contiguous; });
}

KernelChoice select_affine(const KernelQuery& query) {
  if (!all_contiguous(query)) return {};
  KernelChoice choice{nullptr, plan_channels(query.input(0))};
  dispatch_floating(query.input(0).dtype, [&]<class T>() {
    choice.fn = query.has_input(2) ? run_affine<T, true> : run_affine<T, false>;
  });
  return choice;
}

KernelChoice select_sums(const KernelQuery& query) {
  if (!all_contiguous(query)) return {};
  KernelChoice choice{nullptr, plan_channels(query.input(0))};
  dispatch_floating(query.input(0).dtype, [&]<class T>() { choice.fn = run_sums<T>; });
  return choice;
}

}  // namespace

void register_batch_norm_cpu(KernelTable& table);

void register_batch_norm_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kChannelAffine, DeviceType::kCpu, {"reference", select_affine_reference});
  table.add(kChannelDot, DeviceType::kCpu, {"reference", select_sums_reference});
  table.add(kChannelSquares, DeviceType::kCpu, {"reference", select_sums_reference});
  table.add(kChannelMoments, DeviceType::kCpu, {"reference", select_plain<run_moments>});
  table.add(kUpdateRunningStats, DeviceType::kCpu, {"reference", select_plain<run_update>});
#endif
  table.add(kChannelAffine, DeviceType::kCpu, {FLOW_ISA_NAME, select_affine});
  table.add(kChannelDot, DeviceType::kCpu, {FLOW_ISA_NAME, select_sums});
  table.add(kChannelSquares, DeviceType::kCpu, {FLOW_ISA_NAME, select_sums});
}

#include "ops/isa_end.h"
