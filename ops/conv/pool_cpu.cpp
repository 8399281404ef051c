// Pooling kernels. The fast ones process (planes, H, W, lanes): contiguous tensors have one lane;
// in blocked ones, the channels that fit a register are contiguous.

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/conv/pool_op.h"
#include "ops/conv/pool_rows.h"
#include "ops/conv/pool_state.h"
#include "ops/kernel/contiguous.h"

#include "ops/kernel/isa_begin.h"

void register_pool_cpu(KernelTable& table);

namespace {

#if FLOW_ISA == 0

// ---- the reference: any strides and dtypes, one element at a time

// The offsets of the planes of a tensor, and the strides of rows and columns.
struct Planes {
  explicit Planes(const TensorView& view)
      : shape(view.shape()), strides(view.strides()), leading(shape.size() - 2) {}

  int64_t offset(int64_t plane) const {
    int64_t result = 0;
    for (int64_t d = leading - 1; d >= 0; --d) {
      result += plane % shape[d] * strides[d];
      plane /= shape[d];
    }
    return result;
  }

  int64_t at(int64_t h, int64_t w) const { return h * strides[leading] + w * strides[leading + 1]; }

  Shape shape;
  Strides strides;
  int64_t leading;
};

// Integers are compared without conversion.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;

template <class T>
Wide<T> widened(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return x;
  } else {
    return static_cast<double>(static_cast<float>(x));
  }
}

// The result of a window without elements.
template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(-std::numeric_limits<float>::infinity());
  }
}

template <class T>
T narrowed(double x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return T(static_cast<float>(x));
  }
}

// Calls fn(h, w) for the elements that output (oh, ow) reads.
template <class Fn>
void for_each_tap(const PoolState& state, int64_t oh, int64_t ow, const Fn& fn) {
  const PoolTaps& h = state.dims[0].taps[static_cast<size_t>(oh)];
  const PoolTaps& w = state.dims[1].taps[static_cast<size_t>(ow)];
  for (int64_t i = 0; i < h.count; ++i) {
    for (int64_t j = 0; j < w.count; ++j)
      fn(h.first + i * state.dims[0].step, w.first + j * state.dims[1].step);
  }
}

template <class Fn>
void for_each_output(const PoolState& state, const Fn& fn) {
  for (int64_t oh = 0; oh < state.dims[0].out; ++oh) {
    for (int64_t ow = 0; ow < state.dims[1].out; ++ow)
      fn(oh, ow);
  }
}

// Calls fn(plane, oh, ow, h, w) with the position of each maximum; h = -1 if there is no element.
template <class T, class Fn>
void find_maxima(const TensorView& x, const PoolState& state, const Fn& fn) {
  const Planes planes(x);
  for (int64_t p = 0; p < state.planes; ++p) {
    const T* plane = x.as<T>() + planes.offset(p);
    for_each_output(state, [&](int64_t oh, int64_t ow) {
      Wide<T> best{};
      int64_t best_h = -1;
      int64_t best_w = -1;
      for_each_tap(state, oh, ow, [&](int64_t h, int64_t w) {
        const Wide<T> value = widened(plane[planes.at(h, w)]);
        if (best_h >= 0 && !(value > best) && value == value) return;
        best = value;
        best_h = h;
        best_w = w;
      });
      fn(p, oh, ow, best_h, best_w);
    });
  }
}

template <class T>
void max_pool_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const bool has_source = ctx.inputs.size() > 1;  // gather
  const TensorView& source = ctx.in(has_source ? 1 : 0);
  const Planes from(source);
  const Planes to(ctx.out(0));
  find_maxima<T>(ctx.in(0), state, [&](int64_t p, int64_t oh, int64_t ow, int64_t h, int64_t w) {
    const int64_t target = to.offset(p) + to.at(oh, ow);
    const T none = has_source ? T{} : lowest<T>();
    ctx.out(0).as<T>()[target] = h < 0 ? none : source.as<T>()[from.offset(p) + from.at(h, w)];
    if (ctx.outputs.size() > 1) {
      ctx.out(1).as<int64_t>()[target] = h < 0 ? -1 : h * state.dims[1].in + w;
    }
  });
}

