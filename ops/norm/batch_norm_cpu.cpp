// batch_norm on the CPU: x is read once for its moments, in double, and once for the result; the
// gradient reads dy and x once for their sums and once for dx. Moments of doubles take two reads.

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/tensor_meta.h"
#include "core/thread_pool.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector.h"
#include "ops/local_parts.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/norm/channel_loops.h"

#include "ops/kernel/isa_begin.h"

namespace {

struct Moments {
  double mean = 0;
  double var = 0;
};

// A part without samples has the moments 0 and 0, so that sums over parts are finite.
Moments moments_of(double squares, double total, double count) {
  if (count == 0) return {};
  const double mean = total / count;
  // std::max keeps a NaN that comes first.
  return {mean, std::max(squares / count - mean * mean, 0.0)};
}

#if FLOW_ISA == 0

template <class C>
double parameter_or(const KernelContext& ctx, int input, int64_t channel, double value) {
  if (!ctx.has_input(input)) return value;
  return static_cast<double>(ctx.in(input).as<C>()[channel * ctx.in(input).strides()[0]]);
}

// The part of the batch that each of the elements in order belongs to, and their number a channel.
struct Parts {
  Parts(const TensorView& x, int64_t moments) : count(moments / 2), channels(x.shape()[1]) {
    int64_t positions = 1;  // of a channel of a sample
    for (int64_t d = 2; d < x.shape().size(); ++d)
      positions *= x.shape()[d];
    sample = channels * positions;
    for (int64_t p = 0; p < count; ++p) {
      const Range part = balanced_part(x.shape()[0], count, p);
      part_of.insert(part_of.end(), static_cast<size_t>(part.size), p);
      sizes.push_back(static_cast<double>(part.size * positions));
    }
  }

  // The index of the i-th element, which belongs to channel c, among the values that are kept for
  // each part and channel.
  size_t at(int64_t c, int64_t i) const {
    return static_cast<size_t>(part_of[static_cast<size_t>(i / sample)] * channels + c);
  }

  double size(size_t at) const { return sizes[at / static_cast<size_t>(channels)]; }

  // The offset of the mean; the offset of the variance is `channels` larger.
  int64_t moment(size_t at) const {
    const auto index = static_cast<int64_t>(at);
    return index / channels * 2 * channels + index % channels;
  }

