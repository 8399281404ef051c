// Sums over the elements of each channel (dim 1) on CUDA devices.
#pragma once

#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

// A contiguous local part as (outer, channels, inner).
struct ChannelSizes {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;

  explicit ChannelSizes(const Shape& shape) : outer(shape[0]), channels(shape[1]) {
    for (int64_t i = 2; i < shape.size(); ++i)
      inner *= shape[i];
  }

  // The number of elements of a channel.
  int64_t count() const { return outer * inner; }

  int64_t numel() const { return count() * channels; }

  // The channel of element `i`.
  __device__ int64_t channel(int64_t i) const {
    return divide(inner == 1 ? i : divide(i, inner).quotient, channels).rest;
  }

  // The offset of element k of a channel.
  __device__ int64_t place(int64_t channel, int64_t k) const {
    if (inner == 1) return k * channels + channel;
    const auto [n, rest] = divide(k, inner);
    return (n * channels + channel) * inner + rest;
  }
};

// Sums of a b and of a over one stretch of a channel: row = channel * stretches + stretch.
template <class T>
struct ChannelStretch {
  const T* a;
  const T* b;
  const double* centers;  // null: 0, as for all types but double
  double* products;
  double* totals;
  ChannelSizes sizes;
  int64_t stretches;
  int64_t length;

  __device__ void operator()(int64_t row, Team team) const {
    const auto [channel, stretch] = divide(row, stretches);
    const int64_t end = std::min(sizes.outer * sizes.inner, (stretch + 1) * length);
    double center = 0;
    if constexpr (std::is_same_v<T, double>) center = centers != nullptr ? centers[channel] : 0;
    const auto distance = [&](T x) {
      const auto wide = static_cast<double>(widen(x));
      if constexpr (std::is_same_v<T, double>) return wide - center;
      return wide;
    };
    double product = 0;
    double total = 0;
    for (int64_t k = stretch * length + team.first(); k < end; k += team.step()) {
      const int64_t at = sizes.place(channel, k);
      const double left = distance(a[at]);
      product += left * distance(b[at]);
      total += left;
    }
    product = team.sum(product);
    total = team.sum(total);
    if (!team.leads()) return;
    products[row] = product;
    totals[row] = total;
  }
};

struct AddStretches {
  const double* products;
  const double* totals;
  double* sums;
  int64_t channels;
  int64_t stretches;

  __device__ void operator()(int64_t channel) const {
    double product = 0;
    double total = 0;
    for (int64_t i = channel * stretches; i < (channel + 1) * stretches; ++i) {
      product += products[i];
      total += totals[i];
    }
    sums[channel] = product;
    sums[channels + channel] = total;
  }
};

// sums: (2, channels): the sums of a b and of a; of doubles, those of their distances to the
// centers of the channels if these are given. Channels are divided into stretches, because there
// are fewer channels than the device has multiprocessors.
template <class T>
void sum_channels(const KernelContext& ctx, const T* a, const T* b, const ChannelSizes& sizes,
                  double* sums, const double* centers = nullptr) {
  constexpr int64_t kLength = 8192;
  constexpr int64_t kMaxStretches = 64;
  const int64_t count = sizes.count();
  const int64_t length = std::max(kLength, (count + kMaxStretches - 1) / kMaxStretches);
  const int64_t stretches = std::max<int64_t>(1, (count + length - 1) / length);
  const ScratchArray<double> products(ctx, sizes.channels * stretches);
  const ScratchArray<double> totals(ctx, sizes.channels * stretches);
  for_each_row(
      ctx, sizes.channels * stretches, std::min(count, length),
      ChannelStretch<T>{a, b, centers, products.data(), totals.data(), sizes, stretches, length});
  for_each_element(ctx, sizes.channels,
                   AddStretches{products.data(), totals.data(), sums, sizes.channels, stretches});
}

}  // namespace flow::ops
