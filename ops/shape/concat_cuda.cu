// Copies of boxes on CUDA devices: joining, flipping, padding, triangles.
#include "ops/elementwise/cast_formula.h"
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/shape/concat_op.h"

namespace flow::ops {

void register_concat_cuda(KernelTable& table);

namespace {

int64_t element_bytes(const TensorView& tensor) {
  return static_cast<int64_t>(dtype_size(tensor.meta->dtype));
}

// Some arrays that follow each other in `to`.
template <class T>
struct CopyArrays {
  static constexpr int kMost = 128;

  T* to;
  int count;
  const T* from[kMost];
  int32_t end[kMost];  // of each in `to`

  __device__ void operator()(int64_t i) const {
    int low = 0;
    for (int high = count - 1; low < high;) {
      const int middle = (low + high) / 2;
      if (i < end[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    to[i] = from[low][low == 0 ? i : i - end[low - 1]];
  }
};

// Joins small contiguous tensors along their first dim, many in one launch. Returns false for
// others.
bool join_arrays(const KernelContext& ctx) {
  constexpr int64_t kMostElements = 1 << 16;
  const TensorView& y = ctx.out(0);
  if (ctx.attrs_as<CatAttrs>().dim != 0 || !y.meta->is_contiguous || y.numel() > kMostElements) {
    return false;
  }
  for (const TensorView& x : ctx.inputs)
    if (!x.meta->is_contiguous) return false;
  dispatch_size(y.meta->dtype, [&]<class T>() {
    CopyArrays<T> copy{y.as<T>(), 0, {}, {}};
    int64_t end = 0;
    const auto flush = [&] {
      for_each_element(ctx, end, copy);
      copy.to += end;
      copy.count = 0;
      end = 0;
    };
    for (const TensorView& x : ctx.inputs) {
      if (x.numel() == 0) continue;
      end += x.numel();
      copy.from[copy.count] = x.as<T>();
      copy.end[copy.count++] = static_cast<int32_t>(end);
      if (copy.count == CopyArrays<T>::kMost) flush();
    }
    flush();
  });
  return true;
}

void cat(const KernelContext& ctx) {
  if (ctx.inputs.size() > 2 && join_arrays(ctx)) return;
  const int64_t dim = ctx.attrs_as<CatAttrs>().dim;
  const TensorView& y = ctx.out(0);
  std::byte* target = y.data;
  for (const TensorView& x : ctx.inputs) {
    copy_box(ctx, x.shape(), {target, y.strides()}, {x.data, x.strides()}, y.meta->dtype);
    target += x.shape()[dim] * y.strides()[dim] * element_bytes(y);
  }
}

// The source runs backwards along the flipped dims.
void flip(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  BoxSource source{x.data, x.strides()};
  for (const int64_t dim : ctx.attrs_as<FlipAttrs>().dims) {
    source.data += std::max<int64_t>(0, x.shape()[dim] - 1) * x.strides()[dim] * element_bytes(y);
    source.strides[dim] *= -1;
  }
  copy_box(ctx, y.shape(), {y.data, y.strides()}, source, y.meta->dtype);
}

void pad(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<PadAttrs>();
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  dispatch_all(y.meta->dtype, [&]<class T>() {
    if constexpr (kIsFloat16<T>) {
      fill_part(ctx, y, T(static_cast<float>(attrs.value)));
    } else {
      fill_part(ctx, y, convert<T>(attrs.value));
    }
  });
  std::byte* target = y.data;
  for (int64_t i = 0; i < attrs.before.size(); ++i)
    target += attrs.before[i] * y.strides()[i] * element_bytes(y);
  copy_box(ctx, x.shape(), {target, y.strides()}, {x.data, x.strides()}, y.meta->dtype);
}

template <class T>
struct Triangle {
  const T* x;
  Places places;
  T* y;
  int64_t rows;
  int64_t columns;
  int64_t diagonal;  // counted in local rows and columns
  bool is_upper;

  __device__ void operator()(int64_t i) const {
    const auto [line, column] = divide(i, columns);
    const int64_t last = divide(line, rows).rest + diagonal;
    const bool is_kept = is_upper ? column >= last : column <= last;
    y[i] = is_kept ? x[places(i)] : T{0};
  }
};

template <bool kUpper>
void triangle(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  const int64_t ndim = y.shape().size();
  const Range rows = local_range(*y.meta, ndim - 2);
  const Range columns = local_range(*y.meta, ndim - 1);
  const int64_t diagonal = rows.begin + ctx.attrs_as<TriangleAttrs>().diagonal - columns.begin;
  dispatch_size(y.meta->dtype, [&]<class T>() {
    for_each_element(ctx, y.numel(),
                     Triangle<T>{x.as<T>(), Places(*x.meta), y.as<T>(), rows.size, columns.size,
                                 diagonal, kUpper});
  });
}

}  // namespace

void register_concat_cuda(KernelTable& table) {
  table.add(kCat, DeviceType::kCuda, {"cuda", always<cat>});
  table.add(kFlip, DeviceType::kCuda, {"cuda", always<flip>});
  table.add(kPad, DeviceType::kCuda, {"cuda", always<pad>});
  table.add(kTril, DeviceType::kCuda, {"cuda", always<triangle<false>>});
  table.add(kTriu, DeviceType::kCuda, {"cuda", always<triangle<true>>});
}

}  // namespace flow::ops
