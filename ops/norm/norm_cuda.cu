// layer_norm and rms_norm on CUDA devices. A team of threads handles each row, which it holds in
// registers, or reads again from cache if it is very long. The gradients of the
// parameters are added up by blocks of rows, then over blocks, in an order that depends only on the
// shape.
#include "ops/kernel/held_row_cuda.cuh"
#include "ops/local_parts.h"
#include "ops/norm/norm_op.h"

namespace flow::ops {

void register_norm_cuda(KernelTable& table);

namespace {

struct NormSizes {
  int64_t rows = 1;
  int64_t size = 1;

  NormSizes(const Shape& shape, const NormAttrs& attrs) {
    for (int64_t i = 0; i < shape.size(); ++i)
      (i < shape.size() - attrs.num_dims ? rows : size) *= shape[i];
  }
};

template <class C>
struct RowStatistics {
  C mean;
  C scale;
};

// The mean of a row, then the mean square of the differences from it, which is accurate for large
// means too.
template <class T, bool kCenters>
__device__ RowStatistics<Wide<T>> statistics_of(const T* x, int64_t size, double eps, Team team) {
  using C = Wide<T>;
  const C count = static_cast<C>(size);
  C mean = 0;
  if constexpr (kCenters) {
    for (int64_t i = team.first(); i < size; i += team.step())
      mean += widen(x[i]);
    mean = team.sum(mean) / count;
  }
  C square = 0;
  for (int64_t i = team.first(); i < size; i += team.step()) {
    const C d = widen(x[i]) - mean;
    square += d * d;
  }
  return {mean, C{1} / std::sqrt(team.sum(square) / count + static_cast<C>(eps))};
}

template <class T, bool kCenters>
struct NormRow {
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  int64_t size;
  double eps;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    const T* source = x + row * size;
    const RowStatistics<C> s = statistics_of<T, kCenters>(source, size, eps, team);
    for (int64_t i = team.first(); i < size; i += team.step()) {
      C h = (widen(source[i]) - s.mean) * s.scale;
      if (weight != nullptr) h *= widen(weight[i]);
      if (bias != nullptr) h += widen(bias[i]);
      y[row * size + i] = narrow<T>(h);
    }
  }
};

template <class T, bool kCenters>
__device__ RowStatistics<Wide<T>> statistics_of(HeldRow<T>& row, int64_t size, double eps,
                                                Team team) {
  using C = Wide<T>;
  const C count = static_cast<C>(size);
  C mean = 0;
  if constexpr (kCenters) {
    row.for_each(size, team, [&](C value, int64_t) { mean += value; });
    mean = team.sum(mean) / count;
  }
  C square = 0;
  row.for_each(size, team, [&](C value, int64_t) { square += (value - mean) * (value - mean); });
  return {mean, C{1} / std::sqrt(team.sum(square) / count + static_cast<C>(eps))};
}

template <class T, bool kCenters>
struct NormHeldRow {
  const T* x;
  const T* weight;
  const T* bias;
  T* y;
  int64_t size;
  double eps;
  bool is_packed;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    HeldRow<T> held;
    held.load(x + row * size, size, is_packed, team, 0);
    const RowStatistics<C> s = statistics_of<T, kCenters>(held, size, eps, team);
    for_held_packs<T>(size, team, [&](int64_t at, int slot) {
      Pack<T, HeldRow<T>::kCount> factor = {}, shift = {};
      if (weight != nullptr) factor = load_elements(weight, at, size, is_packed);
      if (bias != nullptr) shift = load_elements(bias, at, size, is_packed);
      FLOW_UNROLL
      for (int j = 0; j < HeldRow<T>::kCount; ++j) {
        C h = (held.value[slot][j] - s.mean) * s.scale;
        if (weight != nullptr) h *= widen(factor.element[j]);
        if (bias != nullptr) h += widen(shift.element[j]);
        held.value[slot][j] = h;
      }
    });
    held.store(y + row * size, size, is_packed, team);
  }
};

