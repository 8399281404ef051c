// Sums and affine maps of channels.

#include <algorithm>
#include <memory>
#include <type_traits>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector.h"
#include "ops/local_parts.h"
#include "ops/norm/channel_loops.h"
#include "ops/norm/channel_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

#if FLOW_ISA == 0

template <class T>
void affine_plainly(const KernelContext& ctx) {
  using C = Wide<T>;
  const C* scale = ctx.in(1).as<C>();
  const C* shift = ctx.has_input(2) ? ctx.in(2).as<C>() : nullptr;
  const int64_t scale_stride = ctx.in(1).strides()[0];
  const int64_t shift_stride = shift != nullptr ? ctx.in(2).strides()[0] : 0;
  for_channel_elements(ctx.inputs.first(1), [&](int64_t c, int64_t i, const auto& at) {
    C y = static_cast<C>(ctx.in(0).as<T>()[at[0]]) * scale[c * scale_stride];
    if (shift != nullptr) y += shift[c * shift_stride];
    ctx.out(0).as<T>()[i] = static_cast<T>(y);
  });
}

// The products of input 0 with itself, or with input 1.
template <class T>
void sums_plainly(const KernelContext& ctx) {
  const int64_t channels = ctx.in(0).shape()[1];
  double* sums = ctx.out(0).as<double>();
  std::fill_n(sums, 2 * channels, 0.0);
  const size_t last = ctx.inputs.size() - 1;
  for_channel_elements(ctx.inputs, [&](int64_t c, int64_t /*i*/, const auto& at) {
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
    moments[channels + c] = std::max(sums[c * strides[1]] / count - mean * mean, 0.0);
  }
}

void run_moments_backward(const KernelContext& ctx) {
  const Strides& strides = ctx.in(0).strides();
  const double* upstream = ctx.in(0).as<double>();
  const double* mean = ctx.in(1).as<double>();
  const int64_t mean_stride = ctx.in(1).strides()[1];
  double* sums = ctx.out(0).as<double>();
  const int64_t channels = ctx.in(0).shape()[1];
  const auto count = static_cast<double>(ctx.attrs_as<MomentsAttrs>().count);
  for (int64_t c = 0; c < channels; ++c) {
    const double u = upstream[c * strides[1]], v = upstream[strides[0] + c * strides[1]];
    sums[c] = v / count;
    sums[channels + c] = (u - 2 * mean[c * mean_stride] * v) / count;
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

template <class T, bool kShift>
void run_affine(const KernelContext& ctx) {
  using C = Wide<T>;
  using V = Vec<C>;
  const auto& state = ctx.state_as<ChannelState>();
  const T* x = ctx.in(0).as<T>();
  const C* scale = ctx.in(1).as<C>();
  const C* shift = kShift ? ctx.in(2).as<C>() : nullptr;
  T* y = ctx.out(0).as<T>();
  // Contiguous channels: the first is `first`, at x[row].
  const auto map_channels = [&](int64_t row, int64_t first, int64_t count) {
    for_row<C>(count, [&](auto at) {
      const V product = at.get(x + row) * at.get(scale + first);
      at.put(y + row, kShift ? product + at.get(shift + first) : product);
    });
  };
  if (state.is_blocked()) {
    for_channel_ranges(ctx.pool(), state, [&](int64_t begin, int64_t end) {
      for_channel_rows(state, begin, [&](int64_t row) { map_channels(row, begin, end - begin); });
    });
    clear_padding(ctx, state);
    return;
  }
  // A row holds one channel, or all channels if there are no dims after them.
  const int64_t length = state.inner != 1 ? state.inner : state.channels;
  const int64_t rows = state.inner != 1 ? state.outer * state.channels : state.outer;
  const int64_t grain = std::max<int64_t>(1, kChannelGrain / std::max<int64_t>(1, length));
  ctx.pool().parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (state.inner == 1) {
        map_channels(row * length, 0, length);
        continue;
      }
      const V factor = V::fill(scale[row % state.channels]);
      const V term = V::fill(kShift ? shift[row % state.channels] : C{0});
      for_row<C>(length, [&](auto at) {
        at.put(y + row * length, fma(at.get(x + row * length), factor, term));
      });
    }
  });
}

template <class T>
void run_sums(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ChannelState>();
  const T* a = ctx.in(0).as<T>();
  const T* b = ctx.inputs[ctx.inputs.size() - 1].as<T>();
  double* sums = ctx.out(0).as<double>();
  for_channel_ranges(ctx.pool(), state, [&](int64_t begin, int64_t end) {
    sum_channels(a, b, state, begin, end, [&](int64_t c, double products, double total) {
      sums[c] = products;
      sums[state.channels + c] = total;
    });
  });
}

bool all_contiguous(const KernelQuery& query) {
  return std::all_of(query.inputs.begin(), query.inputs.end(),
                     [](MetaPtr meta) { return meta == nullptr || meta->is_contiguous; });
}

KernelChoice select_affine(const KernelQuery& query) {
  KernelChoice choice = choose_by_channels(query, 1);
  if (choice.state == nullptr) return {};
  dispatch_floating(query.input(0).dtype, [&]<class T>() {
    choice.fn = query.has_input(2) ? run_affine<T, true> : run_affine<T, false>;
  });
  return choice;
}

KernelChoice select_sums(const KernelQuery& query) {
  if (!all_contiguous(query)) return {};
  KernelChoice choice{nullptr, prepare_channels(query.input(0))};
  dispatch_floating(query.input(0).dtype, [&]<class T>() { choice.fn = run_sums<T>; });
  return choice;
}

}  // namespace

void register_channel_cpu(KernelTable& table);

void register_channel_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kChannelAffine, DeviceType::kCpu, {"reference", select_affine_reference});
  table.add(kChannelDot, DeviceType::kCpu, {"reference", select_sums_reference});
  table.add(kChannelSquares, DeviceType::kCpu, {"reference", select_sums_reference});
  table.add(kChannelMoments, DeviceType::kCpu, {"reference", select_plain<run_moments>});
  table.add(kChannelMomentsBackward, DeviceType::kCpu,
            {"reference", select_plain<run_moments_backward>});
#endif
  table.add(kChannelAffine, DeviceType::kCpu, {FLOW_ISA_NAME, select_affine, true});
  table.add(kChannelDot, DeviceType::kCpu, {FLOW_ISA_NAME, select_sums});
  table.add(kChannelSquares, DeviceType::kCpu, {FLOW_ISA_NAME, select_sums});
}

#include "ops/kernel/isa_end.h"
