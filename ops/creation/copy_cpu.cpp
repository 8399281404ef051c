// Kernels of ops/creation/copy.h. Elements of one dtype are copied as integers of their size; copy_
// between different dtypes uses the reference kernel.
#include <cstring>

#include "ops/creation/copy_op.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/kernel/convert_rows.h"

#include "ops/kernel/isa_begin.h"

namespace {

// ---- clone and copy_ between equal dtypes

// The source is the last input: clone has one, copy_ two.
const TensorView& source_of(const KernelContext& ctx) {
  return ctx.inputs.back();
}

void copy_flat(const KernelContext& ctx) {
  const int64_t bytes = static_cast<int64_t>(ctx.out(0).meta->local_bytes());
  std::byte* y = ctx.out(0).data;
  const std::byte* x = source_of(ctx).data;
  constexpr int64_t kGrain = 4 * kElementwiseGrain;
  const bool streams = bytes >= kStreamBytes && bytes % 4 == 0;
  ctx.pool().parallel_for(0, bytes, kGrain, [&](int64_t begin, int64_t end) {
    if (streams && (begin | end) % 4 == 0) {
      map_stream(
          reinterpret_cast<float*>(y + begin), (end - begin) / 4, [](auto v) { return v; },
          reinterpret_cast<const float*>(x + begin));
    } else {
      std::memcpy(y + begin, x + begin, static_cast<size_t>(end - begin));
    }
  });
}

struct CopyState {
  LoopNest loop;
  // The dim along which the source is contiguous while the inner loop uses a larger stride (a
  // transpose); -1 if there is none.
  int dense_dim = -1;
};

template <class T>
void copy_rows(const KernelContext& ctx) {
  const LoopNest& state = ctx.state_as<CopyState>().loop;
  const int64_t y_stride = state.inner_stride()[0];
  const int64_t x_stride = state.inner_stride()[1];
  parallel_stretches(ctx.pool(), state, [&](const LoopNest::Offsets& offsets, int64_t n) {
    T* y = ctx.out(0).as<T>() + offsets[0];
    const T* x = source_of(ctx).as<T>() + offsets[1];
    if (y_stride == 1 && x_stride == 1) {
      std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
    } else if (y_stride == 1 && x_stride == 0) {
      std::fill_n(y, n, *x);
    } else {
      for (int64_t i = 0; i < n; ++i)
        y[i * y_stride] = x[i * x_stride];
    }
  });
}

// y is dense along columns, x along rows: square tiles touch each cache line of both once.
template <class T>
void copy_tile(T* y, int64_t y_row, const T* x, int64_t x_column, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      y[r * y_row + c] = x[c * x_column + r];
  }
}

// The state without its dense dim. For each of its rows, the dense dim and the inner loop are
// copied in tiles.
template <class T>
void copy_transposed(const KernelContext& ctx) {
  constexpr int64_t kTile = 16;
  const CopyState& state = ctx.state_as<CopyState>();
  LoopNest outer = state.loop;
  const auto dense = static_cast<size_t>(state.dense_dim);
  const auto inner = static_cast<size_t>(outer.num_dims - 1);
  const int64_t rows = outer.size[dense];
  const int64_t y_row = outer.stride[dense][0];
  const int64_t columns = outer.inner;
  const int64_t x_column = outer.stride[inner][1];
  const int64_t bands = (rows + kTile - 1) / kTile;
  outer.size[dense] = bands;
  for (int64_t& stride : outer.stride[dense])
    stride *= kTile;
  outer.rows = outer.rows / rows * bands;
  int64_t inside = 1;  // rows of the state per step of the dense dim
  for (size_t d = dense + 1; d < inner; ++d)
    inside *= outer.size[d];

  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (kTile * columns));
  ctx.pool().parallel_for(0, outer.rows, grain, [&](int64_t begin, int64_t end) {
    int64_t row = begin;
    for_rows(outer, begin, end, [&](const LoopNest::Offsets& offsets) {
      const int64_t band = row++ / inside % bands;
      const int64_t height = std::min(kTile, rows - band * kTile);
      for (int64_t c = 0; c < columns; c += kTile) {
        copy_tile(ctx.out(0).as<T>() + offsets[0] + c, y_row,
                  source_of(ctx).as<T>() + offsets[1] + c * x_column, x_column, height,
                  std::min(kTile, columns - c));
      }
    });
  });
}

template <class Fn>
void with_size(size_t bytes, Fn&& fn) {
  switch (bytes) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    default:
      return fn.template operator()<uint64_t>();
  }
}

KernelChoice select_copy(const KernelQuery& query) {
  const TensorMeta& output = query.output(0);
  const TensorMeta& source = *query.inputs.back();
  if (output.dtype != source.dtype) return {};
  if (output.is_contiguous && source.is_contiguous && output.local_shape == source.local_shape) {
    return {copy_flat};
  }
  auto state = std::make_shared<CopyState>();
  state->loop = make_loop_nest(output, query.inputs.last(1));
  const LoopNest& loop = state->loop;
  if (loop.inner_stride()[0] == 1 && loop.inner_stride()[1] > 1) {
    for (int d = 0; d + 1 < loop.num_dims; ++d) {
      if (loop.stride[static_cast<size_t>(d)][1] == 1) state->dense_dim = d;
    }
  }
  KernelChoice choice;
  with_size(dtype_size(output.dtype), [&]<class T>() {
    choice.fn = state->dense_dim >= 0 ? copy_transposed<T> : copy_rows<T>;
  });
  choice.state = std::move(state);
  return choice;
}

// ---- fill_

template <class T>
void fill(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  const T value = ctx.attrs_as<FillAttrs>().value.to<T>();
  const int64_t stride = state.inner_stride()[0];
  parallel_stretches(ctx.pool(), state, [&](const LoopNest::Offsets& offsets, int64_t n) {
    T* y = ctx.out(0).as<T>() + offsets[0];
    if (stride == 1) {
      for (int64_t i = 0; i < n; ++i)
        y[i] = value;
    } else {
      for (int64_t i = 0; i < n; ++i)
        y[i * stride] = value;
    }
  });
}

KernelChoice select_fill(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_all(query.output(0).dtype, [&]<class T>() { choice.fn = fill<T>; });
  choice.state = share_loop_nest(query.output(0), {});
  return choice;
}

// ---- the reference, which also converts

#if FLOW_ISA == 0
void copy_reference(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const TensorView& x = source_of(ctx);
  convert_rows(ctx.state_as<LoopNest>(), y.meta->dtype, y.data, x.meta->dtype, x.data);
}

KernelChoice select_copy_reference(const KernelQuery& query) {
  return {copy_reference, share_loop_nest(query.output(0), query.inputs.last(1))};
}
#endif

}  // namespace

void register_copy_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kClone, DeviceType::kCpu, {"reference", select_copy_reference});
  table.add(kCopy, DeviceType::kCpu, {"reference", select_copy_reference});
  table.add(kFill, DeviceType::kCpu, {"reference", select_fill});
#endif
  table.add(kClone, DeviceType::kCpu, {FLOW_ISA_NAME, select_copy});
  table.add(kCopy, DeviceType::kCpu, {FLOW_ISA_NAME, select_copy});
  table.add(kFill, DeviceType::kCpu, {FLOW_ISA_NAME, select_fill});
}

#include "ops/kernel/isa_end.h"
