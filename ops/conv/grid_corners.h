// The pixels that samples of grid_sample read, and their weights. Include it with the other
// headers, before ops/kernel/isa_begin.h; all names live in flow::ops::isa_*.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "ops/conv/grid_sample_op.h"

#include "ops/kernel/isa_begin.h"

// ---- positions and weights along one dim

template <class T>
struct GridPlace {
  T at;     // in pixels
  T slope;  // its derivative by the coordinate
};

// A pixel along one dim, or -1 where there is none, and its weight.
template <class T>
struct GridTap {
  int32_t at;
  T weight;
};

template <class T>
class GridAxis {
 public:
  GridAxis() = default;

  GridAxis(const GridSampleAttrs& attrs, int64_t size)
      : mode_(attrs.mode),
        outside_(attrs.outside),
        last_(static_cast<T>(size - 1)),
        scale_(static_cast<T>(attrs.align_corners ? size - 1 : size) / 2),
        offset_(attrs.align_corners ? T{0} : T{-0.5}) {}

  // The pixels that a coordinate in [-1, 1] reads, with the derivative of this order of their
  // weights. Returns their number.
  int taps(T coordinate, int64_t order, GridTap<T>* tap) const {
    const GridPlace<T> place{(coordinate + 1) * scale_ + offset_, scale_};
    if (mode_ == GridMode::kNearest) {
      tap[0] = {pixel(std::nearbyint(inside(place).at)), order == 0 ? T{1} : T{0}};
      return 1;
    }
    if (mode_ == GridMode::kBilinear) {
      const GridPlace<T> kept = inside(place);
      const T below = std::floor(kept.at);
      const T rest = kept.at - below;
      tap[0] = {pixel(below), order == 0 ? 1 - rest : order == 1 ? -kept.slope : T{0}};
      tap[1] = {pixel(below + 1), order == 0 ? rest : order == 1 ? kept.slope : T{0}};
      return 2;
    }
    const T below = std::floor(place.at);
    const T rest = place.at - below;
    const T sign = order % 2 == 0 ? T{1} : T{-1};  // of derivatives by the distance to the right
    const std::array<T, 4> weights = {far(rest + 1, order), near(rest, order),
                                      sign * near(1 - rest, order), sign * far(2 - rest, order)};
    T factor = 1;
    for (int64_t i = 0; i < order; ++i)
      factor *= place.slope;
    for (int k = 0; k < 4; ++k) {
      const GridPlace<T> whole{below + static_cast<T>(k - 1), T{0}};
      tap[k] = {pixel(std::nearbyint(inside(whole).at)), factor * weights[static_cast<size_t>(k)]};
    }
    return 4;
  }

 private:
  // -1 outside the image, and for NaN.
  int32_t pixel(T at) const { return at >= 0 && at <= last_ ? static_cast<int32_t>(at) : -1; }

  // Moves positions outside the image inside, as the padding mode says. At its edges the slope is
  // 0, and a NaN becomes 0, both as in PyTorch.
  GridPlace<T> inside(GridPlace<T> place) const {
    if (outside_ == GridOutside::kZeros) return place;
    if (outside_ == GridOutside::kReflection) place = reflected(place);
    if (!(place.at > 0)) return {T{0}, T{0}};
    return place.at < last_ ? place : GridPlace<T>{last_, T{0}};
  }

  // Reflects positions at the edges, or at the centres, of the outer pixels.
  GridPlace<T> reflected(GridPlace<T> place) const {
    const T period = 4 * scale_;
    if (period == 0) return {T{0}, T{0}};
    const T distance = place.at - offset_;
    const T positive = std::abs(distance);
    const T rest = positive - std::floor(positive / period) * period;
    const bool turns = rest > 2 * scale_;
    const bool falls = (distance < 0) != turns;
    return {(turns ? period - rest : rest) + offset_, falls ? -place.slope : place.slope};
  }

  // Keys's (1981) kernel with a = -3/4 and its derivatives at distance t, below 1 and beyond it.
  static T near(T t, int64_t order) {
    if (order == 0) return (T{1.25} * t - T{2.25}) * t * t + 1;
    if (order == 1) return (T{3.75} * t - T{4.5}) * t;
    if (order == 2) return T{7.5} * t - T{4.5};
    return order == 3 ? T{7.5} : T{0};
  }

  static T far(T t, int64_t order) {
    if (order == 0) return ((T{-0.75} * t + T{3.75}) * t - 6) * t + 3;
    if (order == 1) return (T{-2.25} * t + T{7.5}) * t - 6;
    if (order == 2) return T{-4.5} * t + T{7.5};
    return order == 3 ? T{-4.5} : T{0};
  }

