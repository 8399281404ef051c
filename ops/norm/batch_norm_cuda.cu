// batch_norm on CUDA devices: x is read once for its moments, in double, and once for the result;
// the gradient reads dy and x once for their sums and once for dx. Moments of doubles take two
// reads.
#include "ops/local_parts.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/norm/channel_sums_cuda.cuh"

namespace flow::ops {

void register_batch_norm_cuda(KernelTable& table);

namespace {

// y = (x - mean) scale + shift
template <class C>
struct ChannelMap {
  C mean;
  C scale;
  C shift;
};

struct FindCenters {
  const double* totals;
  double* centers;
  double count;

  __device__ void operator()(int64_t c) const { centers[c] = count == 0 ? 0 : totals[c] / count; }
};

template <class C>
struct MakeChannelMap {
  const double* sums;     // of distances to the centers
  const double* centers;  // null: 0
  const C* weight;
  const C* bias;
  double* moments;
  ChannelMap<C>* maps;
  int64_t channels;
  double count;
  double eps;

  __device__ void operator()(int64_t c) const {
    // A part without samples has the moments 0 and 0, so that sums over parts are finite.
    const double divisor = count == 0 ? 1 : count;
    const double distance = sums[channels + c] / divisor;
    const double mean = centers != nullptr ? centers[c] + distance : distance;
    const double square = sums[c] / divisor - distance * distance;
    const double var = square < 0 ? 0 : square;
    moments[c] = mean;
    moments[channels + c] = var;
    const double factor = weight != nullptr ? static_cast<double>(weight[c]) : 1.0;
    maps[c] = {static_cast<C>(mean), static_cast<C>(factor / std::sqrt(var + eps)),
               bias != nullptr ? bias[c] : C{0}};
  }
};

template <class T>
struct Normalize {
  const T* x;
  T* y;
  const ChannelMap<Wide<T>>* maps;
  ChannelSizes sizes;

  __device__ void operator()(int64_t i) const {
    const ChannelMap<Wide<T>> map = maps[sizes.channel(i)];
    y[i] = narrow<T>(std::fma(widen(x[i]) - map.mean, map.scale, map.shift));
  }
};

void batch_norm(const KernelContext& ctx) {
  const DenseInput x(ctx, 0);
  const DenseInput weight(ctx, 1);
  const DenseInput bias(ctx, 2);
  const ChannelSizes sizes(ctx.in(0).shape());
  dispatch_floating(ctx.in(0).meta->dtype, [&]<class T>() {
    using C = Wide<T>;
    const ScratchArray<double> sums(ctx, 2 * sizes.channels);
    const ScratchArray<ChannelMap<C>> maps(ctx, sizes.channels);
    const auto count = static_cast<double>(sizes.count());
    sum_channels(ctx, x.as<T>(), x.as<T>(), sizes, sums.data());
    ScratchArray<double> means;
    const double* centers = nullptr;
    if constexpr (std::is_same_v<T, double>) {
      // The squares of doubles have no digits left for a small variance of large numbers.
      means = ScratchArray<double>(ctx, sizes.channels);
      centers = means.data();
      for_each_element(ctx, sizes.channels,
                       FindCenters{sums.data() + sizes.channels, means.data(), count});
      sum_channels(ctx, x.as<T>(), x.as<T>(), sizes, sums.data(), centers);
    }
    for_each_element(ctx, sizes.channels,
                     MakeChannelMap<C>{sums.data(), centers, weight.as<C>(), bias.as<C>(),
                                       ctx.out(1).as<double>(), maps.data(), sizes.channels, count,
                                       ctx.attrs_as<BatchNormAttrs>().eps});
    for_each_element(ctx, sizes.numel(),
                     Normalize<T>{x.as<T>(), ctx.out(0).as<T>(), maps.data(), sizes});
  });
}

// dx = s (dy - a) - k (x - mean)
template <class C>
struct BackwardMap {
  C s;
  C a;
  C k;
  C mean;
};

template <class C>
struct MakeBackwardMap {
  const double* sums;
  const double* moments;
  const C* weight;
  C* dweight;
  C* dbias;
  BackwardMap<C>* maps;
  int64_t channels;
  double count;
  double eps;

