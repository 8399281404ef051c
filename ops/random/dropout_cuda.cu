// Dropout on CUDA devices. Each element uses its own lane of a Philox block, so the mask is bit for
// bit the same as on the CPU.
#include <cmath>

#include "core/device/cuda_draw.h"
#include "ops/kernel/rows_cuda.cuh"
#include "ops/local_parts.h"
#include "ops/random/dropout_op.h"

namespace flow::ops {

void register_dropout_cuda(KernelTable& table);

namespace {

template <class T>
Wide<T> scale_of(double p) {
  return p < 1 ? static_cast<Wide<T>>(1 / (1 - p)) : Wide<T>{0};
}

// The logical index of local element `i`.
struct LogicalPlaces {
  Places places;
  int64_t first = 0;

  explicit LogicalPlaces(const TensorMeta& meta)
      : places(meta.local_shape, contiguous_strides(meta.shape)) {
    const Strides strides = contiguous_strides(meta.shape);
    for (int64_t d = 0; d < strides.size(); ++d)
      first += meta.local_begin[d] * strides[d];
  }

  __device__ int64_t operator()(int64_t i) const { return first + places(i); }
};

template <class T>
struct Dropout {
  const T* x;
  Places x_places;
  T* y;
  bool* mask;
  LogicalPlaces logical;
  cuda::DeviceDraw draw;
  uint32_t threshold;
  Wide<T> scale;

  __device__ void operator()(int64_t i) const {
    const int64_t at = logical(i);
    const auto lanes = philox(draw.stream(), static_cast<uint64_t>(at) / 4);
    const bool keeps = (lanes[static_cast<size_t>(at % 4)] >> 8) >= threshold;
    y[i] = narrow<T>(keeps ? widen(x[x_places(i)]) * scale : Wide<T>{0});
    mask[i] = keeps;
  }
};

void dropout(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const double p = ctx.attrs_as<DropoutAttrs>().p;
  // An element is kept when its uniform number, bits / 2^24, is at least p.
  const auto threshold = static_cast<uint32_t>(std::ceil(p * 0x1p24));
  dispatch_floating(x.meta->dtype, [&]<class T>() {
    for_each_element(
        ctx, ctx.out(0).numel(),
        Dropout<T>{x.as<T>(), Places(*x.meta), ctx.out(0).as<T>(), ctx.out(1).as<bool>(),
                   LogicalPlaces(*ctx.out(0).meta), cuda::draw_of(ctx), threshold, scale_of<T>(p)});
  });
}

template <class T>
struct DropoutBackward {
  const T* dy;
  Places dy_places;
  const bool* mask;
  Places mask_places;
  T* dx;
  Wide<T> scale;

  __device__ void operator()(int64_t i) const {
    const Wide<T> scaled = widen(dy[dy_places(i)]) * scale;
    dx[i] = narrow<T>(mask[mask_places(i)] ? scaled : Wide<T>{0});
  }
};

void dropout_backward(const KernelContext& ctx) {
  const TensorView& dy = ctx.in(0);
  const TensorView& mask = ctx.in(1);
  dispatch_floating(dy.meta->dtype, [&]<class T>() {
    for_each_element(
        ctx, ctx.out(0).numel(),
        DropoutBackward<T>{dy.as<T>(), Places(*dy.meta), mask.as<bool>(), Places(*mask.meta),
                           ctx.out(0).as<T>(), scale_of<T>(ctx.attrs_as<DropoutAttrs>().p)});
  });
}

template <KernelFn kFn>
KernelChoice select(const KernelQuery& query) {
  return {parts_fit(query) ? kFn : nullptr};
}

}  // namespace

void register_dropout_cuda(KernelTable& table) {
  table.add(kDropout, DeviceType::kCuda, {"cuda", select<dropout>});
  table.add(kDropoutBackward, DeviceType::kCuda, {"cuda", select<dropout_backward>});
}

}  // namespace flow::ops
