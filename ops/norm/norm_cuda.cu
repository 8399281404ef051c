// layer_norm and rms_norm on CUDA devices. A team of threads handles each row, which it holds in
// registers, or reads again from cache if it is very long. The gradients of the parameters are
// added up by groups of rows, then over groups, in an order that depends only on the shape.
#include "ops/kernel/held_row_cuda.cuh"
#include "ops/local_parts.h"
#include "ops/norm/norm_op.h"

namespace flow::ops {

void register_norm_cuda(KernelTable& table);

namespace {

struct NormSizes {
  int64_t rows = 1;
  int64_t size = 1;

  NormSizes(const Shape& shape, int64_t num_dims) {
    for (int64_t i = 0; i < shape.size(); ++i)
      (i < shape.size() - num_dims ? rows : size) *= shape[i];
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

template <class T, class Y, bool kCenters>
struct NormRow {
  const T* x;
  const T* weight;
  const T* bias;
  Y* y;
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
      y[row * size + i] = narrow<Y>(h);
    }
  }
};

// The same of a row in registers, whose fillers are 0.
template <class T, bool kCenters>
__device__ RowStatistics<Wide<T>> statistics_of(const HeldRow<T>& row, int size, double eps,
                                                Team team) {
  using C = Wide<T>;
  const C count = static_cast<C>(size);
  C mean = 0;
  if constexpr (kCenters) {
    row.for_each(size, team, [&](C value) { mean += value; });
    mean = team.sum(mean) / count;
  }
  C square = 0;
  for_held_packs<T>(size, team, [&](int at, int slot) {
    FLOW_UNROLL
    for (int j = 0; j < HeldRow<T>::kCount; ++j) {
      const C d = row.at(slot, j) - mean;
      if (at + j < size) square += d * d;
    }
  });
  return {mean, C{1} / std::sqrt(team.sum(square) / count + static_cast<C>(eps))};
}

template <class T, class Y, bool kCenters>
struct NormHeldRow {
  const T* x;
  const T* weight;
  const T* bias;
  Y* y;
  int64_t size;
  double eps;
  bool is_packed;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    const int length = static_cast<int>(size);
    HeldRow<T> held;
    held.load(x + row * size, length, is_packed, team);
    const RowStatistics<C> s = statistics_of<T, kCenters>(held, length, eps, team);
    for_held_packs<T>(length, team, [&](int at, int slot) {
      Pack<T, HeldRow<T>::kCount> factor = {}, shift = {};
      Pack<Y, HeldRow<T>::kCount> result;
      if (weight != nullptr) factor = load_elements(weight, at, length, is_packed);
      if (bias != nullptr) shift = load_elements(bias, at, length, is_packed);
      FLOW_UNROLL
      for (int j = 0; j < HeldRow<T>::kCount; ++j) {
        C h = (held.at(slot, j) - s.mean) * s.scale;
        if (weight != nullptr) h *= widen(factor.element[j]);
        if (bias != nullptr) h += widen(shift.element[j]);
        result.element[j] = narrow<Y>(h);
      }
      store_elements(y + row * size, at, length, is_packed, result);
    });
  }
};

template <class C>
struct TwoSums {
  C first;
  C second;
};

// Threads of the largest team that holds sums besides rows.
constexpr int kMostAdders = 256;

// dx of the rows of a group, and the sums of dy h and dy over them. G is the type of dy.
template <class T, class G, bool kCenters>
struct NormBackwardGroup {
  const G* dy;
  const T* x;
  const T* weight;
  T* dx;
  Wide<T>* weight_sums;
  Wide<T>* bias_sums;
  int64_t rows;
  int64_t size;
  int64_t group_rows;
  double eps;
  bool is_packed;

  __device__ void operator()(int64_t group, Team team) const {
    using C = Wide<T>;
    constexpr int kCount = HeldRow<T>::kCount;
    const int length = static_cast<int>(size);
    C dweight[kHeldPacks][kCount] = {};
    C dbias[kHeldPacks][kCount] = {};
    const int64_t end = std::min(rows, (group + 1) * group_rows);
    for (int64_t row = group * group_rows; row < end; ++row)
      add_row(row, length, team, dweight, dbias);
    for_held_packs<T>(length, team, [&](int at, int slot) {
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j) {
        if (at + j >= length) continue;
        weight_sums[group * size + at + j] = dweight[slot][j];
        if constexpr (kCenters) bias_sums[group * size + at + j] = dbias[slot][j];
      }
    });
  }

