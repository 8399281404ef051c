// Softmax on CUDA devices. A team of threads handles each slice, or one thread if many slices are
// interleaved in memory. A contiguous slice is held in registers if it is not too long; others are
// read three times, from cache after the first.
#include "ops/kernel/held_row_cuda.cuh"
#include "ops/local_parts.h"
#include "ops/norm/softmax_op.h"

namespace flow::ops {

void register_softmax_cuda(KernelTable& table);

namespace {

template <class T, bool kLog>
struct SoftmaxSlice {
  const T* x;
  T* y;
  Slices slices;

  template <class Threads>
  __device__ void operator()(int64_t index, Threads threads) const {
    using C = Wide<T>;
    const int64_t begin = slices.begin(index);
    C largest = -std::numeric_limits<C>::infinity();
    for (int64_t i = threads.first(); i < slices.size; i += threads.step()) {
      const C value = widen(x[begin + i * slices.inner]);
      largest = largest < value ? value : largest;
    }
    largest = threads.reduce(largest, [](C a, C b) { return a < b ? b : a; });
    C total = 0;
    for (int64_t i = threads.first(); i < slices.size; i += threads.step())
      total += std::exp(widen(x[begin + i * slices.inner]) - largest);
    total = threads.sum(total);
    const C factor = kLog ? std::log(total) : C{1} / total;
    for (int64_t i = threads.first(); i < slices.size; i += threads.step()) {
      const C shifted = widen(x[begin + i * slices.inner]) - largest;
      y[begin + i * slices.inner] = narrow<T>(kLog ? shifted - factor : std::exp(shifted) * factor);
    }
  }
};

template <class T, bool kLog>
struct SoftmaxHeldRow {
  const T* x;
  T* y;
  int64_t size;
  bool is_packed;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    const int length = static_cast<int>(size);
    const C nothing = -std::numeric_limits<C>::infinity();
    HeldRow<T> held;
    held.load(x + row * size, length, is_packed, team, narrow<T>(nothing));
    C largest = nothing;
    held.for_each(length, team, [&](C value) { largest = largest < value ? value : largest; });
    largest = team.reduce(largest, [](C a, C b) { return a < b ? b : a; });
    C total = 0;
    if constexpr (kLog) {
      held.for_each(length, team, [&](C value) { total += std::exp(value - largest); });
      const C factor = std::log(team.sum(total));
      HeldRow<T>::store(y + row * size, length, is_packed, team,
                        [&](int slot, int j) { return held.at(slot, j) - largest - factor; });
    } else {
      C weight[kHeldPacks][HeldRow<T>::kCount];
      for_held_packs<T>(length, team, [&](int, int slot) {
        FLOW_UNROLL
        for (int j = 0; j < HeldRow<T>::kCount; ++j) {
          weight[slot][j] = std::exp(held.at(slot, j) - largest);
          total += weight[slot][j];
        }
      });
      const C factor = C{1} / team.sum(total);
      HeldRow<T>::store(y + row * size, length, is_packed, team,
                        [&](int slot, int j) { return weight[slot][j] * factor; });
    }
  }
};

template <class T, bool kLog>
struct SoftmaxBackwardHeldRow {
  const T* dy;
  const T* y;
  T* dx;
  int64_t size;
  bool is_packed;

  __device__ void operator()(int64_t row, Team team) const {
    using C = Wide<T>;
    const int length = static_cast<int>(size);
    HeldRow<T> gradient, result;
    gradient.load(dy + row * size, length, is_packed, team);
    result.load(y + row * size, length, is_packed, team);
    C total = 0;
    for_held_packs<T>(length, team, [&](int, int slot) {
      FLOW_UNROLL
      for (int j = 0; j < HeldRow<T>::kCount; ++j)
        total += kLog ? gradient.at(slot, j) : gradient.at(slot, j) * result.at(slot, j);
    });
    total = team.sum(total);
    HeldRow<T>::store(dx + row * size, length, is_packed, team, [&](int slot, int j) {
      const C u = gradient.at(slot, j);
      const C v = result.at(slot, j);
      return kLog ? u - std::exp(v) * total : (u - total) * v;
    });
  }
};

template <class T, bool kLog>
struct SoftmaxBackwardSlice {
  const T* dy;
  const T* y;
  T* dx;
  Slices slices;

  template <class Threads>
  __device__ void operator()(int64_t index, Threads threads) const {
    using C = Wide<T>;
    const int64_t begin = slices.begin(index);
    C total = 0;
    for (int64_t i = threads.first(); i < slices.size; i += threads.step()) {
      const int64_t at = begin + i * slices.inner;
      total += kLog ? widen(dy[at]) : widen(dy[at]) * widen(y[at]);
    }
    total = threads.sum(total);
    for (int64_t i = threads.first(); i < slices.size; i += threads.step()) {
      const int64_t at = begin + i * slices.inner;
      const C u = widen(dy[at]);
      const C v = widen(y[at]);
      dx[at] = narrow<T>(kLog ? u - std::exp(v) * total : (u - total) * v);
    }
  }
};

template <bool kLog, bool kBackward>
void run(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const Slices slices(x.shape(), ctx.attrs_as<SoftmaxAttrs>().dim);
  const DenseInput first(ctx, 0);
  const DenseInput second(ctx, 1);
  if (x.numel() == 0) return;
  dispatch_floating(x.meta->dtype, [&]<class T>() {
    T* out = ctx.out(0).as<T>();
    const int64_t size = slices.size;
    if (slices.inner == 1 && size <= kMostHeld<T>) {
      const T* source = first.as<T>();
      bool is_packed = has_packed_rows(source, size) && has_packed_rows(out, size);
      if constexpr (kBackward) {
        const T* y = second.as<T>();
        is_packed = is_packed && has_packed_rows(y, size);
        for_each_held_row<T>(ctx, slices.outer, size,
                             SoftmaxBackwardHeldRow<T, kLog>{source, y, out, size, is_packed});
      } else {
        for_each_held_row<T>(ctx, slices.outer, size,
                             SoftmaxHeldRow<T, kLog>{source, out, size, is_packed});
      }
      return;
    }
    if constexpr (kBackward) {
      for_each_slice(ctx, slices.count(), slices.size, slices.inner,
                     SoftmaxBackwardSlice<T, kLog>{first.as<T>(), second.as<T>(), out, slices});
    } else {
      for_each_slice(ctx, slices.count(), slices.size, slices.inner,
                     SoftmaxSlice<T, kLog>{first.as<T>(), out, slices});
    }
  });
}

template <bool kLog, bool kBackward>
KernelChoice select(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return {run<kLog, kBackward>};
}

}  // namespace

void register_softmax_cuda(KernelTable& table) {
  table.add(kSoftmax, DeviceType::kCuda, {"cuda", select<false, false>});
  table.add(kLogSoftmax, DeviceType::kCuda, {"cuda", select<true, false>});
  table.add(kSoftmaxBackward, DeviceType::kCuda, {"cuda", select<false, true>});
  table.add(kLogSoftmaxBackward, DeviceType::kCuda, {"cuda", select<true, true>});
}

}  // namespace flow::ops