  int64_t count, channels, sample = 0;
  std::vector<int64_t> part_of;  // by sample
  std::vector<double> sizes;
};

// Takes the variances of doubles from their distances to the means; see find_moments.
inline void square_distances_plainly(const KernelContext& ctx, const Parts& parts) {
  double* moments = ctx.out(1).as<double>();
  std::vector<double> squares(static_cast<size_t>(parts.count * parts.channels));
  for_channel_elements(ctx.inputs.first(1), [&](int64_t c, int64_t i, const auto& at) {
    const size_t k = parts.at(c, i);
    const double distance = ctx.in(0).as<double>()[at[0]] - moments[parts.moment(k)];
    squares[k] += distance * distance;
  });
  for (size_t k = 0; k < squares.size(); ++k)
    moments[parts.moment(k) + parts.channels] = moments_of(squares[k], 0, parts.size(k)).var;
}

template <class T>
void batch_norm_plainly(const KernelContext& ctx) {
  using C = Wide<T>;
  const Parts parts(ctx.in(0), ctx.out(1).shape()[0]);
  const auto x = [&](int64_t at) { return static_cast<double>(C(ctx.in(0).as<T>()[at])); };
  std::vector<double> total(static_cast<size_t>(parts.count * parts.channels));
  std::vector<double> squares(total.size());
  for_channel_elements(ctx.inputs.first(1), [&](int64_t c, int64_t i, const auto& at) {
    total[parts.at(c, i)] += x(at[0]);
    squares[parts.at(c, i)] += x(at[0]) * x(at[0]);
  });
  double* moments = ctx.out(1).as<double>();
  for (size_t k = 0; k < total.size(); ++k) {
    const Moments own = moments_of(squares[k], total[k], parts.size(k));
    moments[parts.moment(k)] = own.mean;
    moments[parts.moment(k) + parts.channels] = own.var;
  }
  if constexpr (std::is_same_v<T, double>) square_distances_plainly(ctx, parts);
  const double eps = ctx.attrs_as<BatchNormAttrs>().eps;
  for_channel_elements(ctx.inputs.first(1), [&](int64_t c, int64_t i, const auto& at) {
    const double* own = moments + parts.moment(parts.at(c, i));
    const double h = (x(at[0]) - own[0]) / std::sqrt(own[parts.channels] + eps);
    ctx.out(0).as<T>()[i] = static_cast<T>(
        static_cast<C>(h * parameter_or<C>(ctx, 1, c, 1) + parameter_or<C>(ctx, 2, c, 0)));
  });
}

template <class T>
void backward_plainly(const KernelContext& ctx) {
  using C = Wide<T>;
  const Parts parts(ctx.in(1), ctx.in(2).shape()[0]);
  const double eps = ctx.attrs_as<BatchNormAttrs>().eps;
  const Strides& strides = ctx.in(2).strides();
  const auto moment = [&](int64_t c, int64_t i, int64_t row) {
    const int64_t part = static_cast<int64_t>(parts.at(c, i)) / parts.channels;
    return ctx.in(2).as<double>()[(2 * part + row) * strides[0] + c * strides[1]];
  };
  const auto scale = [&](int64_t c, int64_t i) { return 1 / std::sqrt(moment(c, i, 1) + eps); };
  const auto dy = [&](int64_t at) { return static_cast<double>(C(ctx.in(0).as<T>()[at])); };
  const auto h = [&](int64_t c, int64_t i, int64_t at) {
    return (static_cast<double>(C(ctx.in(1).as<T>()[at])) - moment(c, i, 0)) * scale(c, i);
  };
  std::vector<double> total(static_cast<size_t>(parts.count * parts.channels));
  std::vector<double> products(total.size());
  for_channel_elements(ctx.inputs.first(2), [&](int64_t c, int64_t i, const auto& at) {
    total[parts.at(c, i)] += dy(at[0]);
    products[parts.at(c, i)] += dy(at[0]) * h(c, i, at[1]);
  });
  for_channel_elements(ctx.inputs.first(2), [&](int64_t c, int64_t i, const auto& at) {
    const size_t k = parts.at(c, i);
    const double rest =
        dy(at[0]) - total[k] / parts.size(k) - h(c, i, at[1]) * products[k] / parts.size(k);
    ctx.out(0).as<T>()[i] =
        static_cast<T>(static_cast<C>(parameter_or<C>(ctx, 3, c, 1) * scale(c, i) * rest));
  });
  for (int64_t c = 0; c < parts.channels; ++c) {
    double product = 0, plain = 0;
    for (int64_t p = 0; p < parts.count; ++p) {
      product += products[static_cast<size_t>(p * parts.channels + c)];
      plain += total[static_cast<size_t>(p * parts.channels + c)];
    }
    ctx.out(1).as<C>()[c] = static_cast<C>(product);
    ctx.out(2).as<C>()[c] = static_cast<C>(plain);
  }
}

// new running = (1 - momentum) running + momentum moment
template <class T>
void blend(const TensorView& target, const TensorView& running, const double* moment,
           int64_t stride, double momentum, double factor) {
  for (int64_t c = 0; c < running.shape()[0]; ++c) {
    const T value = running.as<T>()[c * running.strides()[0]];
    const auto old = static_cast<double>(static_cast<Wide<T>>(value));
    const double fresh = moment[c * stride] * factor;
    target.as<T>()[c * target.strides()[0]] =
        static_cast<T>(static_cast<Wide<T>>(old + momentum * (fresh - old)));
  }
}

void run_update(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<RunningStatsAttrs>();
  const Strides& strides = ctx.in(2).strides();
  const double* moments = ctx.in(2).as<double>();
  const auto count = static_cast<double>(attrs.count);
  for (const int i : {0, 1}) {
    dispatch_floating(ctx.in(i).meta->dtype, [&]<class T>() {
      blend<T>(ctx.out(i), ctx.in(i), moments + i * strides[0], strides[1], attrs.momentum,
               i == 0 ? 1.0 : count / (count - 1));
    });
  }
}

KernelChoice select_update(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return {run_update, nullptr};
}

void run_count(const KernelContext& ctx) {
  *ctx.out(0).as<int64_t>() = *ctx.in(0).as<int64_t>() + 1;
}

KernelChoice select_count(const KernelQuery& /*query*/) {
  return {run_count, nullptr};
}

template <bool kBackward>
KernelChoice select_reference(const KernelQuery& query) {
  KernelChoice choice;
  if (!parts_fit(query)) return choice;
  dispatch_floating(query.input(0).dtype, [&]<class T>() {
    choice.fn = kBackward ? backward_plainly<T> : batch_norm_plainly<T>;
  });
  return choice;
}

#endif

// Calls fn(channel, sum((x - mean)^2)) for channels [begin, end).
template <class Fn>
void square_distances(const double* x, const double* means, const ChannelState& state,
                      int64_t begin, int64_t end, const Fn& fn) {
  if (state.has_channel_rows()) {
    std::vector<double> squares(static_cast<size_t>(end - begin));
    for_channel_rows(state, begin, [&](int64_t row) {
      for (size_t c = 0; c < squares.size(); ++c) {
        const double distance = x[row + static_cast<int64_t>(c)] - means[c];
        squares[c] += distance * distance;
      }
    });
    for (int64_t c = begin; c < end; ++c)
      fn(c, squares[static_cast<size_t>(c - begin)]);
    return;
  }
  for (int64_t c = begin; c < end; ++c) {
    const auto mean = Vec<double>::fill(means[c - begin]);
    double squares = 0;
    for (int64_t n = 0; n < state.outer; ++n) {
      const double* row = x + (n * state.channels + c) * state.inner;
      squares += row_sum<double>(state.inner, [&](auto at) {
        const Vec<double> distance = at.keep(at.get(row) - mean, 0);
        return distance * distance;
      });
    }
    fn(c, squares);
  }
}

// Calls fn(channel, moments) for channels [begin, end) of x. The squares of doubles have no digits
// left for a small variance of large numbers: a second pass squares the distances to the mean.
template <class T, class Fn>
void find_moments(const T* x, const ChannelState& state, int64_t begin, int64_t end, const Fn& fn) {
  if constexpr (!std::is_same_v<T, double>) {
    sum_channels(x, x, state, begin, end, [&](int64_t c, double squares, double total) {
      fn(c, moments_of(squares, total, state.count()));
    });
  } else {
    std::vector<double> means(static_cast<size_t>(end - begin));
    sum_channels(x, x, state, begin, end, [&](int64_t c, double squares, double total) {
      means[static_cast<size_t>(c - begin)] = moments_of(squares, total, state.count()).mean;
    });
    square_distances(x, means.data(), state, begin, end, [&](int64_t c, double squares) {
      const double mean = means[static_cast<size_t>(c - begin)];
      fn(c, Moments{mean, moments_of(squares, 0, state.count()).var});
    });
  }
}

// y = (x - mean) scale + bias
template <class T>
void run_batch_norm(const KernelContext& ctx) {
  using C = Wide<T>;
  using V = Vec<C>;
  const auto& state = ctx.state_as<ChannelState>();
  const T* x = ctx.in(0).as<T>();
  const C* weight = ctx.has_input(1) ? ctx.in(1).as<C>() : nullptr;
  const C* bias = ctx.has_input(2) ? ctx.in(2).as<C>() : nullptr;
  T* y = ctx.out(0).as<T>();
  double* moments = ctx.out(1).as<double>();
  const double eps = ctx.attrs_as<BatchNormAttrs>().eps;
  for_channel_ranges(ctx.pool(), state, [&](int64_t begin, int64_t end) {
    std::vector<C> table(static_cast<size_t>(3 * (end - begin)));
    C* const mean = table.data();
    C* const scale = mean + (end - begin);
    C* const shift = scale + (end - begin);
    find_moments(x, state, begin, end, [&](int64_t c, const Moments& own) {
      moments[c] = own.mean;
      moments[state.channels + c] = own.var;
      mean[c - begin] = static_cast<C>(own.mean);
      const double factor = weight != nullptr ? static_cast<double>(weight[c]) : 1.0;
      scale[c - begin] = static_cast<C>(factor / std::sqrt(own.var + eps));
      shift[c - begin] = bias != nullptr ? bias[c] : C{0};
    });
    if (state.has_channel_rows()) {
      for_channel_rows(state, begin, [&](int64_t row) {
        for_row<C>(end - begin, [&](auto at) {
          at.put(y + row, fma(at.get(x + row) - at.get(mean), at.get(scale), at.get(shift)));
        });
      });
      return;
    }
    for (int64_t n = 0; n < state.outer; ++n) {
      for (int64_t c = begin; c < end; ++c) {
        const int64_t first = (n * state.channels + c) * state.inner;
        const V m = V::fill(mean[c - begin]);
        const V s = V::fill(scale[c - begin]);
        const V b = V::fill(shift[c - begin]);
        for_row<C>(state.inner,
                   [&](auto at) { at.put(y + first, fma(at.get(x + first) - m, s, b)); });
      }
    }
  });
  clear_padding(ctx, state);
}

// dx = s (dy - a) - k (x - mean) of each channel.
template <class T>
void run_backward(const KernelContext& ctx) {
  using C = Wide<T>;
  using V = Vec<C>;
  const auto& state = ctx.state_as<ChannelState>();
  const T* dy = ctx.in(0).as<T>();
  const T* x = ctx.in(1).as<T>();
  const double* moments = ctx.in(2).as<double>();
  const C* weight = ctx.has_input(3) ? ctx.in(3).as<C>() : nullptr;
  T* dx = ctx.out(0).as<T>();
  const double eps = ctx.attrs_as<BatchNormAttrs>().eps;
  for_channel_ranges(ctx.pool(), state, [&](int64_t begin, int64_t end) {
    std::vector<C> table(static_cast<size_t>(4 * (end - begin)));
    C* const s = table.data();
    C* const a = s + (end - begin);
    C* const k = a + (end - begin);
    C* const mean = k + (end - begin);
    sum_channels(dy, x, state, begin, end, [&](int64_t c, double products, double total) {
      const double r = 1 / std::sqrt(moments[state.channels + c] + eps);
      const double through_h = (products - moments[c] * total) * r;
      const double factor = (weight != nullptr ? static_cast<double>(weight[c]) : 1.0) * r;
      ctx.out(1).as<C>()[c] = static_cast<C>(through_h);
      ctx.out(2).as<C>()[c] = static_cast<C>(total);
      s[c - begin] = static_cast<C>(factor);
      a[c - begin] = static_cast<C>(total / state.count());
      k[c - begin] = static_cast<C>(factor * r * through_h / state.count());
      mean[c - begin] = static_cast<C>(moments[c]);
    });
    const auto put = [&](auto at, int64_t row, V own_s, V own_a, V own_k, V own_mean) {
      at.put(dx + row, own_s * (at.get(dy + row) - own_a) - own_k * (at.get(x + row) - own_mean));
    };
    if (state.has_channel_rows()) {
      for_channel_rows(state, begin, [&](int64_t row) {
        for_row<C>(end - begin,
                   [&](auto at) { put(at, row, at.get(s), at.get(a), at.get(k), at.get(mean)); });
      });
      return;
    }
    for (int64_t n = 0; n < state.outer; ++n) {
      for (int64_t c = begin; c < end; ++c) {
        const V own_s = V::fill(s[c - begin]);
        const V own_a = V::fill(a[c - begin]);
        const V own_k = V::fill(k[c - begin]);
        const V own_mean = V::fill(mean[c - begin]);
        for_row<C>(state.inner, [&](auto at) {
          put(at, (n * state.channels + c) * state.inner, own_s, own_a, own_k, own_mean);
        });
      }
    }
  });
  clear_padding(ctx, state);
}

template <bool kBackward>
KernelChoice select_fast(const KernelQuery& query) {
  const TensorMeta& moments = kBackward ? query.input(2) : query.output(1);
  if (moments.local_shape[0] != 2) return {};
  KernelChoice choice = choose_by_channels(query, kBackward ? 2 : 1);
  if (choice.state == nullptr) return {};
  dispatch_floating(query.input(0).dtype, [&]<class T>() {
    choice.fn = kBackward ? run_backward<T> : run_batch_norm<T>;
  });
  return choice;
}

}  // namespace

void register_batch_norm_cpu(KernelTable& table);

void register_batch_norm_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kBatchNorm, DeviceType::kCpu, {"reference", select_reference<false>});
  table.add(kBatchNormBackward, DeviceType::kCpu, {"reference", select_reference<true>});
  table.add(kUpdateRunningStats, DeviceType::kCpu, {"reference", select_update});
  table.add(kCountBatch, DeviceType::kCpu, {"reference", select_count});
#endif
  table.add(kBatchNorm, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<false>, true});
  table.add(kBatchNormBackward, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<true>, true});
}

#include "ops/kernel/isa_end.h"
