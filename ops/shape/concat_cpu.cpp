// Copies of boxes. All of them run at the speed of memory without further optimisation.
#include <algorithm>

#include "core/kernel.h"
#include "ops/elementwise/cast_formula.h"
#include "ops/kernel/box_copy.h"
#include "ops/shape/concat_op.h"

#include "ops/kernel/isa_begin.h"

void register_concat_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

int64_t element_bytes(const TensorView& tensor) {
  return static_cast<int64_t>(dtype_size(tensor.meta->dtype));
}

void cat(const KernelContext& ctx) {
  const int64_t dim = ctx.attrs_as<CatAttrs>().dim;
  const TensorView& y = ctx.out(0);
  const int64_t bytes = element_bytes(y);
  std::byte* target = y.data;
  for (const TensorView& x : ctx.inputs) {
    copy_box(ctx.pool(), x.shape(), {target, y.strides()}, {x.data, x.strides()},
             static_cast<size_t>(bytes));
    target += x.shape()[dim] * y.strides()[dim] * bytes;
  }
}

// The source runs backwards along the flipped dims.
void flip(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  const int64_t bytes = element_bytes(y);
  BoxSource source{x.data, x.strides()};
  for (const int64_t dim : ctx.attrs_as<FlipAttrs>().dims) {
    source.data += std::max<int64_t>(0, x.shape()[dim] - 1) * x.strides()[dim] * bytes;
    source.strides[dim] *= -1;
  }
  copy_box(ctx.pool(), y.shape(), {y.data, y.strides()}, source, static_cast<size_t>(bytes));
}

void pad(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<PadAttrs>();
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  dispatch_all(y.meta->dtype,
               [&]<class T>() { std::fill_n(y.as<T>(), y.numel(), convert<T>(attrs.value)); });
  const int64_t bytes = element_bytes(y);
  std::byte* target = y.data;
  for (int64_t i = 0; i < attrs.before.size(); ++i)
    target += attrs.before[i] * y.strides()[i] * bytes;
  copy_box(ctx.pool(), x.shape(), {target, y.strides()}, {x.data, x.strides()},
           static_cast<size_t>(bytes));
}

// Row by row: columns [0, end) of the lower triangle, [begin, columns) of the upper one.
template <bool kUpper>
void triangle(const KernelContext& ctx) {
  const int64_t diagonal = ctx.attrs_as<TriangleAttrs>().diagonal;
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  zero_part(y);
  const int64_t ndim = y.shape().size();
  const Range rows = local_range(*y.meta, ndim - 2);
  const Range columns = local_range(*y.meta, ndim - 1);
  const int64_t bytes = element_bytes(y);
  Shape size = y.shape();
  size[ndim - 2] = 1;
  for (int64_t row = 0; row < rows.size; ++row) {
    // The last column of the lower triangle is row + diagonal.
    const int64_t bound = rows.begin + row + diagonal + (kUpper ? 0 : 1) - columns.begin;
    const int64_t cut = std::clamp<int64_t>(bound, 0, columns.size);
    const int64_t first = kUpper ? cut : 0;
    size[ndim - 1] = kUpper ? columns.size - cut : cut;
    const auto start = [&](const TensorView& tensor) {
      return (row * tensor.strides()[ndim - 2] + first * tensor.strides()[ndim - 1]) * bytes;
    };
    copy_box(ctx.pool(), size, {y.data + start(y), y.strides()}, {x.data + start(x), x.strides()},
             static_cast<size_t>(bytes));
  }
}

}  // namespace

void register_concat_cpu(KernelTable& table) {
  table.add(kCat, DeviceType::kCpu, {"reference", always<cat>});
  table.add(kFlip, DeviceType::kCpu, {"reference", always<flip>});
  table.add(kPad, DeviceType::kCpu, {"reference", always<pad>});
  table.add(kTril, DeviceType::kCpu, {"reference", always<triangle<false>>});
  table.add(kTriu, DeviceType::kCpu, {"reference", always<triangle<true>>});
}

#else

void register_concat_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
