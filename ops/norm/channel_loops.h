// Loops over the channels of a tensor (N, C, ...). Sums are taken in double throughout: a variance
// is a small difference of them where a mean is large. Include it with the other headers, before
// ops/kernel/isa_begin.h; all names live in flow::ops::isa_*.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/dtype.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/blocked_layout.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

inline constexpr int64_t kChannelGrain = 16384;  // least number of elements per thread

template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

// Contiguous x as (outer, channels, inner), or blocked x as (outer, blocks of channels, inner,
// lanes).
struct ChannelState {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
  ChannelBlocks blocks;  // lanes = 0: contiguous

  double count() const { return static_cast<double>(outer * inner); }

  bool is_blocked() const { return blocks.lanes != 0; }

  // True if a row is a run of channels at one position; otherwise a row is one channel.
  bool has_channel_rows() const { return is_blocked() || inner == 1; }
};

inline std::shared_ptr<ChannelState> prepare_channels(const TensorMeta& x) {
  ChannelState state{.outer = x.local_shape[0], .channels = x.local_shape[1], .blocks = {}};
  for (int64_t d = 2; d < x.local_shape.size(); ++d)
    state.inner *= x.local_shape[d];
  return std::make_shared<ChannelState>(state);
}

// Prepares an op whose first `count` inputs and first output have the same shape and layout, and
// whose other operands are contiguous. Not applicable to other ops.
inline KernelChoice choose_by_channels(const KernelQuery& query, size_t count) {
  const BlockedLayout* layout = query.input(0).blocked;
  for (size_t i = 0; i < query.inputs.size(); ++i) {
    const MetaPtr input = query.inputs[i];
    if (input == nullptr) continue;
    const bool fits =
        layout != nullptr && i < count ? input->blocked == layout : input->is_contiguous;
    if (!fits) return {};
  }
  const auto state = prepare_channels(query.input(0));
  KernelChoice choice{nullptr, state};
  if (layout == nullptr) return choice;
  state->blocks = channel_blocks(*layout, query.input(0).local_shape);
  if (!state->is_blocked() || query.input(0).dtype != DType::kFloat32) return {};
  choice.outputs.assign(query.outputs.begin(), query.outputs.end());
  choice.outputs[0] = with_blocked(choice.outputs[0], layout);
  return choice;
}

// Calls fn(begin, end) in parallel for ranges that cover the channels. A range stays within one
// block if x is blocked.
template <class Fn>
inline void for_channel_ranges(ThreadPool& pool, const ChannelState& state, const Fn& fn) {
  const int64_t width = state.is_blocked() ? state.blocks.lanes : 1;
  const int64_t grain =
      std::max<int64_t>(1, kChannelGrain / std::max<int64_t>(1, state.outer * state.inner * width));
  pool.parallel_for(0, (state.channels + width - 1) / width, grain,
                    [&](int64_t begin, int64_t end) {
                      if (width == 1) return fn(begin, end);
                      for (int64_t i = begin; i < end; ++i)
                        fn(i * width, std::min(state.channels, (i + 1) * width));
                    });
}

// Calls fn(offset) for the rows that start at channel `begin`.
template <class Fn>
inline void for_channel_rows(const ChannelState& state, int64_t begin, const Fn& fn) {
  if (!state.is_blocked()) {
    for (int64_t n = 0; n < state.outer; ++n)
      fn(n * state.channels + begin);
    return;
  }
  const int64_t lanes = state.blocks.lanes;
  for (int64_t n = 0; n < state.outer; ++n) {
    const int64_t first = (n * state.blocks.blocks() * lanes + begin) * state.inner;
    for (int64_t position = 0; position < state.inner; ++position)
      fn(first + position * lanes);
  }
}

inline void clear_padding(const KernelContext& ctx, const ChannelState& state) {
  if (state.is_blocked()) clear_padding(state.blocks, ctx.out(0).as<float>());
}

// Calls fn(channel, i, offsets) for every element i, row-major, with its offset in each of one or
// two tensors of any strides.
template <class Fn>
inline void for_channel_elements(std::span<const TensorView> tensors, const Fn& fn) {
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

// (sum(a b), sum(a)) of n elements.
template <class T>
inline Sums<double, 2> sum_pair(const T* a, const T* b, int64_t n) {
  using V = Vec<double>;
  using Pair = Sums<double, 2>;
  return row_sum_lanes<Wide<T>>(n, [&](auto at) {
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
}

// Calls fn(channel, sum(a b), sum(a)) for channels [begin, end) of a and b, in the layout that the
// state describes.
template <class T, class Fn>
inline void sum_channels(const T* a, const T* b, const ChannelState& state, int64_t begin,
                         int64_t end, const Fn& fn) {
  if (state.has_channel_rows()) {
    const int64_t count = end - begin;
    std::vector<double> sums(static_cast<size_t>(2 * count));
    double* const products = sums.data();
    double* const totals = products + count;
    for_channel_rows(state, begin, [&](int64_t row) {
      const T* u = a + row;
      const T* v = b + row;
      for (int64_t c = 0; c < count; ++c) {
        const auto left = static_cast<double>(static_cast<Wide<T>>(u[c]));
        products[c] += left * static_cast<double>(static_cast<Wide<T>>(v[c]));
        totals[c] += left;
      }
    });
    for (int64_t c = 0; c < count; ++c)
      fn(begin + c, products[c], totals[c]);
    return;
  }
  for (int64_t c = begin; c < end; ++c) {
    auto total = Sums<double, 2>::zero();
    for (int64_t n = 0; n < state.outer; ++n) {
      const int64_t at = (n * state.channels + c) * state.inner;
      total = total + sum_pair(a + at, b + at, state.inner);
    }
    fn(c, sum(total.term[0]), sum(total.term[1]));
  }
}

#include "ops/kernel/isa_end.h"