template <class T>
void max_pool_backward_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const Planes from(ctx.in(1));
  const Planes to(ctx.out(0));
  std::vector<double> sums(static_cast<size_t>(state.planes * state.in_size()));
  find_maxima<T>(ctx.in(0), state, [&](int64_t p, int64_t oh, int64_t ow, int64_t h, int64_t w) {
    if (h < 0) return;
    const auto at = static_cast<size_t>((p * state.dims[0].in + h) * state.dims[1].in + w);
    sums[at] += widened(ctx.in(1).as<T>()[from.offset(p) + from.at(oh, ow)]);
  });
  T* dx = ctx.out(0).as<T>();
  for (size_t i = 0; i < sums.size(); ++i)
    dx[i] = narrowed<T>(sums[i]);
}

template <class T>
void avg_pool_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const Planes from(ctx.in(0));
  T* y = ctx.out(0).as<T>();
  for (int64_t p = 0; p < state.planes; ++p) {
    const T* plane = ctx.in(0).as<T>() + from.offset(p);
    for_each_output(state, [&](int64_t oh, int64_t ow) {
      double sum = 0;
      for_each_tap(state, oh, ow, [&](int64_t h, int64_t w) {
        sum += static_cast<double>(widened(plane[from.at(h, w)]));
      });
      *y++ = narrowed<T>(sum / divisor_of(state, static_cast<size_t>(oh), static_cast<size_t>(ow)));
    });
  }
}

template <class T>
void avg_pool_backward_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const Planes from(ctx.in(0));
  T* dx = ctx.out(0).as<T>();
  std::vector<double> sums(static_cast<size_t>(state.in_size()));
  for (int64_t p = 0; p < state.planes; ++p) {
    std::fill(sums.begin(), sums.end(), 0.0);
    const T* plane = ctx.in(0).as<T>() + from.offset(p);
    for_each_output(state, [&](int64_t oh, int64_t ow) {
      const double share = widened(plane[from.at(oh, ow)]) /
                           divisor_of(state, static_cast<size_t>(oh), static_cast<size_t>(ow));
      for_each_tap(state, oh, ow, [&](int64_t h, int64_t w) {
        sums[static_cast<size_t>(h * state.dims[1].in + w)] += share;
      });
    });
    for (const double sum : sums)
      *dx++ = narrowed<T>(sum);
  }
}

void run_reference(const KernelContext& ctx, const OpDef& op) {
  const DType dtype = ctx.in(0).meta->dtype;
  if (&op == &kMaxPool || &op == &kMaxPoolWithIndices) {
    dispatch_all(dtype, [&]<class T>() { max_pool_plainly<T>(ctx); });
    return;
  }
  if (&op == &kAvgPool && dtype == DType::kInt64) {
    avg_pool_plainly<int64_t>(ctx);
    return;
  }
  dispatch_floating(dtype, [&]<class T>() {
    if (&op == &kMaxPoolBackward) {
      max_pool_backward_plainly<T>(ctx);
    } else if (&op == &kMaxPoolGather) {
      max_pool_plainly<T>(ctx);
    } else if (&op == &kAvgPool || &op == &kAdaptiveAvgPool) {
      avg_pool_plainly<T>(ctx);
    } else {
      avg_pool_backward_plainly<T>(ctx);
    }
  });
}

template <const OpDef* kOp>
KernelChoice select_reference(const KernelQuery& query) {
  if (!parts_agree(query)) return {};
  return {[](const KernelContext& ctx) { run_reference(ctx, *kOp); },
          std::make_shared<const PoolState>(prepare_pool(query))};
}

#endif

// ---- fast

// The largest of the elements that an output reads, for kLanes channels, and h * W + w of each; -1
// where there are none.
template <class T, int kLanes>
struct Maxima {
  std::array<T, kLanes> value;
  std::array<PoolPosition<T>, kLanes> at;

