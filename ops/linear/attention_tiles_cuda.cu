// Attention on tensor cores, for 16-bit operands of widths up to 128. A block takes 64 queries, 16
// for each warp, and walks the keys in tiles that it holds in shared memory; scores stay in
// registers (Dao 2023, "FlashAttention-2"). Weights are rounded to the operands' type before they
// multiply values; all sums are float32. Gradients compute scores again: dq by queries, dk and dv
// by keys, so that each sum has a fixed order.
#include <cstdint>

#include "ops/kernel/mma_cuda.cuh"
#include "ops/kernel/pack_cuda.cuh"
#include "ops/linear/attention_cuda.cuh"
#include "ops/linear/attention_cudnn.h"
#include "ops/linear/attention_layout.h"
#include "ops/local_parts.h"

namespace flow::ops {

void register_attention_tiles_cuda(KernelTable& table);

namespace {

constexpr int kThreads = 128;
constexpr int kTile = 64;  // queries (keys) whose results a block computes
constexpr int kWarpRows = 16;
constexpr int kMostColumns = 128;
constexpr float kLog2E = 1.44269504088896341F;

// Elements from one row of a tile in shared memory to the next: 16 bytes more than the row, so that
// neighbouring rows begin in different banks.
template <int kDim>
constexpr int kPitch = kDim + 8;

template <class T>
struct TileMatrices : Matrices<T> {
  bool is_packed;  // rows can be read 16 bytes at a time

