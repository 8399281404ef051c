// Copies between tensors whose elements are neighbours along different dims, such as a transposed
// matrix. Each block moves a square tile. Its threads read and write packs of 16 bytes: each thread
// transposes a square of elements in registers, and the threads exchange packs in shared memory.
#pragma once

#include "ops/elementwise/elementwise_cuda.cuh"
#include "ops/kernel/held_row_cuda.cuh"

namespace flow::ops {

// y[outer_y + b * y_step + a] = x[outer_x + a * x_step + b]
struct TransposedBox {
  int64_t a_size = 0;
  int64_t b_size = 0;
  int64_t x_step = 0;
  int64_t y_step = 0;
  int64_t a_tiles = 0;
  int64_t b_tiles = 0;
  int64_t tiles = 0;
  Places outer_x;
  Places outer_y;
};

// The packs along each side of a tile. There is one thread for each square of elements that is as
// wide as a pack.
inline constexpr int kTilePacks = 16;
inline constexpr int kTileThreads = kTilePacks * kTilePacks;

template <class T>
inline constexpr int kTileSide = kTilePacks* kPackCount<T>;

// Where a row of the tile in shared memory has its pack `pack`. Rows are shifted against each
// other, so that the threads of a warp use different banks in both directions.
template <class T>
__device__ inline int tile_place(int row, int pack) {
  return row * kTilePacks + (pack ^ (row / kPackCount<T> & 7));
}

// kIsPacked: sizes, steps and addresses are multiples of a pack.
template <class T, bool kIsPacked>
__global__ void __launch_bounds__(kTileThreads, sizeof(T) == 2 ? 3 : 4)
    copy_transposed_tiles(TransposedBox box, T* y, const T* x) {
  constexpr int kCount = kPackCount<T>;
  __shared__ Pack<T, kCount> tile[kTileSide<T> * kTilePacks];
  const int column = static_cast<int>(threadIdx.x) % kTilePacks;
  const int line = static_cast<int>(threadIdx.x) / kTilePacks;
  for (int64_t number = blockIdx.x; number < box.tiles; number += gridDim.x) {
    const auto [rest, a_tile] = divide(number, box.a_tiles);
    const auto [outer, b_tile] = divide(rest, box.b_tiles);
    const int64_t a_begin = a_tile * kTileSide<T>;
    const int64_t b_begin = b_tile * kTileSide<T>;

    Pack<T, kCount> square[kCount];
    const int64_t b = b_begin + column * kCount;
    const T* const from = x + box.outer_x(outer);
    FLOW_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const int64_t a = a_begin + line * kCount + k;
      if (a < box.a_size && b < box.b_size)
        square[k] = load_elements(from + a * box.x_step, b, box.b_size, kIsPacked);
    }
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j) {
      Pack<T, kCount> turned;
      FLOW_UNROLL
      for (int k = 0; k < kCount; ++k)
        turned.element[k] = square[k].element[j];
      tile[tile_place<T>(column * kCount + j, line)] = turned;
    }
    __syncthreads();

    const int64_t a = a_begin + column * kCount;
    T* const to = y + box.outer_y(outer);
    FLOW_UNROLL
    for (int k = 0; k < kCount; ++k) {
      const int row = k * kTilePacks + line;
      if (a < box.a_size && b_begin + row < box.b_size)
        store_elements(to + (b_begin + row) * box.y_step, a, box.a_size, kIsPacked,
                       tile[tile_place<T>(row, column)]);
    }
    __syncthreads();  // the tile is read
  }
}

// Copies x to y if a tile pays: if the elements of x are neighbours along another dim than those of
// y, and both dims are long. Otherwise it returns false.
template <class T>
bool copy_transposed(const KernelContext& ctx, const DeviceLoop<2>& loop, T* y, const T* x) {
  constexpr int kCount = kPackCount<T>;
  constexpr int64_t kLeastSize = 32;
  int along = 0;  // the dim along which the elements of x are neighbours
  while (along < loop.num_dims && loop.stride[along][1] != 1)
    ++along;
  if (along == 0 || along == loop.num_dims || loop.stride[0][0] != 1 || loop.size[0] < kLeastSize ||
      loop.size[along] < kLeastSize) {
    return false;
  }
  TransposedBox box;
  box.a_size = loop.size[0];
  box.b_size = loop.size[along];
  box.x_step = loop.stride[0][1];
  box.y_step = loop.stride[along][0];
  box.a_tiles = (box.a_size + kTileSide<T> - 1) / kTileSide<T>;
  box.b_tiles = (box.b_size + kTileSide<T> - 1) / kTileSide<T>;
  bool is_packed = are_aligned(kCount, x, y) && box.a_size % kCount == 0 &&
                   box.b_size % kCount == 0 && box.x_step % kCount == 0 && box.y_step % kCount == 0;
  Shape outer;
  Strides outer_x, outer_y;
  for (int d = loop.num_dims - 1; d > 0; --d) {
    if (d == along) continue;
    outer.push_back(loop.size[d]);
    outer_x.push_back(loop.stride[d][1]);
    outer_y.push_back(loop.stride[d][0]);
    is_packed = is_packed && loop.stride[d][0] % kCount == 0 && loop.stride[d][1] % kCount == 0;
  }
  box.outer_x = Places(outer, outer_x);
  box.outer_y = Places(outer, outer_y);
  box.tiles = outer.numel() * box.a_tiles * box.b_tiles;
  cuda::launch(is_packed ? copy_transposed_tiles<T, true> : copy_transposed_tiles<T, false>,
               cuda::blocks_for(box.tiles, 1), kTileThreads, 0, cuda::stream_of(ctx), box, y, x);
  return true;
}

}  // namespace flow::ops