  void find(const PoolState& state, const T* x, const PoolTaps& h, const PoolTaps& w) {
    const bool is_empty = h.count == 0 || w.count == 0;
    const int64_t width = state.dims[1].in;
    const int64_t first = is_empty ? -1 : h.first * width + w.first;
    for (size_t c = 0; c < kLanes; ++c) {
      value[c] = is_empty ? -std::numeric_limits<T>::infinity()
                          : x[first * state.lanes + static_cast<int64_t>(c)];
      at[c] = static_cast<PoolPosition<T>>(first);
    }
    for (int64_t i = 0; i < h.count; ++i) {
      const int64_t row = (h.first + i * state.dims[0].step) * width;
      for (int64_t j = 0; j < w.count; ++j) {
        const int64_t position = row + w.first + j * state.dims[1].step;
        const T* pixel = x + position * state.lanes;
        for (size_t c = 0; c < kLanes; ++c) {
          const bool wins = (pixel[c] > value[c]) | (pixel[c] != pixel[c]);
          value[c] = wins ? pixel[c] : value[c];
          at[c] = wins ? static_cast<PoolPosition<T>>(position) : at[c];
        }
      }
    }
  }
};

// Calls fn(first lane, std::integral_constant<int, number of lanes>) for all lanes of a plane.
template <class Fn>
void for_lanes(int64_t lanes, const Fn& fn) {
  int64_t c = 0;
  for (; c + 16 <= lanes; c += 16)
    fn(c, std::integral_constant<int, 16>());
  for (; c + 8 <= lanes; c += 8)
    fn(c, std::integral_constant<int, 8>());
  for (; c < lanes; ++c)
    fn(c, std::integral_constant<int, 1>());
}

// Calls fn(h taps, w taps, offset of the output in its plane).
template <class Fn>
void for_windows(const PoolState& state, const Fn& fn) {
  for (size_t oh = 0; oh < state.dims[0].taps.size(); ++oh) {
    for (size_t ow = 0; ow < state.dims[1].taps.size(); ++ow)
      fn(oh, ow,
         (static_cast<int64_t>(oh) * state.dims[1].out + static_cast<int64_t>(ow)) * state.lanes);
  }
}

// Calls fn(begin, end) for ranges of planes.
template <class Fn>
void parallel_planes(const KernelContext& ctx, const PoolState& state, const Fn& fn) {
  constexpr int64_t kGrain = 1 << 15;
  const int64_t size = (state.in_size() + state.out_size()) * state.lanes;
  ctx.pool().parallel_for(0, state.planes, kGrain / std::max<int64_t>(size, 1) + 1, fn);
}

// Calls fn(plane) for all planes.
template <class Fn>
void for_planes(const KernelContext& ctx, const PoolState& state, const Fn& fn) {
  parallel_planes(ctx, state, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      fn(p);
  });
}

// Calls fn(plane, rows) for all planes; `rows` is a Rows that planes share.
template <class Rows, class Fn>
void for_planes_by_rows(const KernelContext& ctx, const PoolState& state, const Fn& fn) {
  parallel_planes(ctx, state, [&](int64_t begin, int64_t end) {
    Rows rows(state);
    for (int64_t p = begin; p < end; ++p)
      fn(p, rows);
  });
}

// Calls fn(plane, offset of a row in y, maxima of the row) for all rows of contiguous planes.
template <class T, class Fn>
void for_rows_of_maxima(const KernelContext& ctx, const PoolState& state, const T* x,
                        const Fn& fn) {
  for_planes_by_rows<RowMaxima<T>>(ctx, state, [&](int64_t p, RowMaxima<T>& maxima) {
    for (int64_t oh = 0; oh < state.dims[0].out; ++oh) {
      maxima.find(x + p * state.in_size(), static_cast<size_t>(oh));
      fn(p, p * state.out_size() + oh * state.dims[1].out, maxima);
    }
  });
}

