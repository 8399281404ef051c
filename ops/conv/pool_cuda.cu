// Pooling on CUDA devices, with one thread for each element. Gradients are gathered: each element
// of dx reads the windows that contain it, in the order of the windows, so no atomic additions are
// needed.
#include "ops/conv/pool_op.h"
#include "ops/conv/pool_state.h"
#include "ops/conv/window.h"
#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

void register_pool_cuda(KernelTable& table);

namespace {

// H or W: output o reads first, first + step, …
struct DevicePoolDim {
  int64_t in;
  int64_t out;
  int64_t kernel;
  int64_t stride;
  int64_t padding;
  int64_t step;
  bool is_adaptive;
  bool counts_padding;

  struct Taps {
    int64_t first;
    int64_t count;
  };

  __device__ Taps taps(int64_t o) const {
    if (is_adaptive) {
      const int64_t begin = o * in / out;
      return {begin, ((o + 1) * in + out - 1) / out - begin};
    }
    const int64_t start = o * stride - padding;
    const int64_t skipped = start < 0 ? (-start + step - 1) / step : 0;
    const int64_t end = in - start;  // taps k step < end are inside
    const int64_t last = end <= 0 ? 0 : std::min(kernel, (end + step - 1) / step);
    return {start + skipped * step, std::max(int64_t{0}, last - skipped)};
  }

  // The divisor of a mean in this dim.
  __device__ double elements(int64_t o) const {
    if (is_adaptive || !counts_padding) return static_cast<double>(taps(o).count);
    const int64_t start = o * stride - padding;
    return static_cast<double>(std::min(start + kernel, in + padding) - start);
  }

  // The outputs that may read element `i`: [first, last].
  struct Outputs {
    int64_t first;
    int64_t last;
  };

  __device__ Outputs outputs(int64_t i) const {
    if (is_adaptive) return {i * out / in, ((i + 1) * out + in - 1) / in - 1};
    const int64_t reach = step * (kernel - 1);
    const int64_t low = i + padding - reach;
    return {low <= 0 ? 0 : (low + stride - 1) / stride, std::min(out - 1, (i + padding) / stride)};
  }

  __device__ bool reads(int64_t o, int64_t i) const {
    const Taps own = taps(o);
    const int64_t distance = i - own.first;
    return distance >= 0 && distance % step == 0 && distance / step < own.count;
  }
};

struct DevicePool {
  int64_t planes = 1;
  DevicePoolDim h;
  DevicePoolDim w;
  double divisor = 0;

  __device__ double divisor_of(int64_t oh, int64_t ow) const {
    return divisor != 0 ? divisor : h.elements(oh) * w.elements(ow);
  }

  // Calls fn(offset in the plane) for the elements that output (oh, ow) reads.
  template <class Fn>
  __device__ void for_each_tap(int64_t oh, int64_t ow, const Fn& fn) const {
    const auto rows = h.taps(oh);
    const auto columns = w.taps(ow);
    for (int64_t i = 0; i < rows.count; ++i) {
      for (int64_t j = 0; j < columns.count; ++j)
        fn((rows.first + i * h.step) * w.in + columns.first + j * w.step);
    }
  }
};

// Plane, row and column of element `i` of planes of rows of `width`.
struct Pixel {
  int64_t plane;
  int64_t row;
  int64_t column;

  __device__ Pixel(int64_t i, int64_t height, int64_t width) {
    const auto [line, x] = divide(i, width);
    const auto [p, y] = divide(line, height);
    plane = p;
    row = y;
    column = x;
  }
};

// Integers are compared without conversion, floats as double.
template <class T>
using Compared = std::conditional_t<std::is_integral_v<T>, T, Wide<T>>;

// The position in its plane of the largest element of a window; -1 if the window is empty. A NaN is
// chosen over every number.
template <class T>
__device__ int64_t find_maximum(const DevicePool& pool, const T* plane, int64_t oh, int64_t ow) {
  Compared<T> best{};
  int64_t best_at = -1;
  pool.for_each_tap(oh, ow, [&](int64_t at) {
    const Compared<T> value = widen(plane[at]);
    if (best_at >= 0 && !(value > best) && value == value) return;
    best = value;
    best_at = at;
  });
  return best_at;
}

template <class T>
struct MaxPool {
  DevicePool pool;
  const T* x;
  const T* source;  // read at the positions of the maxima
  T* y;
  int64_t* indices;  // null if not requested
  T none;