 private:
  __device__ void add_row(int64_t row, int length, Team team,
                          Wide<T> (&dweight)[kHeldPacks][HeldRow<T>::kCount],
                          Wide<T> (&dbias)[kHeldPacks][HeldRow<T>::kCount]) const {
    using C = Wide<T>;
    constexpr int kCount = HeldRow<T>::kCount;
    HeldRow<T> held, gradient;
    held.load(x + row * size, length, is_packed, team);
    gradient.load_as(dy + row * size, length, is_packed, team);
    const RowStatistics<C> s = statistics_of<T, kCenters>(held, length, eps, team);
    const auto factors = [&](int at) {
      return weight != nullptr ? load_elements(weight, at, length, is_packed) : Pack<T, kCount>{};
    };
    const auto weighted = [&](int slot, int j, const Pack<T, kCount>& factor) {
      const C g = gradient.at(slot, j);  // 0 after the end of the row
      return weight != nullptr ? rounded_product(g, static_cast<C>(widen(factor.element[j]))) : g;
    };
    TwoSums<C> sums{0, 0};  // of g and of g h
    for_held_packs<T>(length, team, [&](int at, int slot) {
      const Pack<T, kCount> factor = factors(at);
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j) {
        const C h = (held.at(slot, j) - s.mean) * s.scale;
        const C g = weighted(slot, j, factor);
        sums.first += g;
        sums.second += g * h;
        dweight[slot][j] += gradient.at(slot, j) * h;
        if constexpr (kCenters) dbias[slot][j] += gradient.at(slot, j);
      }
    });
    sums = team.reduce(sums, [](const TwoSums<C>& a, const TwoSums<C>& b) {
      return TwoSums<C>{a.first + b.first, a.second + b.second};
    });
    const C count = static_cast<C>(size);
    const C mean_g = kCenters ? sums.first / count : C{0};
    const C mean_gh = sums.second / count;
    for_held_packs<T>(length, team, [&](int at, int slot) {
      const Pack<T, kCount> factor = factors(at);
      Pack<T, kCount> result;
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j) {
        const C h = (held.at(slot, j) - s.mean) * s.scale;
        const C g = weighted(slot, j, factor);
        result.element[j] = narrow<T>(s.scale * ((g - mean_g) - h * mean_gh));
      }
      store_elements(dx + row * size, at, length, is_packed, result);
    });
  }
};