template <class T>
void run_max_pool(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  int64_t* indices = ctx.outputs.size() > 1 ? ctx.out(1).as<int64_t>() : nullptr;
  if (state.lanes == 1) {
    for_rows_of_maxima(ctx, state, x.data(), [&](int64_t, int64_t row, const auto& maxima) {
      std::copy_n(maxima.values(), state.dims[1].out, y.data() + row);
      if (indices != nullptr) std::copy_n(maxima.positions(), state.dims[1].out, indices + row);
    });
    y.finish(ctx);
    return;
  }
  for_planes(ctx, state, [&](int64_t p) {
    const T* from = x.data() + p * state.in_size() * state.lanes;
    const int64_t to = p * state.out_size() * state.lanes;
    for_lanes(state.lanes, [&](int64_t lane, auto lanes) {
      for_windows(state, [&](size_t oh, size_t ow, int64_t offset) {
        Maxima<T, lanes> maxima;
        maxima.find(state, from + lane, state.dims[0].taps[oh], state.dims[1].taps[ow]);
        std::copy_n(maxima.value.data(), lanes(), y.data() + to + offset + lane);
      });
    });
  });
  y.finish(ctx);
}

// Input 1 in the layout of the state.
template <class T>
const T* second_input(const KernelContext& ctx, const PoolState& state,
                      const ContiguousInput<T>& input, Ref<Storage>& memory) {
  if (state.reorder == nullptr) return input.data();
  memory = ctx.scratch(state.reordered_bytes + state.reorder->scratch_bytes());
  state.reorder->run({.source = input.data(),
                      .destination = memory->data(),
                      .scratch = memory->data() + state.reordered_bytes});
  return reinterpret_cast<const T*>(memory->data());
}

template <class T>
void run_max_pool_gather(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousInput<T> second(ctx, 1);
  Ref<Storage> memory;
  const T* source = second_input(ctx, state, second, memory);
  const ContiguousOutput<T> y(ctx, 0);
  if (state.lanes == 1) {
    for_rows_of_maxima(ctx, state, x.data(), [&](int64_t p, int64_t row, const auto& maxima) {
      const T* plane = source + p * state.in_size();
      for (int64_t ow = 0; ow < state.dims[1].out; ++ow) {
        const int64_t at = maxima.positions()[ow];
        y.data()[row + ow] = at < 0 ? T{0} : plane[at];
      }
    });
    y.finish(ctx);
    return;
  }
  for_planes(ctx, state, [&](int64_t p) {
    const int64_t from = p * state.in_size() * state.lanes;
    const int64_t to = p * state.out_size() * state.lanes;
    for_lanes(state.lanes, [&](int64_t lane, auto lanes) {
      for_windows(state, [&](size_t oh, size_t ow, int64_t offset) {
        Maxima<T, lanes> maxima;
        maxima.find(state, x.data() + from + lane, state.dims[0].taps[oh], state.dims[1].taps[ow]);
        for (int c = 0; c < lanes; ++c) {
          const int64_t at = maxima.at[static_cast<size_t>(c)];
          y.data()[to + offset + lane + c] =
              at < 0 ? T{0} : source[from + at * state.lanes + lane + c];
        }
      });
    });
  });
  y.finish(ctx);
}

