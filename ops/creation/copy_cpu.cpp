// Kernels of ops/creation/copy.h. Elements of one dtype are copied as integers of their size; copy_
// between different dtypes has the loops of ops/elementwise/cast_cpu.cpp.
#include <cstring>

#include "ops/creation/copy_op.h"
#include "ops/elementwise/cast_loops.h"
#include "ops/kernel/box_copy.h"
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

void copy_boxes(const KernelContext& ctx) {
  ctx.state_as<BoxLoop>().copy(ctx.pool(), ctx.out(0).data, source_of(ctx).data);
}

KernelChoice select_copy(const KernelQuery& query) {
  const TensorMeta& output = query.output(0);
  const TensorMeta& source = *query.inputs.back();
  if (output.dtype != source.dtype) return {};
  if (output.is_contiguous && source.is_contiguous && output.local_shape == source.local_shape) {
    return {copy_flat};
  }
  const Shape& shape = output.local_shape;
  const int64_t added = shape.size() - source.local_shape.size();
  Strides strides;
  for (int64_t d = 0; d < shape.size(); ++d) {
    const bool is_repeated = d < added || source.local_shape[d - added] == 1;
    strides.push_back(is_repeated ? 0 : source.strides[d - added]);
  }
  return {copy_boxes, std::make_shared<const BoxLoop>(shape, output.strides, strides,
                                                      dtype_size(output.dtype))};
}

// ---- copy_ between different dtypes

// copy_ takes the target as its first input.
template <KernelFn kFn>
void on_source(const KernelContext& ctx) {
  KernelContext own = ctx;
  own.inputs = ctx.inputs.last(1);
  kFn(own);
}

KernelChoice select_converting_copy(const KernelQuery& query) {
  const KernelQuery own{query.op, query.inputs.last(1), query.outputs, query.attrs};
  KernelChoice choice;
  for_each_cast([&]<class To, class From>() {
    if (own.output(0).dtype != dtype_of<To> || own.input(0).dtype != dtype_of<From>) return;
    using Functions = Kernel<CastBlock, To, From>;
    if (is_dense(own)) {
      choice.fn = on_source<Functions::dense>;
    } else {
      choice = choose_strided(own, Functions::block);
      choice.fn = on_source<run_strided>;
    }
  });
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
  table.add(kCopy, DeviceType::kCpu, {FLOW_ISA_NAME, select_converting_copy});
  table.add(kFill, DeviceType::kCpu, {FLOW_ISA_NAME, select_fill});
}

#include "ops/kernel/isa_end.h"