  __device__ void operator()(int64_t c) const {
    const double total = sums[channels + c];
    const double r = 1 / std::sqrt(moments[channels + c] + eps);
    const double through_h = (sums[c] - moments[c] * total) * r;
    const double factor = (weight != nullptr ? static_cast<double>(weight[c]) : 1.0) * r;
    dweight[c] = static_cast<C>(through_h);
    dbias[c] = static_cast<C>(total);
    maps[c] = {static_cast<C>(factor), static_cast<C>(total / count),
               static_cast<C>(factor * r * through_h / count), static_cast<C>(moments[c])};
  }
};

template <class T>
struct NormalizeBackward {
  const T* dy;
  const T* x;
  T* dx;
  const BackwardMap<Wide<T>>* maps;
  ChannelSizes sizes;

  __device__ void operator()(int64_t i) const {
    const BackwardMap<Wide<T>> map = maps[sizes.channel(i)];
    dx[i] = narrow<T>(map.s * (widen(dy[i]) - map.a) - map.k * (widen(x[i]) - map.mean));
  }
};

void batch_norm_backward(const KernelContext& ctx) {
  const DenseInput dy(ctx, 0);
  const DenseInput x(ctx, 1);
  const DenseInput moments(ctx, 2);
  const DenseInput weight(ctx, 3);
  const ChannelSizes sizes(ctx.in(1).shape());
  dispatch_floating(ctx.in(1).meta->dtype, [&]<class T>() {
    using C = Wide<T>;
    const ScratchArray<double> sums(ctx, 2 * sizes.channels);
    const ScratchArray<BackwardMap<C>> maps(ctx, sizes.channels);
    sum_channels(ctx, dy.as<T>(), x.as<T>(), sizes, sums.data());
    for_each_element(
        ctx, sizes.channels,
        MakeBackwardMap<C>{sums.data(), moments.as<double>(), weight.as<C>(), ctx.out(1).as<C>(),
                           ctx.out(2).as<C>(), maps.data(), sizes.channels,
                           static_cast<double>(sizes.count()), ctx.attrs_as<BatchNormAttrs>().eps});
    for_each_element(
        ctx, sizes.numel(),
        NormalizeBackward<T>{dy.as<T>(), x.as<T>(), ctx.out(0).as<T>(), maps.data(), sizes});
  });
}

// running = running + momentum (moment factor - running)
template <class T>
struct Blend {
  const T* running;
  int64_t running_stride;
  T* target;
  int64_t target_stride;
  const double* moments;
  double momentum;
  double factor;

  __device__ void operator()(int64_t c) const {
    const auto old = static_cast<double>(widen(running[c * running_stride]));
    const double blended = old + momentum * (moments[c] * factor - old);
    target[c * target_stride] = narrow<T>(static_cast<Wide<T>>(blended));
  }
};

void update_running_stats(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<RunningStatsAttrs>();
  const auto count = static_cast<double>(attrs.count);
  const DenseInput moments(ctx, 2);
  const int64_t channels = ctx.in(2).shape()[1];
  for (const int i : {0, 1}) {
    const TensorView& running = ctx.in(i);
    const TensorView& target = ctx.out(i);
    dispatch_floating(running.meta->dtype, [&]<class T>() {
      for_each_element(ctx, channels,
                       Blend<T>{running.as<T>(), running.strides()[0], target.as<T>(),
                                target.strides()[0], moments.as<double>() + i * channels,
                                attrs.momentum, i == 0 ? 1.0 : count / (count - 1)});
    });
  }
}

struct CountUp {
  const int64_t* before;
  int64_t* after;

  __device__ void operator()(int64_t /*i*/) const { *after = *before + 1; }
};

void count_batch(const KernelContext& ctx) {
  for_each_element(ctx, 1, CountUp{ctx.in(0).as<int64_t>(), ctx.out(0).as<int64_t>()});
}

template <KernelFn kFn>
KernelChoice select(const KernelQuery& query) {
  return {parts_fit(query) ? kFn : nullptr};
}

// The statistics of a batch, or of the single part that a rank holds.
template <KernelFn kFn, bool kBackward>
KernelChoice select_norm(const KernelQuery& query) {
  const TensorMeta& moments = kBackward ? query.input(2) : query.output(1);
  return moments.local_shape[0] == 2 ? select<kFn>(query) : KernelChoice{};
}

}  // namespace

void register_batch_norm_cuda(KernelTable& table) {
  table.add(kBatchNorm, DeviceType::kCuda, {"cuda", select_norm<batch_norm, false>});
  table.add(kBatchNormBackward, DeviceType::kCuda,
            {"cuda", select_norm<batch_norm_backward, true>});
  table.add(kCountBatch, DeviceType::kCuda, {"cuda", always<count_batch>});
  table.add(kUpdateRunningStats, DeviceType::kCuda, {"cuda", select<update_running_stats>});
}

}  // namespace flow::ops
