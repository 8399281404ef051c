// Sums and affine maps of channels on CUDA devices.
#include "ops/local_parts.h"
#include "ops/norm/channel_op.h"
#include "ops/norm/channel_sums_cuda.cuh"

namespace flow::ops {

void register_channel_cuda(KernelTable& table);

namespace {

template <class T>
struct ChannelAffine {
  const T* x;
  const Wide<T>* scale;
  const Wide<T>* shift;
  T* y;
  ChannelSizes sizes;

  __device__ void operator()(int64_t i) const {
    const int64_t c = sizes.channel(i);
    const Wide<T> product = widen(x[i]) * scale[c];
    y[i] = narrow<T>(shift != nullptr ? product + shift[c] : product);
  }
};

struct ChannelMoments {
  const double* sums;
  double* moments;
  int64_t channels;
  double count;

  __device__ void operator()(int64_t c) const {
    const double mean = sums[channels + c] / count;
    const double var = sums[c] / count - mean * mean;
    moments[c] = mean;
    moments[channels + c] = var < 0 ? 0 : var;
  }
};

struct ChannelMomentsBackward {
  const double* upstream;
  const double* mean;
  double* sums;
  int64_t channels;
  double count;

  __device__ void operator()(int64_t c) const {
    const double v = upstream[channels + c];
    sums[c] = v / count;
    sums[channels + c] = (upstream[c] - 2 * mean[c] * v) / count;
  }
};

void affine(const KernelContext& ctx) {
  const DenseInput x(ctx, 0);
  const DenseInput scale(ctx, 1);
  const DenseInput shift(ctx, 2);
  const ChannelSizes sizes(ctx.in(0).shape());
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    for_each_element(ctx, sizes.numel(),
                     ChannelAffine<T>{x.as<T>(), scale.as<Wide<T>>(), shift.as<Wide<T>>(),
                                      ctx.out(0).as<T>(), sizes});
  });
}

// Sums of input 0 with itself, or with input 1.
void sums(const KernelContext& ctx) {
  const DenseInput a(ctx, 0);
  const DenseInput b(ctx, static_cast<int>(ctx.inputs.size()) - 1);
  const ChannelSizes sizes(ctx.in(0).shape());
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    sum_channels(ctx, a.as<T>(), b.as<T>(), sizes, ctx.out(0).as<double>());
  });
}

void moments(const KernelContext& ctx) {
  const DenseInput sums(ctx, 0);
  const int64_t channels = ctx.in(0).shape()[1];
  for_each_element(ctx, channels,
                   ChannelMoments{sums.as<double>(), ctx.out(0).as<double>(), channels,
                                  static_cast<double>(ctx.attrs_as<MomentsAttrs>().count)});
}

void moments_backward(const KernelContext& ctx) {
  const DenseInput upstream(ctx, 0);
  const DenseInput moments(ctx, 1);
  const int64_t channels = ctx.in(0).shape()[1];
  for_each_element(
      ctx, channels,
      ChannelMomentsBackward{upstream.as<double>(), moments.as<double>(), ctx.out(0).as<double>(),
                             channels, static_cast<double>(ctx.attrs_as<MomentsAttrs>().count)});
}

template <KernelFn kFn>
KernelChoice select(const KernelQuery& query) {
  return {parts_fit(query) ? kFn : nullptr};
}

}  // namespace

void register_channel_cuda(KernelTable& table) {
  table.add(kChannelAffine, DeviceType::kCuda, {"cuda", select<affine>});
  table.add(kChannelDot, DeviceType::kCuda, {"cuda", select<sums>});
  table.add(kChannelSquares, DeviceType::kCuda, {"cuda", select<sums>});
  table.add(kChannelMoments, DeviceType::kCuda, {"cuda", select<moments>});
  table.add(kChannelMomentsBackward, DeviceType::kCuda, {"cuda", select<moments_backward>});
}

}  // namespace flow::ops
