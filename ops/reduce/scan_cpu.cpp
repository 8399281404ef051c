// Running sums, products and extrema in double or int64. Each kernel works on one line at a time.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous_copy.h"
#include "ops/kernel/lines.h"
#include "ops/reduce/scan_op.h"

#include "ops/kernel/isa_begin.h"

void register_scan_cpu(KernelTable& table);

namespace {

template <class T>
constexpr bool kIsFloat16 = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsFloat16<T>;
template <class T>
using Wide = std::conditional_t<kIsFloat<T>, double, int64_t>;
template <class T>
using Result = std::conditional_t<kIsFloat<T>, T, int64_t>;

template <class T>
Wide<T> widen(T x) {
  if constexpr (kIsFloat16<T>) {
    return static_cast<double>(static_cast<float>(x));
  } else {
    return static_cast<Wide<T>>(x);
  }
}

template <class T>
Result<T> narrow(Wide<T> x) {
  if constexpr (kIsFloat16<T>) {
    return T(static_cast<float>(x));
  } else {
    return static_cast<Result<T>>(x);
  }
}

#if FLOW_ISA == 0

template <class Fn>
void for_each_line(const KernelContext& ctx, int64_t dim, const Fn& fn) {
  const TensorView& y = ctx.out(0);
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, line_size(y, dim)));
  ctx.pool().parallel_for(0, num_lines(y, dim), grain, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l)
      fn(l);
  });
}

template <class T, class Join>
void scan(const KernelContext& ctx, int64_t dim, bool reverse, Wide<T> start, const Join& join) {
  const int64_t size = line_size(ctx.in(0), dim);
  for_each_line(ctx, dim, [&](int64_t l) {
    const Line from = line_of(ctx.in(0), dim, l);
    const Line to = line_of(ctx.out(0), dim, l);
    Wide<T> value = start;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t at = reverse ? size - 1 - i : i;
      value = join(value, widen(ctx.in(0).as<T>()[from.offset + at * from.stride]));
      ctx.out(0).as<Result<T>>()[to.offset + at * to.stride] = narrow<T>(value);
    }
  });
}

void cumsum(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<CumsumAttrs>();
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    scan<T>(ctx, attrs.dim, attrs.reverse, 0, [](Wide<T> a, Wide<T> b) {
      if constexpr (kIsFloat<T>) {
        return a + b;
      } else {  // wraps around
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      }
    });
  });
}

void cumprod(const KernelContext& ctx) {
  const int64_t dim = ctx.attrs_as<CumprodAttrs>().dim;
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    scan<T>(ctx, dim, false, 1, [](Wide<T> a, Wide<T> b) {
      if constexpr (kIsFloat<T>) {
        return a * b;
      } else {  // wraps around
        return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      }
    });
  });
}

// dx[k] = (x[0] … x[k - 1]) s[k] with s[k] = dy[k] + x[k + 1] s[k + 1]. There is no division, so
// zeros are not a special case.
template <class T>
void cumprod_backward_as(const KernelContext& ctx, int64_t dim) {
  const int64_t size = line_size(ctx.out(0), dim);
  for_each_line(ctx, dim, [&](int64_t l) {
    const Line at_dy = line_of(ctx.in(0), dim, l);
    const Line at_x = line_of(ctx.in(1), dim, l);
    const Line at_dx = line_of(ctx.out(0), dim, l);
    const auto dy = [&](int64_t k) {
      return widen(ctx.in(0).as<T>()[at_dy.offset + k * at_dy.stride]);
    };
    const auto x = [&](int64_t k) {
      return widen(ctx.in(1).as<T>()[at_x.offset + k * at_x.stride]);
    };
    std::vector<double> sums(static_cast<size_t>(size) + 1, 0.0);
    for (int64_t k = size - 1; k >= 0; --k) {
      const double next = k + 1 < size ? x(k + 1) * sums[static_cast<size_t>(k) + 1] : 0.0;
      sums[static_cast<size_t>(k)] = dy(k) + next;
    }
    double before = 1;
    for (int64_t k = 0; k < size; ++k) {
      ctx.out(0).as<T>()[at_dx.offset + k * at_dx.stride] =
          narrow<T>(before * sums[static_cast<size_t>(k)]);
      before *= x(k);
    }
  });
}

void cumprod_backward(const KernelContext& ctx) {
  dispatch_floating(ctx.in(1).meta->dtype, [&]<class T>() {
    cumprod_backward_as<T>(ctx, ctx.attrs_as<CumprodAttrs>().dim);
  });
}