  explicit TileMatrices(const TensorView& view) : Matrices<T>(view) {
    is_packed = this->column_stride == 1 && this->width % 8 == 0 && this->row_stride % 8 == 0 &&
                reinterpret_cast<uintptr_t>(view.data) % 16 == 0;
    for (int64_t d = 0; d + 2 < view.shape().size(); ++d)
      is_packed = is_packed && (view.shape()[d] == 1 || view.strides()[d] % 8 == 0);
  }
};

// Begins to bring rows first to first + kCount of a matrix of `rows` rows to shared memory, with
// zeros around them. The elements are there after wait_for_copies() and a barrier.
template <int kCount, int kDim, class T>
__device__ void load_tile(uint16_t* tile, const TileMatrices<const T>& m, const T* matrix,
                          int64_t first, int64_t rows) {
  constexpr int kChunks = kDim / 8;
  FLOW_UNROLL
  for (int i = 0; i < kCount * kChunks; i += kThreads) {
    const int chunk = i + static_cast<int>(threadIdx.x);
    const int column = chunk % kChunks * 8;
    const int64_t row = first + chunk / kChunks;
    uint16_t* to = tile + chunk / kChunks * kPitch<kDim> + column;
    if (m.is_packed) {
      const bool is_inside = row < rows && column < m.width;
      begin_copy(to, is_inside ? matrix + row * m.row_stride + column : matrix, is_inside);
      continue;
    }
    for (int j = 0; j < 8; ++j) {
      const bool is_inside = row < rows && column + j < m.width;
      to[j] = is_inside ? matrix[row * m.row_stride + (column + j) * m.column_stride].bits
                        : uint16_t{0};
    }
  }
}

// c = a b^T, for 16 rows of a tile `a` and the rows of a tile `b`.
template <class T, int kDim, int kColumns>
__device__ void multiply_transposed(float (&c)[kColumns / 8][4], const uint16_t* a,
                                    const uint16_t* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint16_t* a_row = a + lane % 16 * kPitch<kDim> + lane / 16 * 8;
  const uint16_t* b_row = b + (lane / 16 * 8 + lane % 8) * kPitch<kDim> + lane / 8 % 2 * 8;
  FLOW_UNROLL
  for (int n = 0; n < kColumns / 8; ++n)
    c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
  FLOW_UNROLL
  for (int k = 0; k < kDim; k += 16) {
    uint32_t left[4];
    load_tiles<false>(left, a_row + k);
    FLOW_UNROLL
    for (int n = 0; n < kColumns; n += 16) {
      uint32_t right[4];
      load_tiles<false>(right, b_row + n * kPitch<kDim> + k);
      multiply_add<T>(c[n / 8], left, right[0], right[1]);
      multiply_add<T>(c[n / 8 + 1], left, right[2], right[3]);
    }
  }
}

// c += a b, where `a` is a result of multiply_transposed, which is rounded to T, and `b` a tile.
template <class T, int kDim, int kColumns>
__device__ void add_product(float (&c)[kDim / 8][4], const float (&a)[kColumns / 8][4],
                            const uint16_t* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint16_t* b_row = b + lane % 16 * kPitch<kDim> + lane / 16 * 8;
  FLOW_UNROLL
  for (int k = 0; k < kColumns; k += 16) {
    const float(&low)[4] = a[k / 8];
    const float(&high)[4] = a[k / 8 + 1];
    const uint32_t left[4] = {pack_pair<T>(low[0], low[1]), pack_pair<T>(low[2], low[3]),
                              pack_pair<T>(high[0], high[1]), pack_pair<T>(high[2], high[3])};
    FLOW_UNROLL
    for (int n = 0; n < kDim; n += 16) {
      uint32_t right[4];
      load_tiles<true>(right, b_row + k * kPitch<kDim> + n);
      multiply_add<T>(c[n / 8], left, right[0], right[1]);
      multiply_add<T>(c[n / 8 + 1], left, right[2], right[3]);
    }
  }
}

// Writes the warp's 16 rows, from row `first` on: those of elements 0 and 1 times factor[0], the
// others times factor[1].
template <class T, int kDim>
__device__ void store_rows(const TileMatrices<T>& m, T* matrix, int64_t first, int64_t rows,
                           const float (&c)[kDim / 8][4], const float (&factor)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  FLOW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t row = first + lane / 4 + 8 * half;
    if (row >= rows) continue;
    T* to = matrix + row * m.row_stride;
    FLOW_UNROLL
    for (int n = 0; n < kDim / 8; ++n) {
      const int column = n * 8 + lane % 4 * 2;
      const float x = c[n][2 * half] * factor[half];
      const float y = c[n][2 * half + 1] * factor[half];
      if (m.is_packed) {
        if (column < m.width) *reinterpret_cast<PairBits*>(to + column) = pack_pair<T>(x, y);
        continue;
      }
      if (column < m.width) to[column * m.column_stride] = narrow<T>(x);
      if (column + 1 < m.width) to[(column + 1) * m.column_stride] = narrow<T>(y);
    }
  }
}

// `x`, moved into the columns of a tile that begins at `begin`.
__device__ inline int within_tile(int64_t x, int64_t begin, int columns) {
  const int64_t at = x - begin;
  return at < 0 ? 0 : at < columns ? static_cast<int>(at) : columns;
}

// A value of each of the lane's two rows, joined over the four lanes that share the rows.
__device__ inline float largest_of_row(float x) {
  x = fmaxf(x, exchange(x, 1));
  return fmaxf(x, exchange(x, 2));
}

__device__ inline float sum_of_row(float x) {
  x += exchange(x, 1);
  return x + exchange(x, 2);
}

template <class T>
struct AttendOperands {
  AttentionSizes sizes;
  TileMatrices<const T> q, k, v;
  TileMatrices<T> y;
  float* lse;
};

// Scores are kept in units of log 2. Blocks with many keys come first.
template <class T, int kDim>
__global__ void __launch_bounds__(kThreads, kDim == 64 ? 3 : 2)
    attend_tiles(AttendOperands<T> in, int64_t tiles) {
  constexpr int kElements = kTile * kPitch<kDim>;
  FLOW_CUDA_DYNAMIC_SHARED(uint16_t, queries);
  uint16_t* const tiles_of_keys = queries + kElements;  // those in use and those to come
  uint16_t* const tiles_of_values = tiles_of_keys + 2 * kElements;
  const AttentionSizes& sizes = in.sizes;
  const auto [position, b] = divide(blockIdx.x, sizes.batch);
  const int64_t first = (tiles - 1 - position) * kTile;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t own = first + warp * kWarpRows;
  const float scale = static_cast<float>(sizes.scale) * kLog2E;
  const float nothing = -std::numeric_limits<float>::infinity();
  const T* const all_keys = in.k.matrix(b);
  const T* const all_values = in.v.matrix(b);
  load_tile<kTile, kDim>(queries, in.q, in.q.matrix(b), first, sizes.queries);
  float sum[kDim / 8][4] = {};
  float largest[2] = {nothing, nothing};
  float total[2] = {0, 0};
  const int64_t end = sizes.visible_keys(first + kTile - 1);
  const auto load = [&](int64_t begin) {
    const int at = begin / kTile % 2 == 0 ? 0 : kElements;
    load_tile<kTile, kDim>(tiles_of_keys + at, in.k, all_keys, begin, sizes.keys);
    load_tile<kTile, kDim>(tiles_of_values + at, in.v, all_values, begin, sizes.keys);
    end_copy_group();
  };
  load(0);
  for (int64_t begin = 0; begin < end; begin += kTile) {
    if (begin + kTile < end) {
      load(begin + kTile);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    const uint16_t* const keys = tiles_of_keys + (begin / kTile % 2 == 0 ? 0 : kElements);
    const uint16_t* const values = tiles_of_values + (begin / kTile % 2 == 0 ? 0 : kElements);
    float score[kTile / 8][4];
    multiply_transposed<T, kDim, kTile>(score, queries + warp * kWarpRows * kPitch<kDim>, keys);
    FLOW_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int visible = within_tile(sizes.visible_keys(own + lane / 4 + 8 * half), begin, kTile);
      float most = largest[half];
      FLOW_UNROLL
      for (int i = 0; i < kTile / 4; ++i) {
        float& x = score[i / 2][2 * half + i % 2];
        x = i / 2 * 8 + lane % 4 * 2 + i % 2 < visible ? x * scale : nothing;
        most = fmaxf(most, x);
      }
      most = largest_of_row(most);
      const float base = most == nothing ? 0 : most;
      const float shrink = exp2_approximately(largest[half] - base);
      float weights = 0;
      FLOW_UNROLL
      for (int i = 0; i < kTile / 4; ++i) {
        float& x = score[i / 2][2 * half + i % 2];
        x = exp2_approximately(x - base);
        weights += x;
      }
      largest[half] = most;
      total[half] = total[half] * shrink + weights;
      FLOW_UNROLL
      for (int n = 0; n < kDim / 8; ++n) {
        sum[n][2 * half] *= shrink;
        sum[n][2 * half + 1] *= shrink;
      }
    }
    add_product<T, kDim, kTile>(sum, score, values);
    __syncthreads();  // before the tiles are overwritten
  }
  float factor[2];
  FLOW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float all = sum_of_row(total[half]);
    const int64_t row = own + lane / 4 + 8 * half;
    factor[half] = 1 / all;
    if (lane % 4 == 0 && row < sizes.queries) {
      in.lse[b * sizes.queries + row] = largest[half] / kLog2E + std::log(all);
    }
  }
  store_rows<T, kDim>(in.y, in.y.matrix(b), own, sizes.queries, sum, factor);
}

