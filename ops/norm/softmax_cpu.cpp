// Softmax on the CPU. Contiguous tensors are seen as (outer, size, inner); with inner = 1 a slice
// is a row, else neighbouring slices share vectors. A slice is read three times, from cache after
// the first, and written twice (16-bit types: once, exp is computed again rather than rounded).

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector.h"
#include "ops/kernel/vector_math.h"
#include "ops/local_parts.h"
#include "ops/norm/softmax_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

struct SoftmaxState {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
};

SoftmaxState prepare(const KernelQuery& query) {
  const Shape& shape = query.input(0).local_shape;
  const int64_t dim = query.attrs_as<SoftmaxAttrs>().dim;
  SoftmaxState state;
  for (int64_t i = 0; i < shape.size(); ++i)
    (i < dim ? state.outer : i == dim ? state.size : state.inner) *= shape[i];
  return state;
}

#if FLOW_ISA == 0

// Calls slice(offsets, strides) for every slice along the dim, with its offset in each input and
// the distance between its elements.
template <class Slice>
void for_slices(const KernelContext& ctx, int64_t dim, const Slice& slice) {
  const Shape& shape = ctx.in(0).shape();
  Shape others = shape;
  if (!shape.empty()) others[dim] = 1;
  const int64_t count = ctx.in(0).numel() == 0 ? 0 : others.numel();
  for (int64_t index = 0; index < count; ++index) {
    std::array<int64_t, 2> offset{};
    std::array<int64_t, 2> stride{1, 1};
    for (size_t k = 0; k < ctx.inputs.size(); ++k) {
      const Strides& strides = ctx.inputs[k].strides();
      int64_t rest = index;
      for (int64_t d = shape.size() - 1; d >= 0; --d) {
        offset[k] += rest % others[d] * strides[d];
        rest /= others[d];
      }
      if (!shape.empty()) stride[k] = strides[dim];
    }
    slice(offset, stride);
  }
}

// The offset in the output, which is contiguous, that corresponds to slice `index` of the input.
int64_t output_offset(const SoftmaxState& state, int64_t index) {
  return index / state.inner * state.size * state.inner + index % state.inner;
}

template <class T>
double value_of(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return static_cast<double>(static_cast<float>(x));
  }
}

template <class T>
T value_as(double x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return T(static_cast<float>(x));
  }
}

template <class T, bool kLog>
void softmax_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<SoftmaxState>();
  int64_t index = 0;
  for_slices(ctx, ctx.attrs_as<SoftmaxAttrs>().dim, [&](const auto& offset, const auto& stride) {
    const T* x = ctx.in(0).as<T>() + offset[0];
    T* y = ctx.out(0).as<T>() + output_offset(state, index++);
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < state.size; ++i)
      largest = std::max(largest, value_of(x[i * stride[0]]));
    double total = 0;
    for (int64_t i = 0; i < state.size; ++i)
      total += std::exp(value_of(x[i * stride[0]]) - largest);
    for (int64_t i = 0; i < state.size; ++i) {
      const double shifted = value_of(x[i * stride[0]]) - largest;
      y[i * state.inner] =
          value_as<T>(kLog ? shifted - std::log(total) : std::exp(shifted) / total);
    }
  });
}

template <class T, bool kLog>
void softmax_backward_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<SoftmaxState>();
  int64_t index = 0;
  for_slices(ctx, ctx.attrs_as<SoftmaxAttrs>().dim, [&](const auto& offset, const auto& stride) {
    const T* dy = ctx.in(0).as<T>() + offset[0];
    const T* y = ctx.in(1).as<T>() + offset[1];
    T* dx = ctx.out(0).as<T>() + output_offset(state, index++);
    double total = 0;
    for (int64_t i = 0; i < state.size; ++i)
      total += value_of(dy[i * stride[0]]) * (kLog ? 1.0 : value_of(y[i * stride[1]]));
    for (int64_t i = 0; i < state.size; ++i) {
      const double u = value_of(dy[i * stride[0]]);
      const double v = value_of(y[i * stride[1]]);
      dx[i * state.inner] = value_as<T>(kLog ? u - std::exp(v) * total : (u - total) * v);
    }
  });
}

