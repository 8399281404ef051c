#include "boxing/comm/device_communicator.h"
#include "boxing/comm/reduction_formulas.h"
#include "boxing/device_boxes.h"
#include "core/error.h"
#include "ops/kernel/box_copy_cuda.cuh"

namespace flow::boxing {

namespace {

using ops::Places;

template <class T>
__device__ Accumulator<T> accumulated(T x) {
  if constexpr (kIs16BitFloat<T>) {
    return ops::widen(x);
  } else {
    return x;
  }
}

template <ReduceOp kOp, class T>
struct ReduceBox {
  T* to;
  Places to_places;
  Places from_places;
  int count;
  const T* from[kMostDeviceMembers];

  __device__ void operator()(int64_t i) const {
    const int64_t at = from_places(i);
    Accumulator<T> sum = accumulated(from[0][at]);
    for (int k = 1; k < count; ++k)
      sum = combine<kOp, Accumulator<T>>(sum, accumulated(from[k][at]));
    if constexpr (kOp == ReduceOp::kMean) sum /= static_cast<Accumulator<T>>(count);
    if constexpr (kIs16BitFloat<T>) {
      to[to_places(i)] = ops::narrow<T>(sum);
    } else {
      to[to_places(i)] = sum;
    }
  }
};

template <class T>
struct FillWith {
  T* to;
  T value;

  __device__ void operator()(int64_t i) const { to[i] = value; }
};

}  // namespace

void copy_device_box(const KernelContext& ctx, const Shape& extents, const Strides& source_strides,
                     const std::byte* source, const Strides& target_strides, std::byte* target,
                     DType dtype) {
  ops::copy_box(ctx, extents, {target, target_strides}, {source, source_strides}, dtype);
}

void reduce_device_box(const KernelContext& ctx, const Shape& extents,
                       const Strides& source_strides, const Strides& target_strides, DType dtype,
                       ReduceOp op, std::span<const std::byte* const> sources, std::byte* target) {
  FLOW_ASSERT(!sources.empty() && sources.size() <= kMostDeviceMembers, "cannot reduce ",
              sources.size(), " parts");
  const int64_t numel = extents.numel();
  const auto run = [&]<ReduceOp kOp, class T>() {
    ReduceBox<kOp, T> box{reinterpret_cast<T*>(target),
                          Places(extents, target_strides),
                          Places(extents, source_strides),
                          static_cast<int>(sources.size()),
                          {}};
    for (size_t i = 0; i < sources.size(); ++i)
      box.from[i] = reinterpret_cast<const T*>(sources[i]);
    ops::for_each_element(ctx, numel, box);
  };
  dispatch_all(dtype, [&]<class T>() {
    switch (op) {
      case ReduceOp::kSum:
        return run.template operator()<ReduceOp::kSum, T>();
      case ReduceOp::kMax:
        return run.template operator()<ReduceOp::kMax, T>();
      case ReduceOp::kMin:
        return run.template operator()<ReduceOp::kMin, T>();
      case ReduceOp::kMean:
        if constexpr (kHasMean<T>) {
          run.template operator()<ReduceOp::kMean, T>();
        } else {
          FLOW_ASSERT(false, "no mean of ", dtype);
        }
    }
  });
}

void fill_device_neutral(const KernelContext& ctx, DType dtype, ReduceOp op, std::byte* target,
                         int64_t count) {
  dispatch_all(dtype, [&]<class T>() {
    ops::for_each_element(ctx, count,
                          FillWith<T>{reinterpret_cast<T*>(target), neutral_value<T>(op)});
  });
}

}  // namespace flow::boxing