template <class T, bool kCenters>
struct NormBackwardHeldRow {
  const T* dy;
  const T* x;
  const T* weight;
  T* dx;
  RowStatistics<Wide<T>>* statistics;
  int64_t size;
  double eps;
  bool is_packed;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    constexpr int kCount = HeldRow<T>::kCount;
    HeldRow<T> held, gradient;
    held.load(x + row * size, size, is_packed, team, 0);
    gradient.load(dy + row * size, size, is_packed, team, 0);
    const RowStatistics<C> s = statistics_of<T, kCenters>(held, size, eps, team);
    if (team.leads()) statistics[row] = s;
    C sum_g = 0;
    C sum_gh = 0;
    for_held_packs<T>(size, team, [&](int64_t at, int slot) {
      Pack<T, kCount> factor = {};
      if (weight != nullptr) factor = load_elements(weight, at, size, is_packed);
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j) {
        C& g = gradient.value[slot][j];  // 0 after the end of the row
        C& h = held.value[slot][j];
        if (weight != nullptr) g *= widen(factor.element[j]);
        h = (h - s.mean) * s.scale;
        sum_g += g;
        sum_gh += g * h;
      }
    });
    const C count = static_cast<C>(size);
    const C mean_g = kCenters ? team.sum(sum_g) / count : C{0};
    const C mean_gh = team.sum(sum_gh) / count;
    for_held_packs<T>(size, team, [&](int64_t, int slot) {
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j) {
        C& h = held.value[slot][j];
        h = s.scale * ((gradient.value[slot][j] - mean_g) - h * mean_gh);
      }
    });
    held.store(dx + row * size, size, is_packed, team);
  }
};

// dx of a row; keeps its statistics for the gradients of the parameters.
template <class T, bool kCenters>
struct NormBackwardRow {
  const T* dy;
  const T* x;
  const T* weight;
  T* dx;
  RowStatistics<Wide<T>>* statistics;
  int64_t size;
  double eps;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    const T* source = x + row * size;
    const T* gradient = dy + row * size;
    const RowStatistics<C> s = statistics_of<T, kCenters>(source, size, eps, team);
    if (team.leads()) statistics[row] = s;
    const auto weighted = [&](int64_t i) {
      const C g = widen(gradient[i]);
      return weight != nullptr ? g * widen(weight[i]) : g;
    };
    C sum_g = 0;
    C sum_gh = 0;
    for (int64_t i = team.first(); i < size; i += team.step()) {
      const C g = weighted(i);
      sum_g += g;
      sum_gh += g * ((widen(source[i]) - s.mean) * s.scale);
    }
    const C count = static_cast<C>(size);
    const C mean_g = kCenters ? team.sum(sum_g) / count : C{0};
    const C mean_gh = team.sum(sum_gh) / count;
    for (int64_t i = team.first(); i < size; i += team.step()) {
      const C h = (widen(source[i]) - s.mean) * s.scale;
      dx[row * size + i] = narrow<T>(s.scale * ((weighted(i) - mean_g) - h * mean_gh));
    }
  }
};

// Sums of dy h and dy over the rows of one block, of one column: item = block * size + column.
template <class T>
struct ParameterBlockSums {
  const T* dy;
  const T* x;
  const RowStatistics<Wide<T>>* statistics;
  Wide<T>* weight_sums;
  Wide<T>* bias_sums;
  int64_t rows;
  int64_t size;
  int64_t block_rows;

  __device__ void operator()(int64_t item) const {
    using C = Wide<T>;
    const auto [block, column] = divide(item, size);
    const int64_t end = std::min(rows, (block + 1) * block_rows);
    C dweight = 0;
    C dbias = 0;
    FLOW_UNROLL_16
    for (int64_t row = block * block_rows; row < end; ++row) {
      const RowStatistics<C> s = statistics[row];
      const C g = widen(dy[row * size + column]);
      dweight += g * ((widen(x[row * size + column]) - s.mean) * s.scale);
      dbias += g;
    }
    weight_sums[item] = dweight;
    bias_sums[item] = dbias;
  }
};

template <class T>
struct AddBlocks {
  const Wide<T>* sums;
  T* target;
  int64_t blocks;
  int64_t size;

  __device__ void operator()(int64_t column) const {
    Wide<T> total = 0;
    FLOW_UNROLL_16
    for (int64_t block = 0; block < blocks; ++block)
      total += sums[block * size + column];
    target[column] = narrow<T>(total);
  }
};

