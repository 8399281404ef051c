// max_unpool on CUDA devices. If two indices of a plane are equal, the later value remains.
#include "ops/conv/max_unpool_op.h"
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/kernel/fault_cuda.cuh"
#include "ops/kernel/segments_cuda.cuh"

namespace flow::ops {

void register_max_unpool_cuda(KernelTable& table);

namespace {

struct PlaceMaxima {
  const int64_t* indices;
  PlacedValue* entries;
  int64_t count;  // of a plane
  int64_t size;
  FaultReport fault;

  __device__ void operator()(int64_t i) const {
    const int64_t index = indices[i];
    const bool exists = index >= 0 && index < size;
    if (!exists) fault.raise(index);
    entries[i] = {exists ? divide(i, count).quotient * size + index : -1, i};
  }
};

void unpool(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<MaxUnpoolAttrs>();
  const DenseInput x(ctx, 0);
  const DenseInput indices(ctx, 1);
  const int64_t count = ctx.in(0).numel();
  zero_part(ctx, ctx.out(0));
  if (count == 0) return;
  const SortedPlaces places(ctx, count, [&](PlacedValue* entries) {
    for_each_element(ctx, count,
                     PlaceMaxima{indices.as<int64_t>(), entries, ctx.in(0).shape().back(),
                                 attrs.size, fault_report(ctx, "max_unpool", 0, attrs.size - 1)});
  });
  dispatch_size(ctx.in(0).meta->dtype, [&]<class T>() {
    for_each_element(ctx, count,
                     LastOfSegments<T>{places.view(), 1, x.as<T>(), nullptr, dense_places(1),
                                       ctx.out(0).as<T>(), dense_places(1)});
  });
}

KernelChoice select_unpool(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  Shape y = x.local_shape;
  y[y.size() - 1] = query.attrs_as<MaxUnpoolAttrs>().size;
  const bool agree =
      query.input(1).local_shape == x.local_shape && query.output(0).local_shape == y;
  return {agree ? unpool : nullptr};
}

}  // namespace

void register_max_unpool_cuda(KernelTable& table) {
  table.add(kMaxUnpool, DeviceType::kCuda, {"cuda", select_unpool});
}

}  // namespace flow::ops
