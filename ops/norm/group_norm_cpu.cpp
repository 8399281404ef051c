// group_norm on the CPU. A group is read from memory once and then, while it is in cache, for its
// mean, its variance and its result.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous.h"
#include "ops/kernel/row_loops.h"
#include "ops/norm/group_norm_op.h"

#include "ops/kernel/isa_begin.h"

void register_group_norm_cpu(KernelTable& table);

namespace {

constexpr int64_t kGrain = 1 << 14;

// x as (outer, channels, inner).
struct GroupState {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
  int64_t group_size = 1;

  int64_t groups() const { return outer * (channels / group_size); }

  int64_t elements() const { return group_size * inner; }
};

// An optional vector of T over the channels; without it, all are `value`.
template <class T>
class Parameter {
 public:
  Parameter(const KernelContext& ctx, int input, T value) : value_(value) {
    if (ctx.has_input(input)) given_.emplace(ctx, input);
  }

  T operator[](int64_t channel) const { return given_ ? given_->data()[channel] : value_; }

 private:
  std::optional<ContiguousInput<T>> given_;
  T value_;
};

// Mean and 1 / sqrt(variance + eps).
template <class T>
struct Statistics {
  T mean;
  T scale;
};

// Sums of a channel's dy and dy h, where h is the normalised x.
template <class T>
struct ChannelSums {
  T dy;
  T dy_h;
};

// The factors of a group's gradient: dx = dy weight scale - shift - (x - mean) slope.
template <class T>
struct GroupGradient {
  T shift;
  T slope;
};

#if FLOW_ISA == 0

// Loops over single elements.
struct OneByOne {
  template <class T>
  static Statistics<T> statistics(const T* x, int64_t n, double eps) {
    T mean = 0;
    for (int64_t i = 0; i < n; ++i)
      mean += x[i] / static_cast<T>(n);
    T variance = 0;
    for (int64_t i = 0; i < n; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<T>(n);
    return {mean, 1 / std::sqrt(variance + static_cast<T>(eps))};
  }

  template <class T>
  static void normalize(const T* x, int64_t n, const Statistics<T>& s, T weight, T bias, T* y) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - s.mean) * s.scale * weight + bias;
  }

  template <class T>
  static ChannelSums<T> sums(const T* dy, const T* x, int64_t n, const Statistics<T>& s) {
    ChannelSums<T> result{0, 0};
    for (int64_t i = 0; i < n; ++i) {
      result.dy += dy[i];
      result.dy_h += dy[i] * ((x[i] - s.mean) * s.scale);
    }
    return result;
  }

  template <class T>
  static void differentiate(const T* dy, const T* x, int64_t n, const Statistics<T>& s, T weight,
                            const GroupGradient<T>& g, T* dx) {
    for (int64_t i = 0; i < n; ++i)
      dx[i] = dy[i] * (weight * s.scale) - g.shift - (x[i] - s.mean) * g.slope;
  }
};

#endif

struct ByVectors {
  // The mean, then the mean square of the differences from it, which is accurate for large means
  // too.
  template <class T>
  static Statistics<T> statistics(const T* x, int64_t n, double eps) {
    const T mean = row_sum<T>(n, [&](auto at) { return at.get(x); }) / static_cast<T>(n);
    const auto center = Vec<T>::fill(mean);
    const T square = row_sum<T>(n, [&](auto at) {
      const Vec<T> d = at.keep(at.get(x) - center, 0);
      return d * d;
    });
    return {mean, T{1} / std::sqrt(square / static_cast<T>(n) + static_cast<T>(eps))};
  }

  template <class T>
  static void normalize(const T* x, int64_t n, const Statistics<T>& s, T weight, T bias, T* y) {
    const auto mean = Vec<T>::fill(s.mean);
    const auto factor = Vec<T>::fill(s.scale * weight);
    const auto term = Vec<T>::fill(bias);
    for_row<T>(n, [&](auto at) { at.put(y, fma(at.get(x) - mean, factor, term)); });
  }

  template <class T>
  static ChannelSums<T> sums(const T* dy, const T* x, int64_t n, const Statistics<T>& s) {
    const auto mean = Vec<T>::fill(s.mean);
    const Sums<T, 2> lanes = row_sum_lanes<T>(n, [&](auto at) {
      const Vec<T> d = at.get(dy);
      return Sums<T, 2>{{d, d * (at.get(x) - mean)}};
    });
    return {sum(lanes.term[0]), sum(lanes.term[1]) * s.scale};
  }

  template <class T>
  static void differentiate(const T* dy, const T* x, int64_t n, const Statistics<T>& s, T weight,
                            const GroupGradient<T>& g, T* dx) {
    const auto mean = Vec<T>::fill(s.mean);
    const auto factor = Vec<T>::fill(weight * s.scale);
    const auto shift = Vec<T>::fill(g.shift);
    const auto slope = Vec<T>::fill(g.slope);
    for_row<T>(n, [&](auto at) {
      at.put(dx, fnma(at.get(x) - mean, slope, fma(at.get(dy), factor, -shift)));
    });
  }
};

// Calls fn(offset of a group in x, its first channel, its sample) for all groups.
template <class Fn>
void for_groups(const KernelContext& ctx, const GroupState& state, const Fn& fn) {
  const int64_t size = std::max<int64_t>(1, state.elements());
  ctx.pool().parallel_for(
      0, state.groups(), std::max<int64_t>(1, kGrain / size), [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
          const int64_t channel = group * state.group_size;
          fn(channel * state.inner, channel % state.channels, channel / state.channels);
        }
      });
}

