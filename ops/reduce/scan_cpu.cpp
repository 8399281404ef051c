// Running sums, products and extrema in double or int64. Each kernel works on one line at a time.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "core/float16.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/kernel/lines.h"
#include "ops/reduce/scan_op.h"

#include "ops/kernel/isa_begin.h"

void register_scan_cpu(KernelTable& table);

#if FLOW_ISA == 0

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

}  // namespace

void register_scan_cpu(KernelTable& table) {
  table.add(kCummax, DeviceType::kCpu, {"reference", always<running_extremum<true>>});
  table.add(kCummin, DeviceType::kCpu, {"reference", always<running_extremum<false>>});
  table.add(kLogcumsumexp, DeviceType::kCpu, {"reference", always<logcumsumexp>});
  table.add(kCumsum, DeviceType::kCpu, {"reference", always<cumsum>});
  table.add(kCumprod, DeviceType::kCpu, {"reference", always<cumprod>});
  table.add(kCumprodBackward, DeviceType::kCpu, {"reference", always<cumprod_backward>});
}

#else

void register_scan_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
