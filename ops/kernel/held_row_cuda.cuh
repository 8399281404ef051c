// Contiguous rows of which each thread of a team holds some packs in registers, so that a kernel
// reads memory once for several passes over a row.
#pragma once

#include "ops/kernel/pack_cuda.cuh"
#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

// The number of packs of each thread, and of threads of a team.
inline constexpr int kHeldPacks = 4;
inline constexpr int kMostHolders = 1024;

template <class T>
inline constexpr int64_t kHeldByThread = int64_t{kHeldPacks} * kPackCount<T>;

// The longest row that a team of `kHolders` threads can hold.
template <class T, int kHolders = kMostHolders>
inline constexpr int64_t kMostHeld = kHolders* kHeldByThread<T>;

// True if every row of `size` elements, from `first` on, begins where a pack can begin.
template <class T>
bool has_packed_rows(const T* first, int64_t size) {
  return size % kPackCount<T> == 0 && are_aligned(kPackCount<T>, first);
}

// Reads or writes the elements from `at` on, those before `size`, one by one or as a pack. A pack
// is chosen by alignment only, which changes no result.
template <int kCount, class T, class Index>
__device__ Pack<T, kCount> load_elements(const T* row, Index at, Index size, bool is_packed,
                                         T filler = {}) {
  if (is_packed) return load_pack<kCount>(row + at, 0);
  Pack<T, kCount> pack;
  FLOW_UNROLL
  for (int j = 0; j < kCount; ++j)
    pack.element[j] = at + j < size ? row[at + j] : filler;
  return pack;
}

template <class T, class Index>
__device__ Pack<T, kPackCount<T>> load_elements(const T* row, Index at, Index size, bool is_packed,
                                                T filler = {}) {
  return load_elements<kPackCount<T>>(row, at, size, is_packed, filler);
}

template <int kCount, class T, class Index>
__device__ void store_elements(T* row, Index at, Index size, bool is_packed,
                               const Pack<T, kCount>& pack) {
  if (is_packed) return store_pack(row + at, 0, pack);
  FLOW_UNROLL
  for (int j = 0; j < kCount; ++j)
    if (at + j < size) row[at + j] = pack.element[j];
}

// Calls f(at, slot) for each pack that the thread holds: `at` is the position of its first element,
// `slot` its number, which is known when compiling.
template <class T, class F>
__device__ void for_held_packs(int size, Team team, const F& f) {
  const int first = static_cast<int>(team.first()) * kPackCount<T>;
  const int step = static_cast<int>(team.step()) * kPackCount<T>;
  FLOW_UNROLL
  for (int slot = 0; slot < kHeldPacks; ++slot) {
    const int at = first + slot * step;
    if (at < size) f(at, slot);
  }
}

// The words as they are in memory, because 16-bit elements need half the registers of floats.
template <class T>
struct HeldRow {
  static constexpr int kCount = kPackCount<T>;
  uint32_t word[kHeldPacks][4];

  // Elements of a pack after the last one of the row get `filler`.
  __device__ void load(const T* row, int size, bool is_packed, Team team, T filler = {}) {
    for_held_packs<T>(size, team, [&](int at, int slot) {
      const Pack<T, kCount> pack = load_elements(row, at, size, is_packed, filler);
      memcpy(word[slot], &pack, sizeof(pack));
    });
  }

  // The same of a row of another type, whose elements are converted. Fillers are 0.
  template <class From>
  __device__ void load_as(const From* row, int size, bool is_packed, Team team) {
    if constexpr (std::is_same_v<From, T>) {
      load(row, size, is_packed, team);
    } else {
      for_held_packs<T>(size, team, [&](int at, int slot) {
        const Pack<From, kCount> from = load_elements<kCount>(row, at, size, is_packed);
        Pack<T, kCount> pack;
        FLOW_UNROLL
        for (int j = 0; j < kCount; ++j)
          pack.element[j] = narrow<T>(widen(from.element[j]));
        memcpy(word[slot], &pack, sizeof(pack));
      });
    }
  }

  // Element `j` of pack `slot`, both known when compiling.
  __device__ Wide<T> at(int slot, int j) const {
    T element;
    if constexpr (kIsHalf<T>) {
      element.bits = static_cast<uint16_t>(word[slot][j / 2] >> (j % 2 * 16));
    } else {
      constexpr int kWords = sizeof(T) / sizeof(uint32_t);
      memcpy(&element, &word[slot][j * kWords], sizeof(T));
    }
    return widen(element);
  }

  // Calls f(element) for each element that the thread holds, and for fillers.
  template <class F>
  __device__ void for_each(int size, Team team, const F& f) const {
    for_held_packs<T>(size, team, [&](int, int slot) {
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        f(at(slot, j));
    });
  }

  // Stores f(slot, j) for each element.
  template <class F>
  static __device__ void store(T* row, int size, bool is_packed, Team team, const F& f) {
    for_held_packs<T>(size, team, [&](int at, int slot) {
      Pack<T, kCount> result;
      FLOW_UNROLL
      for (int j = 0; j < kCount; ++j)
        result.element[j] = narrow<T>(f(slot, j));
      store_elements(row, at, size, is_packed, result);
    });
  }
};

// The bound lets the compiler use as many registers as the largest team can have.
template <int kHolders, class F>
__global__ void __launch_bounds__(kHolders, 1) held_row_kernel(F f, int64_t rows) {
  for_team_rows(f, rows);
}

// The number of threads that hold a row of `size` elements.
template <class T>
unsigned holders_of(int64_t size) {
  unsigned threads = 32;
  while (threads * kHeldByThread<T> < size)
    threads *= 2;
  return threads;
}

// Calls f(row, team) for all rows of `size` elements, which are at most kMostHeld<T, kHolders>.
template <class T, int kHolders = kMostHolders, class F>
void for_each_held_row(const KernelContext& ctx, int64_t rows, int64_t size, const F& f) {
  if (rows == 0) return;
  const unsigned threads = holders_of<T>(size);
  const unsigned teams = threads == 32 ? 4 : 1;
  const int64_t blocks = std::min(kMaxBlocks, (rows + teams - 1) / teams);
  cuda::launch(held_row_kernel<kHolders, F>, dim3(static_cast<unsigned>(blocks)),
               dim3(threads, teams), 0, cuda::stream_of(ctx), f, rows);
}

}  // namespace flow::ops