template <class T>
struct GradientOperands {
  AttentionSizes sizes;
  TileMatrices<const T> q, k, v, dy;
  const float* lse;
  const float* dots;  // dot(dy, y) of each query
};

// dq of 64 queries, or dk and dv of 64 keys. The block holds two tiles: queries and dy (keys and
// values), and walks those of the others.
template <class T, int kDim, int kColumns, bool kByKeys>
__global__ void __launch_bounds__(kThreads, kByKeys      ? 2
                                            : kDim == 64 ? 4
                                                         : 3)
    gradient_tiles(GradientOperands<T> in, TileMatrices<T> dx, TileMatrices<T> dv, int64_t tiles) {
  constexpr int kElements = kTile * kPitch<kDim>;
  constexpr int kWalked = 2 * kColumns * kPitch<kDim>;  // tiles in use and tiles to come
  FLOW_CUDA_DYNAMIC_SHARED(uint16_t, held);
  uint16_t* const held_outer = held + kElements;
  uint16_t* const walked_tiles = held_outer + kElements;
  uint16_t* const walked_outer_tiles = walked_tiles + kWalked;
  float* const all_statistics = reinterpret_cast<float*>(walked_outer_tiles + kWalked);
  const AttentionSizes& sizes = in.sizes;
  const auto [position, b] = divide(blockIdx.x, sizes.batch);
  const int64_t first = (kByKeys ? position : tiles - 1 - position) * kTile;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t own = first + warp * kWarpRows;
  const float scale = static_cast<float>(sizes.scale) * kLog2E;
  const TileMatrices<const T>& inner = kByKeys ? in.k : in.q;
  const TileMatrices<const T>& outer = kByKeys ? in.v : in.dy;
  const TileMatrices<const T>& walked_in = kByKeys ? in.q : in.k;
  const TileMatrices<const T>& walked_outer_in = kByKeys ? in.dy : in.v;
  const int64_t rows = kByKeys ? sizes.keys : sizes.queries;
  const int64_t columns = kByKeys ? sizes.queries : sizes.keys;
  const T* const all_walked = walked_in.matrix(b);
  const T* const all_walked_outer = walked_outer_in.matrix(b);
  const float* const lse = in.lse + b * sizes.queries;
  const float* const dots = in.dots + b * sizes.queries;
  load_tile<kTile, kDim>(held, inner, inner.matrix(b), first, rows);
  load_tile<kTile, kDim>(held_outer, outer, outer.matrix(b), first, rows);
  float row_lse[2] = {};
  float row_dot[2] = {};
  FLOW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t row = own + lane / 4 + 8 * half;
    if (kByKeys || row >= rows) continue;
    row_lse[half] = lse[row] * kLog2E;
    row_dot[half] = dots[row];
  }
  float sum[kDim / 8][4] = {};
  float value_sum[kByKeys ? kDim / 8 : 1][4] = {};
  const int64_t start = kByKeys ? sizes.first_seeing(first) / kColumns * kColumns : 0;
  const int64_t end = kByKeys ? columns : sizes.visible_keys(first + kTile - 1);
  const auto load = [&](int64_t begin) {
    const int half = begin / kColumns % 2 == 0 ? 0 : 1;
    uint16_t* const to = walked_tiles + half * kWalked / 2;
    uint16_t* const to_outer = walked_outer_tiles + half * kWalked / 2;
    load_tile<kColumns, kDim>(to, walked_in, all_walked, begin, columns);
    load_tile<kColumns, kDim>(to_outer, walked_outer_in, all_walked_outer, begin, columns);
    end_copy_group();
    if (kByKeys && threadIdx.x < kColumns) {
      float* const numbers = all_statistics + half * 2 * kColumns + threadIdx.x;
      const int64_t query = begin + threadIdx.x;
      numbers[0] = query < columns ? lse[query] * kLog2E : 0;
      numbers[kColumns] = query < columns ? dots[query] : 0;
    }
  };
  load(start);
  for (int64_t begin = start; begin < end; begin += kColumns) {
    if (begin + kColumns < end) {
      load(begin + kColumns);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();
    const int current = begin / kColumns % 2 == 0 ? 0 : 1;
    const uint16_t* const walked = walked_tiles + current * kWalked / 2;
    const uint16_t* const walked_outer = walked_outer_tiles + current * kWalked / 2;
    const float* const statistics = all_statistics + current * 2 * kColumns;
    float weight[kColumns / 8][4];
    float slope[kColumns / 8][4];
    const int at = warp * kWarpRows * kPitch<kDim>;
    multiply_transposed<T, kDim, kColumns>(weight, held + at, walked);
    multiply_transposed<T, kDim, kColumns>(slope, held_outer + at, walked_outer);
    FLOW_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int64_t row = own + lane / 4 + 8 * half;
      const int seen_from = kByKeys ? within_tile(sizes.first_seeing(row), begin, kColumns) : 0;
      const int seen_to = within_tile(kByKeys ? columns : sizes.visible_keys(row), begin, kColumns);
      FLOW_UNROLL
      for (int i = 0; i < kColumns / 4; ++i) {
        const int column = i / 2 * 8 + lane % 4 * 2 + i % 2;
        const bool is_seen = column >= seen_from && column < seen_to;
        float& p = weight[i / 2][2 * half + i % 2];
        float& d = slope[i / 2][2 * half + i % 2];
        const float shift = kByKeys ? statistics[column] : row_lse[half];
        const float dot = kByKeys ? statistics[kColumns + column] : row_dot[half];
        p = is_seen ? exp2_approximately(p * scale - shift) : 0;
        d = is_seen ? p * (d - dot) : 0;
      }
    }
    add_product<T, kDim, kColumns>(sum, slope, walked);
    if constexpr (kByKeys) add_product<T, kDim, kColumns>(value_sum, weight, walked_outer);
    __syncthreads();  // before the tiles are overwritten
  }
  const float factor = static_cast<float>(sizes.scale);
  store_rows<T, kDim>(dx, dx.matrix(b), own, rows, sum, {factor, factor});
  if constexpr (kByKeys) store_rows<T, kDim>(dv, dv.matrix(b), own, rows, value_sum, {1, 1});
}

