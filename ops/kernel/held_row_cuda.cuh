// Contiguous rows of which each thread of a team holds some packs in registers, so that a kernel
// reads memory once for several passes over a row.
#pragma once

#include "ops/kernel/pack_cuda.cuh"
#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

// The number of packs of each thread, and of threads of a team, which leaves them 128 registers.
inline constexpr int kHeldPacks = 4;
inline constexpr int kMostHolders = 512;

template <class T>
inline constexpr int64_t kHeldByThread = int64_t{kHeldPacks} * kPackCount<T>;

// The longest row that a team can hold.
template <class T>
inline constexpr int64_t kMostHeld = kMostHolders* kHeldByThread<T>;

// True if every row of `size` elements, from `first` on, begins where a pack can begin.
template <class T>
bool has_packed_rows(const T* first, int64_t size) {
  return size % kPackCount<T> == 0 && are_aligned(kPackCount<T>, first);
}

// Reads or writes the elements from `at` on, those before `size`, one by one or as a pack. A pack
// is chosen by alignment only, which changes no result.
template <class T>
__device__ Pack<T, kPackCount<T>> load_elements(const T* row, int64_t at, int64_t size,
                                                bool is_packed) {
  constexpr int kCount = kPackCount<T>;
  if (is_packed) return load_pack<kCount>(row + at, 0);
  Pack<T, kCount> pack = {};
  FLOW_UNROLL
  for (int j = 0; j < kCount; ++j)
    if (at + j < size) pack.element[j] = row[at + j];
  return pack;
}

template <class T>
__device__ void store_elements(T* row, int64_t at, int64_t size, bool is_packed,
                               const Pack<T, kPackCount<T>>& pack) {
  if (is_packed) return store_pack(row + at, 0, pack);
  FLOW_UNROLL
  for (int j = 0; j < kPackCount<T>; ++j)
    if (at + j < size) row[at + j] = pack.element[j];
}

// Calls f(at, slot) for each pack that the thread holds: `at` is the position of its first element,
// `slot` its number, which is known when compiling.
template <class T, class F>
__device__ void for_held_packs(int64_t size, Team team, const F& f) {
  FLOW_UNROLL
  for (int slot = 0; slot < kHeldPacks; ++slot) {
    const int64_t at = (team.first() + slot * team.step()) * kPackCount<T>;
    if (at < size) f(at, slot);
  }
}

template <class T>
struct HeldRow {
  static constexpr int kCount = kPackCount<T>;
  Wide<T> value[kHeldPacks][kCount];

  // Elements after the last one get `filler`.
  __device__ void load(const T* row, int64_t size, bool is_packed, Team team, Wide<T> filler) {
    for_held_packs<T>(size, team, [&](int64_t at, int slot) {
      const auto pack = load_elements(row, at, size, is_packed);
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        value[slot][j] = at + j < size ? widen(pack.element[j]) : filler;
    });
  }

  __device__ void store(T* row, int64_t size, bool is_packed, Team team) const {
    for_held_packs<T>(size, team, [&](int64_t at, int slot) {
      Pack<T, kCount> pack;
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        pack.element[j] = narrow<T>(value[slot][j]);
      store_elements(row, at, size, is_packed, pack);
    });
  }

  // Calls f(element, position) for each element that the thread holds.
  template <class F>
  __device__ void for_each(int64_t size, Team team, const F& f) {
    for_held_packs<T>(size, team, [&](int64_t at, int slot) {
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        if (at + j < size) f(value[slot][j], at + j);
    });
  }
};

// As team_kernel.
template <class F>
__global__ void __launch_bounds__(kMostHolders) held_kernel(F f, int64_t rows) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows;
       row += step)
    f(row, Team{});
}

// Calls f(row, team) for all rows of `size` elements, which are at most kMostHeld<T>.
template <class T, class F>
void for_each_held_row(const KernelContext& ctx, int64_t rows, int64_t size, const F& f) {
  if (rows == 0) return;
  unsigned threads = 32;
  while (threads * kHeldByThread<T> < size)
    threads *= 2;
  const unsigned teams = threads == 32 ? 4 : 1;
  const int64_t blocks = std::min(kMaxBlocks, (rows + teams - 1) / teams);
  cuda::launch(held_kernel<F>, dim3(static_cast<unsigned>(blocks)), dim3(threads, teams), 0,
               cuda::stream_of(ctx), f, rows);
}

}  // namespace flow::ops