// Takes the last of equal elements; a NaN remains.
template <class T, bool kIsMaximum>
void running_extremum_as(const KernelContext& ctx, int64_t dim) {
  const int64_t size = line_size(ctx.in(0), dim);
  for_each_line(ctx, dim, [&](int64_t l) {
    const Line from = line_of(ctx.in(0), dim, l);
    const Line to = line_of(ctx.out(0), dim, l);
    int64_t best = 0;
    for (int64_t i = 0; i < size; ++i) {
      const auto value = widen(ctx.in(0).as<T>()[from.offset + i * from.stride]);
      const auto so_far = widen(ctx.in(0).as<T>()[from.offset + best * from.stride]);
      const bool is_better = kIsMaximum ? value >= so_far : value <= so_far;
      if (value != value || (so_far == so_far && is_better)) best = i;
      ctx.out(0).as<T>()[to.offset + i * to.stride] =
          ctx.in(0).as<T>()[from.offset + best * from.stride];
      ctx.out(1).as<int64_t>()[to.offset + i * to.stride] = best;
    }
  });
}

template <bool kIsMaximum>
void running_extremum(const KernelContext& ctx) {
  dispatch_all(ctx.in(0).meta->dtype, [&]<class T>() {
    running_extremum_as<T, kIsMaximum>(ctx, ctx.attrs_as<CumprodAttrs>().dim);
  });
}

// The difference of two infinities of the same sign is NaN, so equal values are handled separately.
double logaddexp(double a, double b) {
  const double high = a > b ? a : b;
  const double low = a > b ? b : a;
  if (high != high || low != low) return high + low;
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

void logcumsumexp(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<CumsumAttrs>();
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    scan<T>(ctx, attrs.dim, attrs.reverse, -INFINITY, logaddexp);
  });
}

#endif

struct Add {
  static constexpr int64_t kStart = 0;