template <bool kLog, bool kBackward>
void run_reference(const KernelContext& ctx) {
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    if constexpr (kBackward) {
      softmax_backward_plainly<T, kLog>(ctx);
    } else {
      softmax_plainly<T, kLog>(ctx);
    }
  });
}

template <bool kLog, bool kBackward>
KernelChoice select_reference(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return {run_reference<kLog, kBackward>, std::make_shared<const SoftmaxState>(prepare(query))};
}

#endif

// ---- one slice as a row

template <class T, bool kLog>
void softmax_row(T* y, const T* x, int64_t n) {
  using V = VecOf<T>;
  using C = decltype(max_of(V::zero()));
  const V largest = V::fill(row_max<C>(n, [&](auto at) { return at.get(x); }));
  constexpr bool kKeepsExp = !kLog && sizeof(T) == sizeof(C);
  const C total = row_sum<C>(n, [&](auto at) {
    const V e = exp(at.get(x) - largest);
    if constexpr (kKeepsExp) at.put(y, e);
    return at.keep(e, 0);
  });
  if constexpr (kLog) {
    const V log_total = V::fill(std::log(total));
    for_row<C>(n, [&](auto at) { at.put(y, (at.get(x) - largest) - log_total); });
  } else {
    const V scale = V::fill(C{1} / total);
    for_row<C>(n, [&](auto at) {
      if constexpr (kKeepsExp) {
        at.put(y, at.get(y) * scale);
      } else {
        at.put(y, exp(at.get(x) - largest) * scale);
      }
    });
  }
}

template <class T, bool kLog>
void softmax_backward_row(T* dx, const T* dy, const T* y, int64_t n) {
  using V = VecOf<T>;
  using C = decltype(max_of(V::zero()));
  const V total = V::fill(row_sum<C>(n, [&](auto at) {
    if constexpr (kLog) {
      return at.get(dy);
    } else {
      return at.get(dy) * at.get(y);
    }
  }));
  for_row<C>(n, [&](auto at) {
    const V u = at.get(dy);
    const V v = at.get(y);
    at.put(dx, kLog ? fnma(exp(v), total, u) : (u - total) * v);
  });
}

// ---- neighbouring slices, elements `inner` apart

// The most slices that are computed together. Their elements are read in the order of memory: a few
// slices at a time would use few sets of the caches.
constexpr int64_t kPanel = 512;
// Sums are taken over stretches of so many elements, so that rounding errors stay small.
constexpr int64_t kStretch = 32;

// One number for each slice of a panel.
template <class C>
struct PanelSums {
  alignas(64) C part[kPanel];
  alignas(64) C total[kPanel];

  explicit PanelSums(int64_t width) {
    std::fill_n(part, width, C{0});
    std::fill_n(total, width, C{0});
  }

  // Adds part to total.
  void finish_stretch(int64_t width) {
    for_row<C>(width, [&](auto at) {
      at.put(total, at.get(total) + at.get(part));
      at.put(part, Vec<C>::zero());
    });
  }

  // Calls term(i, at) for all i < size and all places, and adds up what it returns.
  template <class F>
  void add(int64_t size, int64_t width, const F& term) {
    for (int64_t i = 0; i < size; ++i) {
      for_row<C>(width, [&](auto at) { at.put(part, at.get(part) + term(i, at)); });
      if (i % kStretch == kStretch - 1 || i == size - 1) finish_stretch(width);
    }
  }
};