  __device__ void operator()(int64_t i) const {
    const Pixel o(i, pool.h.out, pool.w.out);
    const int64_t plane = o.plane * pool.h.in * pool.w.in;
    const int64_t at = find_maximum(pool, x + plane, o.row, o.column);
    y[i] = at < 0 ? none : source[plane + at];
    if (indices != nullptr) indices[i] = at;
  }
};

template <class T>
struct MaxPoolBackward {
  DevicePool pool;
  const T* x;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const Pixel p(i, pool.h.in, pool.w.in);
    const T* plane = x + p.plane * pool.h.in * pool.w.in;
    const T* gradient = dy + p.plane * pool.h.out * pool.w.out;
    const int64_t own = p.row * pool.w.in + p.column;
    const auto rows = pool.h.outputs(p.row);
    const auto columns = pool.w.outputs(p.column);
    double sum = 0;
    for (int64_t oh = rows.first; oh <= rows.last; ++oh) {
      if (!pool.h.reads(oh, p.row)) continue;
      for (int64_t ow = columns.first; ow <= columns.last; ++ow) {
        if (!pool.w.reads(ow, p.column)) continue;
        if (find_maximum(pool, plane, oh, ow) == own)
          sum += static_cast<double>(widen(gradient[oh * pool.w.out + ow]));
      }
    }
    dx[i] = narrow<T>(static_cast<Wide<T>>(sum));
  }
};

template <class T>
struct AvgPool {
  DevicePool pool;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const Pixel o(i, pool.h.out, pool.w.out);
    const T* plane = x + o.plane * pool.h.in * pool.w.in;
    double sum = 0;
    pool.for_each_tap(o.row, o.column,
                      [&](int64_t at) { sum += static_cast<double>(widen(plane[at])); });
    y[i] = narrow<T>(static_cast<Wide<T>>(sum / pool.divisor_of(o.row, o.column)));
  }
};

template <class T>
struct AvgPoolBackward {
  DevicePool pool;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const Pixel p(i, pool.h.in, pool.w.in);
    const T* gradient = dy + p.plane * pool.h.out * pool.w.out;
    const auto rows = pool.h.outputs(p.row);
    const auto columns = pool.w.outputs(p.column);
    double sum = 0;
    for (int64_t oh = rows.first; oh <= rows.last; ++oh) {
      if (!pool.h.reads(oh, p.row)) continue;
      for (int64_t ow = columns.first; ow <= columns.last; ++ow) {
        if (!pool.w.reads(ow, p.column)) continue;
        sum += static_cast<double>(widen(gradient[oh * pool.w.out + ow])) / pool.divisor_of(oh, ow);
      }
    }
    dx[i] = narrow<T>(static_cast<Wide<T>>(sum));
  }
};

// The shapes of x and y, whichever the op reads or writes.
struct PoolShapes {
  const Shape& x;
  const Shape& y;
};

DevicePool device_pool(const PoolShapes& shapes) {
  DevicePool pool{};
  pool.planes = 1;
  const int64_t leading = shapes.x.size() - 2;
  for (int64_t i = 0; i < leading; ++i)
    pool.planes *= shapes.x[i];
  for (const int64_t i : {0, 1}) {
    DevicePoolDim& dim = i == 0 ? pool.h : pool.w;
    dim = DevicePoolDim{.in = shapes.x[leading + i],
                        .out = shapes.y[leading + i],
                        .kernel = 1,
                        .stride = 1,
                        .padding = 0,
                        .step = 1,
                        .is_adaptive = true,
                        .counts_padding = false};
  }
  return pool;
}

template <class Attrs>
void set_windows(DevicePool& pool, const Attrs& attrs, bool counts_padding) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    DevicePoolDim& dim = i == 0 ? pool.h : pool.w;
    const WindowDim window = window_dim(attrs, i, dim.in, dim.out);
    dim.kernel = window.kernel;
    dim.stride = window.stride;
    dim.padding = window.padding;
    dim.step = window.dilation;
    dim.is_adaptive = false;
    dim.counts_padding = counts_padding;
  }
}

DevicePool max_pool_of(const KernelContext& ctx, const PoolShapes& shapes) {
  DevicePool pool = device_pool(shapes);
  const auto& attrs = ctx.attrs_as<MaxPoolAttrs>();
  if (!attrs.is_adaptive()) set_windows(pool, attrs, false);
  return pool;
}

