// Copies of boxes.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/elementwise/cast_formula.h"
#include "ops/kernel/box_copy.h"
#include "ops/kernel/copy_bytes.h"
#include "ops/shape/concat_op.h"

#include "ops/kernel/isa_begin.h"

void register_concat_cpu(KernelTable& table);

namespace {

// The rows of a dense tensor, counted over the dims before the joined one.
struct DenseRows {
  const std::byte* data;
  size_t bytes;  // of a row
};

// Every row of y is written once, from its beginning to its end.
void cat_rows(const KernelContext& ctx) {
  const int64_t dim = ctx.attrs_as<CatAttrs>().dim;
  const TensorView& y = ctx.out(0);
  const size_t element = dtype_size(y.meta->dtype);
  int64_t num_rows = 1;
  for (int64_t i = 0; i < dim; ++i)
    num_rows *= y.shape()[i];
  if (y.numel() == 0) return;
  const size_t y_bytes = static_cast<size_t>(y.numel() / num_rows) * element;
  std::vector<DenseRows> inputs;
  inputs.reserve(ctx.inputs.size());
  for (const TensorView& x : ctx.inputs)
    inputs.push_back({x.data, static_cast<size_t>(x.numel() / num_rows) * element});
  constexpr size_t kGrainBytes = 1 << 16;
  const auto grain = static_cast<int64_t>(kGrainBytes / y_bytes + 1);
  ctx.pool().parallel_for(0, num_rows, grain, [&](int64_t begin, int64_t end) {
    for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row) {
      std::byte* target = y.data + row * y_bytes;
      for (const DenseRows& x : inputs) {
        copy_bytes(target, x.data + row * x.bytes, x.bytes);
        target += x.bytes;
      }
    }
  });
}

KernelChoice select_cat_rows(const KernelQuery& query) {
  const bool is_dense = std::all_of(query.inputs.begin(), query.inputs.end(),
                                    [](MetaPtr x) { return x->is_contiguous; });
  if (!is_dense || query.attrs_as<CatAttrs>().dim == 0) return {};
  return {cat_rows};
}

}  // namespace

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

// Fills the borders of y, dim by dim, and copies x inside them.
void pad(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<PadAttrs>();
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  const int64_t bytes = element_bytes(y);
  uint64_t value = 0;
  dispatch_all(y.meta->dtype, [&]<class T>() {
    const T element = convert<T>(attrs.value);
    std::memcpy(&value, &element, sizeof(T));
  });
  const auto* source = reinterpret_cast<const std::byte*>(&value);
  Shape size = y.shape();
  std::byte* target = y.data;
  for (int64_t dim = 0; dim < size.size(); ++dim) {
    const int64_t step = y.strides()[dim] * bytes;
    const auto fill = [&](int64_t begin, int64_t count) {
      if (count == 0) return;
      size[dim] = count;
      copy_box(ctx.pool(), size, {target + begin * step, y.strides()},
               {source, Strides::filled(size.size(), 0)}, static_cast<size_t>(bytes));
    };
    fill(0, attrs.before[dim]);
    fill(attrs.before[dim] + x.shape()[dim], attrs.after[dim]);
    size[dim] = x.shape()[dim];
    target += attrs.before[dim] * step;
  }
  copy_box(ctx.pool(), size, {target, y.strides()}, {x.data, x.strides()},
           static_cast<size_t>(bytes));
}

// The offset of row `row`, counted through all dims but the last.
int64_t row_offset(const TensorView& tensor, int64_t row) {
  int64_t offset = 0;
  for (int64_t dim = tensor.shape().size() - 2; dim >= 0; --dim) {
    offset += row % tensor.shape()[dim] * tensor.strides()[dim];
    row /= tensor.shape()[dim];
  }
  return offset;
}

// Row by row: columns [0, end) of the lower triangle, [begin, columns) of the upper one.
template <bool kUpper>
void triangle(const KernelContext& ctx) {
  const int64_t diagonal = ctx.attrs_as<TriangleAttrs>().diagonal;
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  if (y.numel() == 0) return;
  const int64_t last = y.shape().size() - 1;
  const Range rows = local_range(*y.meta, last - 1);
  const Range columns = local_range(*y.meta, last);
  const int64_t bytes = element_bytes(y);
  const int64_t x_column = x.strides()[last];
  const PlaneCopy copy = plane_copy(static_cast<size_t>(bytes));
  constexpr int64_t kGrain = 1 << 14;  // elements
  ctx.pool().parallel_for(
      0, y.numel() / columns.size, kGrain / columns.size + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          // The last column of the lower triangle is row + diagonal.
          const int64_t row = rows.begin + i % rows.size;
          const int64_t bound = row + diagonal + (kUpper ? 0 : 1) - columns.begin;
          const int64_t cut = std::clamp<int64_t>(bound, 0, columns.size);
          const Range kept = kUpper ? Range{cut, columns.size - cut} : Range{0, cut};
          const Range cleared = kUpper ? Range{0, cut} : Range{cut, columns.size - cut};
          std::byte* target = y.data + i * columns.size * bytes;
          const int64_t from = row_offset(x, i) + kept.begin * x_column;
          std::memset(target + cleared.begin * bytes, 0, static_cast<size_t>(cleared.size * bytes));
          copy({target + kept.begin * bytes, x.data + from * bytes, 1, kept.size, 0, 1, 0,
                x_column});
        }
      });
}

}  // namespace

void register_concat_cpu(KernelTable& table) {
  table.add(kCat, DeviceType::kCpu, {"reference", always<cat>});
  table.add(kCat, DeviceType::kCpu, {FLOW_ISA_NAME, select_cat_rows});
  table.add(kFlip, DeviceType::kCpu, {"reference", always<flip>});
  table.add(kPad, DeviceType::kCpu, {"reference", always<pad>});
  table.add(kTril, DeviceType::kCpu, {"reference", always<triangle<false>>});
  table.add(kTriu, DeviceType::kCpu, {"reference", always<triangle<true>>});
}

#else

void register_concat_cpu(KernelTable& table) {
  table.add(kCat, DeviceType::kCpu, {FLOW_ISA_NAME, select_cat_rows});
}

#endif

#include "ops/kernel/isa_end.h"