// dot(dy, y) of each query, by eight threads, of which each takes packs of eight elements.
template <class T>
struct DotRows {
  AttentionSizes sizes;
  TileMatrices<const T> dy, y;
  float* dots;

  static constexpr int64_t kTeam = 8;

  __device__ void operator()(int64_t item) const {
    const auto [index, part] = divide(item, kTeam);
    float dot = 0;
    if (index < sizes.batch * sizes.queries) {
      const auto [b, row] = divide(index, sizes.queries);
      const T* left = dy.matrix(b) + row * dy.row_stride;
      const T* right = y.matrix(b) + row * y.row_stride;
      const bool is_packed = dy.is_packed && y.is_packed;
      for (int64_t c = part * 8; c < y.width; c += kTeam * 8) {
        if (is_packed) {
          const auto u = load_pack<8>(left + c, 0);
          const auto v = load_pack<8>(right + c, 0);
          FLOW_UNROLL
          for (int j = 0; j < 8; ++j)
            dot += widen(u.element[j]) * widen(v.element[j]);
          continue;
        }
        for (int64_t j = c; j < c + 8 && j < y.width; ++j)
          dot += widen(left[j * dy.column_stride]) * widen(right[j * y.column_stride]);
      }
    }
    for (int distance = 1; distance < kTeam; distance *= 2)
      dot += exchange(dot, distance);
    if (part == 0 && index < sizes.batch * sizes.queries) dots[index] = dot;
  }