  template <class W>
  static W join(W a, W b) {
    if constexpr (std::is_integral_v<W>) {  // wraps around
      return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};

struct Multiply {
  static constexpr int64_t kStart = 1;

  template <class W>
  static W join(W a, W b) {
    if constexpr (std::is_integral_v<W>) {  // wraps around
      return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};

// Elements are joined in groups from the start of the line, then each group with what comes before
// it: only one operation in a group waits for the previous one. Four floats neither overflow nor
// underflow in double; doubles are joined one by one.
template <class T>
constexpr int64_t kScanGroup = std::is_same_v<T, double> ? 1 : 4;

// Scans one line of n elements that are kStep apart.
template <int64_t kStep, class T, class Join>
void scan_line(const T* x, Result<T>* __restrict y, int64_t n) {
  Wide<T> before = Join::kStart;
  int64_t i = 0;
  if constexpr (kScanGroup<T> == 4) {
    for (; i + 4 <= n; i += 4, x += 4 * kStep, y += 4 * kStep) {
      const Wide<T> one = widen(x[0]);
      const Wide<T> two = Join::join(one, widen(x[kStep]));
      const Wide<T> three = Join::join(two, widen(x[2 * kStep]));
      const Wide<T> four = Join::join(three, widen(x[3 * kStep]));
      y[0] = narrow<T>(Join::join(before, one));
      y[kStep] = narrow<T>(Join::join(before, two));
      y[2 * kStep] = narrow<T>(Join::join(before, three));
      before = Join::join(before, four);
      y[3 * kStep] = narrow<T>(before);
    }
  }
  for (Wide<T> joined = Join::kStart; i < n; ++i, x += kStep, y += kStep) {
    joined = Join::join(joined, widen(*x));
    *y = narrow<T>(Join::join(before, joined));
  }
}

// Lines next to each other are scanned together, this many at a time.
constexpr int64_t kScanColumns = 512;

// Scans `columns` lines next to each other; the elements of a line are `stride` apart.
template <class T, class Join>
void scan_columns(const T* x, Result<T>* __restrict y, int64_t stride, int64_t n, int64_t columns) {
  constexpr int64_t kGroup = kScanGroup<T>;
  std::array<Wide<T>, kScanColumns> before;
  before.fill(Join::kStart);
  for (int64_t begin = 0; begin < n; begin += kGroup, x += kGroup * stride, y += kGroup * stride) {
    const auto scan_group = [&](auto count) {
      for (int64_t c = 0; c < columns; ++c) {
        Wide<T> joined = widen(x[c]);
        Wide<T>& sum = before[static_cast<size_t>(c)];
        y[c] = narrow<T>(Join::join(sum, joined));
        for (int64_t i = 1; i < count; ++i) {
          joined = Join::join(joined, widen(x[i * stride + c]));
          y[i * stride + c] = narrow<T>(Join::join(sum, joined));
        }
        sum = Join::join(sum, joined);
      }
    };
    if (n - begin >= kGroup) {
      scan_group(std::integral_constant<int64_t, kGroup>());
    } else {
      scan_group(n - begin);
    }
  }
}

// Lines of a contiguous tensor: element i of line (o, c) is at (o n + i) inner + c.
struct ScanState {
  int64_t outer = 1;
  int64_t n = 1;
  int64_t inner = 1;
  bool reverse = false;
};

// Calls fn(offset, columns) in parallel for strips of lines next to each other; offset is the first
// element of the strip in memory.
template <class Fn>
void for_each_strip(const KernelContext& ctx, const ScanState& state, const Fn& fn) {
  const int64_t width = std::min(state.inner, kScanColumns);
  const int64_t strips = (state.inner + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, 16384 / (state.n * width));
  ctx.pool().parallel_for(0, state.outer * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t column = strip % strips * width;
      fn(strip / strips * state.n * state.inner + column, std::min(width, state.inner - column));
    }
  });
}

template <class T, class Join>
void scan_fast(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ScanState>();
  const int64_t stride = state.reverse ? -state.inner : state.inner;
  const int64_t first = state.reverse ? (state.n - 1) * state.inner : 0;
  for_each_strip(ctx, state, [&](int64_t offset, int64_t columns) {
    const T* x = ctx.in(0).as<T>() + offset + first;
    auto* y = ctx.out(0).as<Result<T>>() + offset + first;
    if (state.inner > 1) {
      scan_columns<T, Join>(x, y, stride, state.n, columns);
    } else if (state.reverse) {
      scan_line<-1, T, Join>(x, y, state.n);
    } else {
      scan_line<1, T, Join>(x, y, state.n);
    }
  });
}

// The lines of a contiguous tensor along `dim`; none for other tensors.
std::shared_ptr<ScanState> contiguous_lines(const TensorMeta& x, int64_t dim) {
  if (!x.is_contiguous || x.local_numel == 0) return nullptr;
  auto state = std::make_shared<ScanState>();
  for (int64_t i = 0; i < x.local_shape.size(); ++i)
    (i < dim ? state->outer : i > dim ? state->inner : state->n) *= x.local_shape[i];
  return state;
}

template <class Join>
KernelChoice select_scan(const KernelQuery& query, int64_t dim, bool reverse) {
  const DType dtype = query.input(0).dtype;
  auto state = contiguous_lines(query.input(0), dim);
  if (state == nullptr) return {};
  state->reverse = reverse;
  return {dispatch_all(dtype, []<class T>() -> KernelFn { return scan_fast<T, Join>; }),
          std::move(state)};
}

KernelChoice select_cumsum(const KernelQuery& query) {
  const auto& attrs = query.attrs_as<CumsumAttrs>();
  return select_scan<Add>(query, attrs.dim, attrs.reverse);
}

KernelChoice select_cumprod(const KernelQuery& query) {
  return select_scan<Multiply>(query, query.attrs_as<CumprodAttrs>().dim, false);
}

template <class T>
using Compared = std::conditional_t<kIsFloat16<T>, float, T>;

// Takes the last of equal elements; a NaN remains.
template <bool kIsMaximum, class C>
bool replaces(C value, C so_far) {
  const bool is_better = kIsMaximum ? value >= so_far : value <= so_far;
  return (value != value) | ((so_far == so_far) & is_better);
}

template <class T, bool kIsMaximum>
void extremum_line(const T* x, T* __restrict y, int64_t* __restrict positions, int64_t n) {
  auto best = static_cast<Compared<T>>(x[0]);
  int64_t position = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<Compared<T>>(x[i]);
    const bool is_worse = kIsMaximum ? value < best : value > best;
    if (!is_worse && replaces<kIsMaximum>(value, best)) {  // seldom
      best = value;
      position = i;
    }
    y[i] = T(best);
    positions[i] = position;
  }
}

template <class T, bool kIsMaximum>
void extremum_columns(const T* x, T* __restrict y, int64_t* __restrict positions, int64_t stride,
                      int64_t n, int64_t columns) {
  std::array<Compared<T>, kScanColumns> best;
  std::array<int64_t, kScanColumns> position{};
  for (int64_t c = 0; c < columns; ++c)
    best[static_cast<size_t>(c)] = static_cast<Compared<T>>(x[c]);
  for (int64_t i = 0; i < n; ++i, x += stride, y += stride, positions += stride) {
    for (int64_t c = 0; c < columns; ++c) {
      const auto column = static_cast<size_t>(c);
      const auto value = static_cast<Compared<T>>(x[c]);
      const bool is_new = replaces<kIsMaximum>(value, best[column]);
      best[column] = is_new ? value : best[column];
      position[column] = is_new ? i : position[column];
      y[c] = T(best[column]);
      positions[c] = position[column];
    }
  }
}

template <class T, bool kIsMaximum>
void running_extremum_fast(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ScanState>();
  for_each_strip(ctx, state, [&](int64_t offset, int64_t columns) {
    const T* x = ctx.in(0).as<T>() + offset;
    T* y = ctx.out(0).as<T>() + offset;
    auto* positions = ctx.out(1).as<int64_t>() + offset;
    if (state.inner > 1) {
      extremum_columns<T, kIsMaximum>(x, y, positions, state.inner, state.n, columns);
    } else {
      extremum_line<T, kIsMaximum>(x, y, positions, state.n);
    }
  });
}

template <bool kIsMaximum>
KernelChoice select_running_extremum(const KernelQuery& query) {
  auto state = contiguous_lines(query.input(0), query.attrs_as<CumprodAttrs>().dim);
  if (state == nullptr) return {};
  const KernelFn fn = dispatch_all(query.input(0).dtype, []<class T>() -> KernelFn {
    return running_extremum_fast<T, kIsMaximum>;
  });
  return {fn, std::move(state)};
}

// log of a growing sum of exp(v), kept as exp(largest) sum: no term waits for the logarithm of the
// terms before it.
class RunningLogSum {
 public:
  double add(double v) {
    if (v != v || largest_ != largest_) {
      largest_ = v + largest_;  // NaN from here on
      return largest_;
    }
    if (v > largest_) {
      sum_ = sum_ * std::exp(largest_ - v) + 1;
      largest_ = v;
    } else if (!std::isinf(largest_)) {
      sum_ += std::exp(v - largest_);
    }
    return std::isinf(largest_) ? largest_ : largest_ + std::log(sum_);
  }

