// Loops over the channels of a tensor (N, C, ...). Sums are taken in double throughout: a variance
// is a small difference of them where a mean is large. Include it with the other headers, before
// ops/isa_begin.h; all names live in flow::ops::isa_*.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "ops/row_loops.h"
#include "ops/vector.h"

#include "ops/isa_begin.h"

inline constexpr int64_t kChannelGrain = 16384;  // elements a thread takes at least

template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, float, T>;

// x as (outer, channels, inner).
struct ChannelPlan {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;

  double count() const { return static_cast<double>(outer * inner); }

  // Channels a thread takes at least.
  int64_t channel_grain() const {
    return std::max<int64_t>(1, kChannelGrain / std::max<int64_t>(1, outer * inner));
  }
};

inline std::shared_ptr<const ChannelPlan> plan_channels(const TensorMeta& x) {
  ChannelPlan plan{.outer = x.local_shape[0], .channels = x.local_shape[1]};
  for (int64_t d = 2; d < x.local_shape.size(); ++d)
    plan.inner *= x.local_shape[d];
  return std::make_shared<const ChannelPlan>(plan);
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

// Calls fn(channel, sum(a b), sum(a)) for channels [begin, end) of contiguous a and b.
template <class T, class Fn>
inline void sum_channels(const T* a, const T* b, const ChannelPlan& plan, int64_t begin,
                         int64_t end, const Fn& fn) {
  if (plan.inner == 1) {  // channels lie side by side
    const int64_t count = end - begin;
    std::vector<double> sums(static_cast<size_t>(2 * count));
    double* const products = sums.data();
    double* const totals = products + count;
    for (int64_t n = 0; n < plan.outer; ++n) {
      const T* u = a + n * plan.channels + begin;
      const T* v = b + n * plan.channels + begin;
      for (int64_t c = 0; c < count; ++c) {
        const auto left = static_cast<double>(static_cast<Wide<T>>(u[c]));
        products[c] += left * static_cast<double>(static_cast<Wide<T>>(v[c]));
        totals[c] += left;
      }
    }
    for (int64_t c = 0; c < count; ++c)
      fn(begin + c, products[c], totals[c]);
    return;
  }
  for (int64_t c = begin; c < end; ++c) {
    auto total = Sums<double, 2>::zero();
    for (int64_t n = 0; n < plan.outer; ++n) {
      const int64_t at = (n * plan.channels + c) * plan.inner;
      total = total + sum_pair(a + at, b + at, plan.inner);
    }
    fn(c, sum(total.term[0]), sum(total.term[1]));
  }
}

#include "ops/isa_end.h"