template <class T>
void run_max_pool_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousInput<T> second(ctx, 1);
  Ref<Storage> memory;
  const T* dy = second_input(ctx, state, second, memory);
  const ContiguousOutput<T> dx(ctx, 0);
  if (state.lanes == 1) {
    for_planes(ctx, state, [&](int64_t p) {
      std::fill_n(dx.data() + p * state.in_size(), state.in_size(), T{0});
    });
    for_rows_of_maxima(ctx, state, x.data(), [&](int64_t p, int64_t row, const auto& maxima) {
      T* target = dx.data() + p * state.in_size();
      for (int64_t ow = 0; ow < state.dims[1].out; ++ow) {
        const int64_t at = maxima.positions()[ow];
        if (at >= 0) target[at] += dy[row + ow];
      }
    });
    dx.finish(ctx);
    return;
  }
  for_planes(ctx, state, [&](int64_t p) {
    const int64_t plane = p * state.in_size() * state.lanes;
    T* target = dx.data() + plane;
    std::fill_n(target, state.in_size() * state.lanes, T{0});
    const T* source = dy + p * state.out_size() * state.lanes;
    for_lanes(state.lanes, [&](int64_t lane, auto lanes) {
      for_windows(state, [&](size_t oh, size_t ow, int64_t offset) {
        Maxima<T, lanes> maxima;
        maxima.find(state, x.data() + plane + lane, state.dims[0].taps[oh], state.dims[1].taps[ow]);
        for (int c = 0; c < lanes; ++c) {
          const int64_t at = maxima.at[static_cast<size_t>(c)];
          if (at >= 0) target[at * state.lanes + lane + c] += source[offset + lane + c];
        }
      });
    });
  });
  dx.finish(ctx);
}

// Calls fn(offset) of every element in a plane that output (oh, ow) reads.
template <class Fn>
void for_pixels(const PoolState& state, size_t oh, size_t ow, const Fn& fn) {
  const PoolTaps& h = state.dims[0].taps[oh];
  const PoolTaps& w = state.dims[1].taps[ow];
  for (int64_t i = 0; i < h.count; ++i) {
    for (int64_t j = 0; j < w.count; ++j)
      fn(((h.first + i) * state.dims[1].in + w.first + j) * state.lanes);
  }
}

template <class T>
void run_avg_pool(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousOutput<T> y(ctx, 0);
  if (state.lanes == 1) {
    for_planes_by_rows<RowMeans<T>>(ctx, state, [&](int64_t p, RowMeans<T>& means) {
      T* to = y.data() + p * state.out_size();
      for (size_t oh = 0; oh < state.dims[0].taps.size(); ++oh, to += state.dims[1].out)
        means.average(x.data() + p * state.in_size(), oh, to);
    });
    y.finish(ctx);
    return;
  }
  for_planes(ctx, state, [&](int64_t p) {
    const T* from = x.data() + p * state.in_size() * state.lanes;
    T* to = y.data() + p * state.out_size() * state.lanes;
    for_lanes(state.lanes, [&](int64_t lane, auto lanes) {
      for_windows(state, [&](size_t oh, size_t ow, int64_t offset) {
        std::array<T, lanes> sum{};
        for_pixels(state, oh, ow, [&](int64_t pixel) {
          for (int c = 0; c < lanes; ++c)
            sum[static_cast<size_t>(c)] += from[pixel + lane + c];
        });
        const T divisor = static_cast<T>(divisor_of(state, oh, ow));
        for (int c = 0; c < lanes; ++c)
          to[offset + lane + c] = sum[static_cast<size_t>(c)] / divisor;
      });
    });
  });
  y.finish(ctx);
}

// True if there is one window, and it is the whole plane.
bool is_whole_plane(const PoolState& state) {
  return std::all_of(state.dims.begin(), state.dims.end(), [](const PoolDim& dim) {
    return dim.out == 1 && dim.step == 1 && dim.taps[0].count == dim.in;
  });
}