// dx of a row; keeps its statistics for the gradients of the parameters.
template <class T, class G, bool kCenters>
struct NormBackwardRow {
  const G* dy;
  const T* x;
  const T* weight;
  T* dx;
  RowStatistics<Wide<T>>* statistics;
  int64_t size;
  double eps;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    const T* source = x + row * size;
    const G* gradient = dy + row * size;
    const RowStatistics<C> s = statistics_of<T, kCenters>(source, size, eps, team);
    if (team.leads()) statistics[row] = s;
    const auto weighted = [&](int64_t i) {
      const C g = widen(gradient[i]);
      return weight != nullptr ? rounded_product(g, static_cast<C>(widen(weight[i]))) : g;
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
template <class T, class G>
struct ParameterBlockSums {
  const G* dy;
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

constexpr int kSumColumns = 32;
constexpr int kSumLines = 32;

// target[column] = the sum of sums[group * size + column] over groups. A block handles kSumColumns
// columns; each of its lines adds up every kSumLines-th group.
template <class T>
__global__ void __launch_bounds__(kSumColumns* kSumLines)
    add_groups(const Wide<T>* sums, T* target, int64_t groups, int64_t size) {
  __shared__ Wide<T> parts[kSumLines][kSumColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  Wide<T> total = 0;
  if (column < size) {
    FLOW_UNROLL_16
    for (int64_t group = threadIdx.y; group < groups; group += kSumLines)
      total += sums[group * size + column];
  }
  parts[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= size) return;
  FLOW_UNROLL
  for (int line = 1; line < kSumLines; ++line)
    total += parts[line][threadIdx.x];
  target[column] = narrow<T>(total);
}

template <class T>
void add_up(const KernelContext& ctx, const Wide<T>* sums, T* target, int64_t groups,
            int64_t size) {
  const auto blocks = static_cast<unsigned>((size + kSumColumns - 1) / kSumColumns);
  cuda::launch(add_groups<T>, blocks, dim3(kSumColumns, kSumLines), 0, cuda::stream_of(ctx), sums,
               target, groups, size);
}

// Y is the type of the result.
template <class T, class Y, bool kCenters>
void norm_rows(const KernelContext& ctx, int64_t num_dims, double eps) {
  const NormSizes sizes(ctx.in(0).shape(), num_dims);
  const DenseInput x(ctx, 0);
  const DenseInput weight(ctx, 1);
  const DenseInput bias(ctx, kCenters ? 2 : 1);
  const T* shift = kCenters ? bias.as<T>() : nullptr;
  Y* const y = ctx.out(0).as<Y>();
  if (sizes.size > kMostHeld<T>) {
    for_each_row(ctx, sizes.rows, sizes.size,
                 NormRow<T, Y, kCenters>{x.as<T>(), weight.as<T>(), shift, y, sizes.size, eps});
    return;
  }
  const bool is_packed = has_packed_rows(x.as<T>(), sizes.size) &&
                         has_packed_rows(weight.as<T>(), sizes.size) &&
                         has_packed_rows(shift, sizes.size) && are_aligned(kPackCount<T>, y);
  for_each_held_row<T>(
      ctx, sizes.rows, sizes.size,
      NormHeldRow<T, Y, kCenters>{x.as<T>(), weight.as<T>(), shift, y, sizes.size, eps, is_packed});
}

template <bool kCenters>
void norm(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<NormAttrs>();
  dispatch_floating(ctx.in(0).meta->dtype,
                    [&]<class T>() { norm_rows<T, T, kCenters>(ctx, attrs.num_dims, attrs.eps); });
}

void norm_narrow(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<NarrowNormAttrs>();
  if (attrs.dtype == DType::kBFloat16) {
    norm_rows<float, BFloat16, true>(ctx, attrs.num_dims, attrs.eps);
  } else {
    norm_rows<float, Float16, true>(ctx, attrs.num_dims, attrs.eps);
  }
}

// The number of rows whose gradients are added up before they are added to those of other rows:
// few groups, because their sums go through memory, but enough to keep a device busy.
template <class T>
int64_t group_rows_of(const NormSizes& sizes) {
  constexpr int64_t kThreads = 1 << 16;
  constexpr int64_t kLeastRows = 8;
  const int64_t groups =
      std::clamp<int64_t>(sizes.rows / kLeastRows, 1, kThreads / holders_of<T>(sizes.size));
  return (sizes.rows + groups - 1) / groups;
}

// G is the type of dy.
template <class T, class G, bool kCenters>
void norm_backward_rows(const KernelContext& ctx) {
  using C = Wide<T>;
  const auto& attrs = ctx.attrs_as<NormAttrs>();
  const NormSizes sizes(ctx.in(1).shape(), attrs.num_dims);
  const DenseInput dy(ctx, 0);
  const DenseInput x(ctx, 1);
  const DenseInput weight(ctx, 2);
  const bool is_held = sizes.size <= kMostHeld<T, kMostAdders>;
  const int64_t group_rows =
      is_held ? group_rows_of<T>(sizes) : std::max<int64_t>(32, (sizes.rows + 127) / 128);
  const int64_t groups = sizes.rows == 0 ? 0 : (sizes.rows + group_rows - 1) / group_rows;
  const ScratchArray<C> weight_sums(ctx, groups * sizes.size);
  const ScratchArray<C> bias_sums(ctx, groups * sizes.size);
  T* dx = ctx.out(0).as<T>();
  if (is_held) {
    const bool is_packed =
        has_packed_rows(x.as<T>(), sizes.size) && are_aligned(kPackCount<T>, dy.as<G>()) &&
        has_packed_rows(weight.as<T>(), sizes.size) && has_packed_rows(dx, sizes.size);
    for_each_held_row<T, kMostAdders>(
        ctx, groups, sizes.size,
        NormBackwardGroup<T, G, kCenters>{dy.as<G>(), x.as<T>(), weight.as<T>(), dx,
                                          weight_sums.data(), bias_sums.data(), sizes.rows,
                                          sizes.size, group_rows, attrs.eps, is_packed});
  } else {
    const ScratchArray<RowStatistics<C>> statistics(ctx, sizes.rows);
    for_each_row(ctx, sizes.rows, sizes.size,
                 NormBackwardRow<T, G, kCenters>{dy.as<G>(), x.as<T>(), weight.as<T>(), dx,
                                                 statistics.data(), sizes.size, attrs.eps});
    for_each_element(
        ctx, groups * sizes.size,
        ParameterBlockSums<T, G>{dy.as<G>(), x.as<T>(), statistics.data(), weight_sums.data(),
                                 bias_sums.data(), sizes.rows, sizes.size, group_rows});
  }
  add_up(ctx, weight_sums.data(), ctx.out(1).as<T>(), groups, sizes.size);
  if (kCenters) add_up(ctx, bias_sums.data(), ctx.out(2).as<T>(), groups, sizes.size);
}

template <bool kCenters>
void norm_backward(const KernelContext& ctx) {
  dispatch_floating(ctx.in(1).meta->dtype,
                    [&]<class T>() { norm_backward_rows<T, T, kCenters>(ctx); });
}

void norm_narrow_backward(const KernelContext& ctx) {
  if (ctx.in(0).meta->dtype == DType::kBFloat16) {
    norm_backward_rows<float, BFloat16, true>(ctx);
  } else {
    norm_backward_rows<float, Float16, true>(ctx);
  }
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
  table.add(kLayerNormNarrow, DeviceType::kCuda, {"cuda", select<norm_narrow>});
  table.add(kLayerNormNarrowBackward, DeviceType::kCuda, {"cuda", select<norm_narrow_backward>});
}

}  // namespace flow::ops