template <class T, bool kLog>
void softmax_panel(T* y, const T* x, int64_t size, int64_t inner, int64_t width) {
  using V = VecOf<T>;
  using C = decltype(max_of(V::zero()));
  alignas(64) C largest[kPanel];
  std::fill_n(largest, width, -std::numeric_limits<C>::infinity());
  for (int64_t i = 0; i < size; ++i) {
    for_row<C>(width,
               [&](auto at) { at.put(largest, max(at.get(x + i * inner), at.get(largest))); });
  }
  constexpr bool kKeepsExp = !kLog && sizeof(T) == sizeof(C);
  PanelSums<C> sums(width);
  sums.add(size, width, [&](int64_t i, auto at) {
    const V e = exp(at.get(x + i * inner) - at.get(largest));
    if constexpr (kKeepsExp) at.put(y + i * inner, e);
    return e;
  });
  C* const factor = sums.total;
  for_row<C>(width, [&](auto at) {
    at.put(factor, kLog ? log(at.get(factor)) : V::fill(1) / at.get(factor));
  });
  for (int64_t i = 0; i < size; ++i) {
    const T* source = x + i * inner;
    T* target = y + i * inner;
    for_row<C>(width, [&](auto at) {
      if constexpr (kLog) {
        at.put(target, (at.get(source) - at.get(largest)) - at.get(factor));
      } else if constexpr (kKeepsExp) {
        at.put(target, at.get(target) * at.get(factor));
      } else {
        at.put(target, exp(at.get(source) - at.get(largest)) * at.get(factor));
      }
    });
  }
}

template <class T, bool kLog>
void softmax_backward_panel(T* dx, const T* dy, const T* y, int64_t size, int64_t inner,
                            int64_t width) {
  using V = VecOf<T>;
  using C = decltype(max_of(V::zero()));
  PanelSums<C> sums(width);
  sums.add(size, width, [&](int64_t i, auto at) {
    const V u = at.get(dy + i * inner);
    if constexpr (kLog) {
      return u;
    } else {
      return u * at.get(y + i * inner);
    }
  });
  for (int64_t i = 0; i < size; ++i) {
    for_row<C>(width, [&](auto at) {
      const V total = at.get(sums.total);
      const V u = at.get(dy + i * inner);
      const V v = at.get(y + i * inner);
      at.put(dx + i * inner, kLog ? fnma(exp(v), total, u) : (u - total) * v);
    });
  }
}

// ---- all slices

constexpr int64_t kGrain = 16384;

template <class T, bool kLog, bool kBackward>
void run_fast(const KernelContext& ctx) {
  const auto& state = ctx.state_as<SoftmaxState>();
  const T* a = ctx.in(0).as<T>();
  const T* b = kBackward ? ctx.in(1).as<T>() : nullptr;
  T* out = ctx.out(0).as<T>();
  const int64_t slab = state.size * state.inner;
  const int64_t panels = (state.inner + kPanel - 1) / kPanel;
  const int64_t panel_size = state.size * std::min(kPanel, state.inner);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, panel_size));
  ctx.pool().parallel_for(0, state.outer * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % panels * kPanel;
      const int64_t base = i / panels * slab + first;
      const int64_t width = std::min(kPanel, state.inner - first);
      if (state.inner == 1) {
        if constexpr (kBackward) {
          softmax_backward_row<T, kLog>(out + base, a + base, b + base, state.size);
        } else {
          softmax_row<T, kLog>(out + base, a + base, state.size);
        }
      } else if constexpr (kBackward) {
        softmax_backward_panel<T, kLog>(out + base, a + base, b + base, state.size, state.inner,
                                        width);
      } else {
        softmax_panel<T, kLog>(out + base, a + base, state.size, state.inner, width);
      }
    }
  });
}

template <bool kLog, bool kBackward>
KernelChoice select_fast(const KernelQuery& query) {
  for (const MetaPtr input : query.inputs) {
    if (!input->is_contiguous) return {};
  }
  KernelChoice choice{nullptr, std::make_shared<const SoftmaxState>(prepare(query))};
  dispatch_floating(query.input(0).dtype,
                    [&]<class T>() { choice.fn = run_fast<T, kLog, kBackward>; });
  return choice;
}

template <bool kLog, bool kBackward>
void add_kernels(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  table.add(op, DeviceType::kCpu, {"reference", select_reference<kLog, kBackward>});
#endif
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<kLog, kBackward>});
}

}  // namespace

void register_softmax_cpu(KernelTable& table);

void register_softmax_cpu(KernelTable& table) {
  add_kernels<false, false>(table, kSoftmax);
  add_kernels<true, false>(table, kLogSoftmax);
  add_kernels<false, true>(table, kSoftmaxBackward);
  add_kernels<true, true>(table, kLogSoftmaxBackward);
}

#include "ops/kernel/isa_end.h"