template <class T>
void run_avg_pool_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PoolState>();
  const ContiguousInput<T> dy(ctx, 0);
  const ContiguousOutput<T> dx(ctx, 0);
  if (state.lanes == 1 && is_whole_plane(state)) {
    const T divisor = static_cast<T>(divisor_of(state, 0, 0));
    for_planes(ctx, state, [&](int64_t p) {
      std::fill_n(dx.data() + p * state.in_size(), state.in_size(), dy.data()[p] / divisor);
    });
    dx.finish(ctx);
    return;
  }
  if (state.lanes == 1) {
    for_planes_by_rows<RowMeans<T>>(ctx, state, [&](int64_t p, RowMeans<T>& means) {
      T* to = dx.data() + p * state.in_size();
      std::fill_n(to, state.in_size(), T{0});
      const T* from = dy.data() + p * state.out_size();
      for (size_t oh = 0; oh < state.dims[0].taps.size(); ++oh, from += state.dims[1].out)
        means.spread(from, oh, to);
    });
    dx.finish(ctx);
    return;
  }
  for_planes(ctx, state, [&](int64_t p) {
    const T* from = dy.data() + p * state.out_size() * state.lanes;
    T* to = dx.data() + p * state.in_size() * state.lanes;
    std::fill_n(to, state.in_size() * state.lanes, T{0});
    for_lanes(state.lanes, [&](int64_t lane, auto lanes) {
      for_windows(state, [&](size_t oh, size_t ow, int64_t offset) {
        const T divisor = static_cast<T>(divisor_of(state, oh, ow));
        std::array<T, lanes> share;
        for (int c = 0; c < lanes; ++c)
          share[static_cast<size_t>(c)] = from[offset + lane + c] / divisor;
        for_pixels(state, oh, ow, [&](int64_t pixel) {
          for (int c = 0; c < lanes; ++c)
            to[pixel + lane + c] += share[static_cast<size_t>(c)];
        });
      });
    });
  });
  dx.finish(ctx);
}

template <KernelFn kFloat, KernelFn kDouble>
KernelChoice select_fast(const KernelQuery& query) {
  PoolState state = prepare_pool(query);
  KernelChoice choice;
  if (!is_floating(query.input(0).dtype)) return {};
  if (state.in_size() > std::numeric_limits<int32_t>::max()) return {};
  if (!prepare_layout(query, state, choice.outputs)) return {};
  choice.fn = query.input(0).dtype == DType::kFloat64 ? kDouble : kFloat;
  KernelScratch blocks = contiguous_scratch(
      query, query.input(0).dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32);
  if (state.reorder != nullptr) {
    blocks.push_back(
        {static_cast<int64_t>(state.reordered_bytes + state.reorder->scratch_bytes())});
  }
  choice.state = std::make_shared<const PoolState>(std::move(state));
  return with_scratch(std::move(choice), std::move(blocks));
}

template <KernelFn kFloat, KernelFn kDouble>
void add_fast(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<kFloat, kDouble>, true});
}

}  // namespace

void register_pool_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  const auto add_reference = [&](const OpDef& op, KernelChoice (*select)(const KernelQuery&)) {
    table.add(op, DeviceType::kCpu, {"reference", select});
  };
  add_reference(kMaxPool, select_reference<&kMaxPool>);
  add_reference(kMaxPoolWithIndices, select_reference<&kMaxPoolWithIndices>);
  add_reference(kMaxPoolBackward, select_reference<&kMaxPoolBackward>);
  add_reference(kMaxPoolGather, select_reference<&kMaxPoolGather>);
  add_reference(kAvgPool, select_reference<&kAvgPool>);
  add_reference(kAvgPoolBackward, select_reference<&kAvgPoolBackward>);
  add_reference(kAdaptiveAvgPool, select_reference<&kAdaptiveAvgPool>);
  add_reference(kAdaptiveAvgPoolBackward, select_reference<&kAdaptiveAvgPoolBackward>);
#endif
  add_fast<run_max_pool<float>, run_max_pool<double>>(table, kMaxPool);
  add_fast<run_max_pool<float>, run_max_pool<double>>(table, kMaxPoolWithIndices);
  add_fast<run_max_pool_backward<float>, run_max_pool_backward<double>>(table, kMaxPoolBackward);
  add_fast<run_max_pool_gather<float>, run_max_pool_gather<double>>(table, kMaxPoolGather);
  for (const OpDef* op : {&kAvgPool, &kAdaptiveAvgPool})
    add_fast<run_avg_pool<float>, run_avg_pool<double>>(table, *op);
  for (const OpDef* op : {&kAvgPoolBackward, &kAdaptiveAvgPoolBackward})
    add_fast<run_avg_pool_backward<float>, run_avg_pool_backward<double>>(table, *op);
}

#include "ops/kernel/isa_end.h"