template <bool kCenters>
void norm(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<NormAttrs>();
  const NormSizes sizes(ctx.in(0).shape(), attrs);
  const DenseInput x(ctx, 0);
  const DenseInput weight(ctx, 1);
  const DenseInput bias(ctx, kCenters ? 2 : 1);
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    if (sizes.size <= kMostHeld<T>) {
      const T* shift = kCenters ? bias.as<T>() : nullptr;
      const bool is_packed =
          has_packed_rows(x.as<T>(), sizes.size) && has_packed_rows(weight.as<T>(), sizes.size) &&
          has_packed_rows(shift, sizes.size) && has_packed_rows(ctx.out(0).as<T>(), sizes.size);
      for_each_held_row<T>(
          ctx, sizes.rows, sizes.size,
          NormHeldRow<T, kCenters>{x.as<T>(), weight.as<T>(), shift, ctx.out(0).as<T>(), sizes.size,
                                   attrs.eps, is_packed});
      return;
    }
    for_each_row(ctx, sizes.rows, sizes.size,
                 NormRow<T, kCenters>{x.as<T>(), weight.as<T>(), kCenters ? bias.as<T>() : nullptr,
                                      ctx.out(0).as<T>(), sizes.size, attrs.eps});
  });
}

template <bool kCenters>
void norm_backward(const KernelContext& ctx) {
  constexpr int64_t kBlockRows = 32;
  constexpr int64_t kMaxBlocks = 128;
  const auto& attrs = ctx.attrs_as<NormAttrs>();
  const NormSizes sizes(ctx.in(1).shape(), attrs);
  const DenseInput dy(ctx, 0);
  const DenseInput x(ctx, 1);
  const DenseInput weight(ctx, 2);
  const int64_t block_rows = std::max(kBlockRows, (sizes.rows + kMaxBlocks - 1) / kMaxBlocks);
  const int64_t blocks = (sizes.rows + block_rows - 1) / block_rows;
  dispatch_floating(ctx.in(1).meta->dtype, [&]<class T>() {
    using C = Wide<T>;
    const ScratchArray<RowStatistics<C>> statistics(ctx, sizes.rows);
    const ScratchArray<C> weight_sums(ctx, blocks * sizes.size);
    const ScratchArray<C> bias_sums(ctx, blocks * sizes.size);
    if (sizes.size <= kMostHeld<T>) {
      const bool is_packed = has_packed_rows(x.as<T>(), sizes.size) &&
                             has_packed_rows(dy.as<T>(), sizes.size) &&
                             has_packed_rows(weight.as<T>(), sizes.size) &&
                             has_packed_rows(ctx.out(0).as<T>(), sizes.size);
      for_each_held_row<T>(ctx, sizes.rows, sizes.size,
                           NormBackwardHeldRow<T, kCenters>{dy.as<T>(), x.as<T>(), weight.as<T>(),
                                                            ctx.out(0).as<T>(), statistics.data(),
                                                            sizes.size, attrs.eps, is_packed});
    } else {
      for_each_row(
          ctx, sizes.rows, sizes.size,
          NormBackwardRow<T, kCenters>{dy.as<T>(), x.as<T>(), weight.as<T>(), ctx.out(0).as<T>(),
                                       statistics.data(), sizes.size, attrs.eps});
    }
    for_each_element(
        ctx, blocks * sizes.size,
        ParameterBlockSums<T>{dy.as<T>(), x.as<T>(), statistics.data(), weight_sums.data(),
                              bias_sums.data(), sizes.rows, sizes.size, block_rows});
    for_each_element(ctx, sizes.size,
                     AddBlocks<T>{weight_sums.data(), ctx.out(1).as<T>(), blocks, sizes.size});
    if (kCenters) {
      for_each_element(ctx, sizes.size,
                       AddBlocks<T>{bias_sums.data(), ctx.out(2).as<T>(), blocks, sizes.size});
    }
  });
}

template <KernelFn kFn>
KernelChoice select(const KernelQuery& query) {
  return {parts_fit(query) ? kFn : nullptr};
}

}  // namespace

void register_norm_cuda(KernelTable& table) {
  table.add(kLayerNorm, DeviceType::kCuda, {"cuda", select<norm<true>>});
  table.add(kLayerNormBackward, DeviceType::kCuda, {"cuda", select<norm_backward<true>>});
  table.add(kRmsNorm, DeviceType::kCuda, {"cuda", select<norm<false>>});
  table.add(kRmsNormBackward, DeviceType::kCuda, {"cuda", select<norm_backward<false>>});
}

}  // namespace flow::ops