 private:
  double largest_ = -INFINITY;
  double sum_ = 0;
};

template <class T>
void logcumsumexp_fast(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ScanState>();
  const int64_t stride = state.reverse ? -state.inner : state.inner;
  const int64_t first = state.reverse ? (state.n - 1) * state.inner : 0;
  for_each_strip(ctx, state, [&](int64_t offset, int64_t columns) {
    std::array<RunningLogSum, kScanColumns> sums;
    const T* x = ctx.in(0).as<T>() + offset + first;
    T* y = ctx.out(0).as<T>() + offset + first;
    for (int64_t i = 0; i < state.n; ++i, x += stride, y += stride) {
      for (int64_t c = 0; c < columns; ++c)
        y[c] = narrow<T>(sums[static_cast<size_t>(c)].add(widen(x[c])));
    }
  });
}

KernelChoice select_logcumsumexp(const KernelQuery& query) {
  const auto& attrs = query.attrs_as<CumsumAttrs>();
  auto state = contiguous_lines(query.input(0), attrs.dim);
  if (state == nullptr) return {};
  state->reverse = attrs.reverse;
  return {dispatch_floating(query.input(0).dtype,
                            []<class T>() -> KernelFn { return logcumsumexp_fast<T>; }),
          std::move(state)};
}

}  // namespace

void register_scan_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kCummax, DeviceType::kCpu, {"reference", always<running_extremum<true>>});
  table.add(kCummin, DeviceType::kCpu, {"reference", always<running_extremum<false>>});
  table.add(kLogcumsumexp, DeviceType::kCpu, {"reference", always<logcumsumexp>});
  table.add(kCumsum, DeviceType::kCpu, {"reference", always<cumsum>});
  table.add(kCumprod, DeviceType::kCpu, {"reference", always<cumprod>});
  table.add(kCumprodBackward, DeviceType::kCpu, {"reference", always<cumprod_backward>});
#endif
  table.add(kCummax, DeviceType::kCpu,
            {FLOW_ISA_NAME, as_is_or_copied<select_running_extremum<true>>});
  table.add(kCummin, DeviceType::kCpu,
            {FLOW_ISA_NAME, as_is_or_copied<select_running_extremum<false>>});
  table.add(kCumsum, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_cumsum>});
  table.add(kCumprod, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_cumprod>});
  table.add(kLogcumsumexp, DeviceType::kCpu, {FLOW_ISA_NAME, as_is_or_copied<select_logcumsumexp>});
}

#include "ops/kernel/isa_end.h"