template <bool kIsAdaptive>
DevicePool avg_pool_of(const KernelContext& ctx, const PoolShapes& shapes) {
  DevicePool pool = device_pool(shapes);
  if constexpr (!kIsAdaptive) {
    const auto& attrs = ctx.attrs_as<AvgPoolAttrs>();
    set_windows(pool, attrs, attrs.count_include_pad);
    pool.divisor = static_cast<double>(attrs.divisor);
  }
  return pool;
}

// The result of a window without elements.
template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return static_cast<T>(-std::numeric_limits<float>::infinity());
  }
}

void max_pool(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const DevicePool pool = max_pool_of(ctx, {ctx.in(0).shape(), y.shape()});
  const DenseInput x(ctx, 0);
  int64_t* indices = ctx.outputs.size() > 1 ? ctx.out(1).as<int64_t>() : nullptr;
  dispatch_all(y.meta->dtype, [&]<class T>() {
    for_each_element(ctx, y.numel(),
                     MaxPool<T>{pool, x.as<T>(), x.as<T>(), y.as<T>(), indices, lowest<T>()});
  });
}

void max_pool_gather(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const DevicePool pool = max_pool_of(ctx, {ctx.in(0).shape(), y.shape()});
  const DenseInput x(ctx, 0);
  const DenseInput source(ctx, 1);
  dispatch_floating(y.meta->dtype, [&]<class T>() {
    for_each_element(
        ctx, y.numel(),
        MaxPool<T>{pool, x.as<T>(), source.as<T>(), y.as<T>(), nullptr, static_cast<T>(0.0F)});
  });
}

void max_pool_backward(const KernelContext& ctx) {
  const TensorView& dx = ctx.out(0);
  const DevicePool pool = max_pool_of(ctx, {ctx.in(0).shape(), ctx.in(1).shape()});
  const DenseInput x(ctx, 0);
  const DenseInput dy(ctx, 1);
  dispatch_floating(dx.meta->dtype, [&]<class T>() {
    for_each_element(ctx, dx.numel(), MaxPoolBackward<T>{pool, x.as<T>(), dy.as<T>(), dx.as<T>()});
  });
}

template <bool kIsAdaptive>
void avg_pool(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const DevicePool pool = avg_pool_of<kIsAdaptive>(ctx, {ctx.in(0).shape(), y.shape()});
  const DenseInput x(ctx, 0);
  const auto run = [&]<class T>() {
    for_each_element(ctx, y.numel(), AvgPool<T>{pool, x.as<T>(), y.as<T>()});
  };
  if (y.meta->dtype == DType::kInt64) return run.template operator()<int64_t>();
  dispatch_floating(y.meta->dtype, run);
}

template <bool kIsAdaptive>
void avg_pool_backward(const KernelContext& ctx) {
  const TensorView& dx = ctx.out(0);
  const DevicePool pool = avg_pool_of<kIsAdaptive>(ctx, {dx.shape(), ctx.in(0).shape()});
  const DenseInput dy(ctx, 0);
  dispatch_floating(dx.meta->dtype, [&]<class T>() {
    for_each_element(ctx, dx.numel(), AvgPoolBackward<T>{pool, dy.as<T>(), dx.as<T>()});
  });
}

template <KernelFn kFn>
KernelChoice select(const KernelQuery& query) {
  return {parts_agree(query) ? kFn : nullptr};
}

}  // namespace

void register_pool_cuda(KernelTable& table) {
  table.add(kMaxPool, DeviceType::kCuda, {"cuda", select<max_pool>});
  table.add(kMaxPoolWithIndices, DeviceType::kCuda, {"cuda", select<max_pool>});
  table.add(kMaxPoolBackward, DeviceType::kCuda, {"cuda", select<max_pool_backward>});
  table.add(kMaxPoolGather, DeviceType::kCuda, {"cuda", select<max_pool_gather>});
  table.add(kAvgPool, DeviceType::kCuda, {"cuda", select<avg_pool<false>>});
  table.add(kAvgPoolBackward, DeviceType::kCuda, {"cuda", select<avg_pool_backward<false>>});
  table.add(kAdaptiveAvgPool, DeviceType::kCuda, {"cuda", select<avg_pool<true>>});
  table.add(kAdaptiveAvgPoolBackward, DeviceType::kCuda, {"cuda", select<avg_pool_backward<true>>});
}

}  // namespace flow::ops