  // The number of items: whole warps, whose lanes exchange their sums.
  int64_t items() const { return (sizes.batch * sizes.queries * kTeam + 31) / 32 * 32; }
};

int64_t tiles_of(int64_t rows) {
  return (rows + kTile - 1) / kTile;
}

// Calls fn with the width of tiles for rows of up to `width` elements, as a type.
template <class Fn>
void dispatch_width(int64_t width, const Fn& fn) {
  if (width <= 64) return fn(std::integral_constant<int, 64>());
  fn(std::integral_constant<int, kMostColumns>());
}

template <class Fn>
void dispatch_16_bit(DType dtype, const Fn& fn) {
  if (dtype == DType::kBFloat16) return fn.template operator()<BFloat16>();
  fn.template operator()<Float16>();
}

void attend(const KernelContext& ctx) {
  const AttentionSizes sizes(*ctx.in(0).meta, *ctx.in(1).meta, ctx.attrs_as<AttentionAttrs>());
  const int64_t tiles = tiles_of(sizes.queries);
  dispatch_16_bit(ctx.in(0).meta->dtype, [&]<class T>() {
    const AttendOperands<T> in{sizes,
                               TileMatrices<const T>(ctx.in(0)),
                               TileMatrices<const T>(ctx.in(1)),
                               TileMatrices<const T>(ctx.in(2)),
                               TileMatrices<T>(ctx.out(0)),
                               ctx.out(1).as<float>()};
    dispatch_width(
        std::max(in.q.width, in.v.width), [&]<int kDim>(std::integral_constant<int, kDim>) {
          cuda::launch(attend_tiles<T, kDim>, static_cast<unsigned>(sizes.batch * tiles), kThreads,
                       5 * kTile * kPitch<kDim> * sizeof(T), cuda::stream_of(ctx), in, tiles);
        });
  });
}