template <class Loops, class T>
void run_norm(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GroupState>();
  const double eps = ctx.attrs_as<GroupNormAttrs>().eps;
  const ContiguousInput<T> x(ctx, 0);
  const Parameter<T> weight(ctx, 1, 1), bias(ctx, 2, 0);
  const ContiguousOutput<T> y(ctx, 0);
  for_groups(ctx, state, [&](int64_t first, int64_t channel, int64_t /*sample*/) {
    const auto s = Loops::statistics(x.data() + first, state.elements(), eps);
    for (int64_t c = 0; c < state.group_size; ++c) {
      const int64_t at = first + c * state.inner;
      Loops::normalize(x.data() + at, state.inner, s, weight[channel + c], bias[channel + c],
                       y.data() + at);
    }
  });
  y.finish(ctx);
}

// The gradients of the parameters: the sums of the samples, in their order.
template <class T>
void add_samples(const KernelContext& ctx, const GroupState& state, const ChannelSums<T>* sums) {
  const ContiguousOutput<T> dweight(ctx, 1), dbias(ctx, 2);
  for (int64_t c = 0; c < state.channels; ++c) {
    double of_weight = 0, of_bias = 0;
    for (int64_t n = 0; n < state.outer; ++n) {
      of_weight += static_cast<double>(sums[n * state.channels + c].dy_h);
      of_bias += static_cast<double>(sums[n * state.channels + c].dy);
    }
    dweight.data()[c] = static_cast<T>(of_weight);
    dbias.data()[c] = static_cast<T>(of_bias);
  }
  dweight.finish(ctx);
  dbias.finish(ctx);
}

// With h = (x - mean) r, g = dy weight and m the mean over a group: dx = r (g - m(g) - h m(g h)).
template <class Loops, class T>
void run_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GroupState>();
  const double eps = ctx.attrs_as<GroupNormAttrs>().eps;
  const ContiguousInput<T> dy(ctx, 0), x(ctx, 1);
  const Parameter<T> weight(ctx, 2, 1);
  const ContiguousOutput<T> dx(ctx, 0);
  const auto memory =
      ctx.scratch(static_cast<size_t>(state.outer * state.channels) * sizeof(ChannelSums<T>));
  auto* const sums = reinterpret_cast<ChannelSums<T>*>(memory->data());
  for_groups(ctx, state, [&](int64_t first, int64_t channel, int64_t sample) {
    const auto s = Loops::statistics(x.data() + first, state.elements(), eps);
    T g = 0, g_h = 0;
    for (int64_t c = 0; c < state.group_size; ++c) {
      const int64_t at = first + c * state.inner;
      const auto own = Loops::sums(dy.data() + at, x.data() + at, state.inner, s);
      sums[sample * state.channels + channel + c] = own;
      g += own.dy * weight[channel + c];
      g_h += own.dy_h * weight[channel + c];
    }
    const T count = static_cast<T>(state.elements());
    const GroupGradient<T> gradient{s.scale * (g / count), s.scale * s.scale * (g_h / count)};
    for (int64_t c = 0; c < state.group_size; ++c) {
      const int64_t at = first + c * state.inner;
      Loops::differentiate(dy.data() + at, x.data() + at, state.inner, s, weight[channel + c],
                           gradient, dx.data() + at);
    }
  });
  dx.finish(ctx);
  add_samples(ctx, state, sums);
}

// Prepares the local parts; null if they do not hold whole groups, or the operands differ.
std::shared_ptr<const GroupState> prepare(const KernelQuery& query, bool is_backward) {
  const Shape& x = query.input(is_backward ? 1 : 0).local_shape;
  const int64_t group = query.attrs_as<GroupNormAttrs>().group_size;
  const auto state = std::make_shared<GroupState>();
  state->outer = x[0];
  state->channels = x[1];
  state->group_size = group;
  for (int64_t d = 2; d < x.size(); ++d)
    state->inner *= x[d];
  if (x[1] % group != 0 || (is_backward && !(query.input(0).local_shape == x))) return nullptr;
  for (int i = is_backward ? 2 : 1; i < static_cast<int>(query.inputs.size()); ++i) {
    if (query.has_input(i) && query.input(i).local_shape[0] != x[1]) return nullptr;
  }
  return state;
}

template <class Loops, class T, bool kBackward>
KernelChoice choose(const KernelQuery& query) {
  const auto state = prepare(query, kBackward);
  if (state == nullptr) return {};
  KernelScratch scratch = contiguous_scratch(query, dtype_of<T>);
  if (kBackward) {
    scratch.push_back(
        {state->outer * state->channels * static_cast<int64_t>(sizeof(ChannelSums<T>))});
  }
  KernelChoice choice{kBackward ? run_backward<Loops, T> : run_norm<Loops, T>, state};
  return with_scratch(std::move(choice), std::move(scratch));
}

template <bool kBackward>
KernelChoice select_fast(const KernelQuery& query) {
  return query.output(0).dtype == DType::kFloat64 ? choose<ByVectors, double, kBackward>(query)
                                                  : choose<ByVectors, float, kBackward>(query);
}

}  // namespace

void register_group_norm_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kGroupNorm, DeviceType::kCpu, {"reference", choose<OneByOne, double, false>});
  table.add(kGroupNormBackward, DeviceType::kCpu, {"reference", choose<OneByOne, double, true>});
#endif
  table.add(kGroupNorm, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<false>});
  table.add(kGroupNormBackward, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<true>});
}

#include "ops/kernel/isa_end.h"