  GridMode mode_ = GridMode::kBilinear;
  GridOutside outside_ = GridOutside::kZeros;
  T last_ = 0;
  T scale_ = 0;
  T offset_ = 0;
};

// ---- the pixels of samples

inline constexpr int64_t kGridChunk = 64;  // samples whose pixels are found at once
inline constexpr int kMaxGridCorners = 16;

template <class T>
struct GridState {
  GridSampleAttrs attrs;
  int64_t rank = 2;
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t area = 1;   // pixels of an image
  int64_t count = 1;  // samples of an image
  std::array<int64_t, kMaxSpatialDims> sizes{};
  std::array<GridAxis<T>, kMaxSpatialDims> axes{};  // in the order of the dims of x
};

// Corner k of sample i is the pixel place[k][i], with a weight. It is `area`, with weight 0, if the
// corner is outside.
template <class T>
struct GridCorners {
  int num;
  std::array<std::array<int64_t, kGridChunk>, kMaxGridCorners> place;
  std::array<std::array<T, kGridChunk>, kMaxGridCorners> weight;
};

// The last coordinate of the grid belongs to the first dim of x.
template <class T>
inline void find_corners(const GridState<T>& state, const T* grid, int64_t samples,
                         const SpatialInts& orders, GridCorners<T>& corners) {
  for (int64_t i = 0; i < samples; ++i) {
    std::array<int64_t, kMaxGridCorners> place{};
    std::array<T, kMaxGridCorners> weight;
    weight[0] = 1;
    int num = 1;
    for (int64_t d = 0; d < state.rank; ++d) {
      const int64_t coordinate = state.rank - 1 - d;
      const auto dim = static_cast<size_t>(d);
      std::array<GridTap<T>, 4> taps;
      const int count = state.axes[dim].taps(grid[i * state.rank + coordinate],
                                             orders[static_cast<size_t>(coordinate)], taps.data());
      // From the last, because the first replaces the corner that the others read.
      for (int t = count - 1; t >= 0; --t) {
        const GridTap<T>& tap = taps[static_cast<size_t>(t)];
        for (int k = 0; k < num; ++k) {
          const auto from = static_cast<size_t>(k);
          const auto to = static_cast<size_t>(t) * static_cast<size_t>(num) + from;
          const bool is_inside = tap.at >= 0 && place[from] < state.area;
          place[to] = is_inside ? place[from] * state.sizes[dim] + tap.at : state.area;
          weight[to] = is_inside ? weight[from] * tap.weight : T{0};
        }
      }
      num *= count;
    }
    corners.num = num;
    for (int k = 0; k < num; ++k) {
      const auto at = static_cast<size_t>(k);
      corners.place[at][static_cast<size_t>(i)] = place[at];
      corners.weight[at][static_cast<size_t>(i)] = weight[at];
    }
  }
}

// Calls fn(first sample, number of samples, corners) for the chunks of image n.
template <class T, class Fn>
inline void for_chunks(const GridState<T>& state, int64_t n, const T* grid, const Fn& fn) {
  GridCorners<T> corners;
  for (int64_t first = 0; first < state.count; first += kGridChunk) {
    const int64_t samples = std::min(kGridChunk, state.count - first);
    find_corners(state, grid + (n * state.count + first) * state.rank, samples, state.attrs.orders,
                 corners);
    fn(first, samples, corners);
  }
}

// Adds to the gradient of the grid at some samples. products(i, k) is the sum over channels of the
// gradient of sample i times its corner k.
template <class T, class Products>
inline void add_to_grid(const GridState<T>& state, const T* grid, int64_t samples,
                        const Products& products, T* dgrid) {
  GridCorners<T> corners;
  for (int64_t coordinate = 0; coordinate < state.rank; ++coordinate) {
    SpatialInts orders = state.attrs.orders;
    ++orders[static_cast<size_t>(coordinate)];
    find_corners(state, grid, samples, orders, corners);
    for (int64_t i = 0; i < samples; ++i) {
      T sum = 0;
      for (int k = 0; k < corners.num; ++k) {
        const auto corner = static_cast<size_t>(k);
        const auto at = static_cast<size_t>(i);
        if (corners.place[corner][at] < state.area) {
          sum += corners.weight[corner][at] * products(i, k);
        }
      }
      dgrid[i * state.rank + coordinate] += sum;
    }
  }
}

#include "ops/kernel/isa_end.h"