template <class T, int kDim, bool kByKeys>
void run_gradients(const KernelContext& ctx, const GradientOperands<T>& in,
                   const TileMatrices<T>& dx, const TileMatrices<T>& dv) {
  constexpr int kColumns = 32;  // of a tile that is walked: what registers hold
  constexpr size_t kShared =
      (2 * kTile + 4 * kColumns) * kPitch<kDim> * sizeof(T) + 4 * kColumns * sizeof(float);
  const int64_t tiles = tiles_of(kByKeys ? in.sizes.keys : in.sizes.queries);
  cuda::launch(gradient_tiles<T, kDim, kColumns, kByKeys>,
               static_cast<unsigned>(in.sizes.batch * tiles), kThreads, kShared,
               cuda::stream_of(ctx), in, dx, dv, tiles);
}

void attend_backward(const KernelContext& ctx) {
  const AttentionSizes sizes(*ctx.in(1).meta, *ctx.in(2).meta, ctx.attrs_as<AttentionAttrs>());
  const DenseInput lse(ctx, 5);
  const int64_t queries = sizes.batch * sizes.queries;
  dispatch_16_bit(ctx.in(0).meta->dtype, [&]<class T>() {
    const ScratchArray<float> dots(ctx, queries);
    const TileMatrices<const T> dy(ctx.in(0));
    const GradientOperands<T> in{sizes,
                                 TileMatrices<const T>(ctx.in(1)),
                                 TileMatrices<const T>(ctx.in(2)),
                                 TileMatrices<const T>(ctx.in(3)),
                                 dy,
                                 lse.as<float>(),
                                 dots.data()};
    const DotRows<T> dot_rows{sizes, dy, TileMatrices<const T>(ctx.in(4)), dots.data()};
    for_each_element(ctx, dot_rows.items(), dot_rows);
    const TileMatrices<T> dq(ctx.out(0)), dk(ctx.out(1)), dv(ctx.out(2));
    dispatch_width(std::max(in.q.width, in.v.width),
                   [&]<int kDim>(std::integral_constant<int, kDim>) {
                     run_gradients<T, kDim, false>(ctx, in, dq, dv);
                     run_gradients<T, kDim, true>(ctx, in, dk, dv);
                   });
  });
}

template <bool kBackward>
KernelChoice select(const KernelQuery& query) {
  constexpr int kFirst = kBackward ? 1 : 0;
  const TensorMeta& q = query.input(kFirst);
  const Shape& v = query.input(kFirst + 2).local_shape;
  const bool is_16_bit = q.dtype == DType::kFloat16 || q.dtype == DType::kBFloat16;
  if (!is_16_bit || !parts_fit(query) || std::max(q.local_shape.back(), v.back()) > kMostColumns) {
    return {};
  }
  return {kBackward ? attend_backward : attend, nullptr, attention_outputs(query)};
}

template <bool kBackward>
KernelChoice select_cudnn(const KernelQuery& query) {
  return select_attention_cudnn(query, select<kBackward>(query));
}

}  // namespace

void register_attention_tiles_cuda(KernelTable& table) {
  table.add(kAttention, DeviceType::kCuda, {"tiles", select<false>});
  table.add(kAttentionBackward, DeviceType::kCuda, {"tiles", select<true>});
  table.add(kAttention, DeviceType::kCuda, {"cudnn", select_cudnn<false>});
  table.add(kAttentionBackward, DeviceType::kCuda, {"cudnn", select_cudnn<true>});
}

}  // namespace flow::ops
