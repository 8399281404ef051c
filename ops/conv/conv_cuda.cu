// Convolutions on CUDA devices: the defining sums, with a thread or a team of threads for each
// element. They accept every window; if cuDNN accepts a call too, it is preferred
// (ops/conv/conv_cudnn.h).
#include <memory>

#include "ops/conv/conv_cuda.h"
#include "ops/conv/conv_cudnn.h"
#include "ops/conv/conv_kernels.h"
#include "ops/kernel/rows_cuda.cuh"

namespace flow::ops {

void register_conv_cuda(KernelTable& table);

namespace {

struct ConvState {
  ConvRoles roles;
  ConvSizes sizes;
};

// A position in the depth, height and width of a tensor or a window.
struct Place {
  int64_t at[kMaxSpatialDims];
};

// The sizes in the form that kernels need.
struct DeviceConv {
  struct Dim {
    int64_t in;
    int64_t out;
    int64_t kernel;
    int64_t stride;
    int64_t dilation;
    int64_t padding;
  };

  int64_t batch;
  int64_t in_channels;
  int64_t out_channels;
  int64_t in_group;   // channels of x in a group
  int64_t out_group;  // channels of y in a group
  int64_t in_size;
  int64_t out_size;
  int64_t kernel_size;
  Dim dims[kMaxSpatialDims];

  explicit DeviceConv(const ConvSizes& sizes)
      : batch(sizes.batch),
        in_channels(sizes.in_channels),
        out_channels(sizes.out_channels),
        in_group(sizes.in_channels / std::max<int64_t>(sizes.groups, 1)),
        out_group(sizes.out_channels / std::max<int64_t>(sizes.groups, 1)),
        in_size(sizes.in_size()),
        out_size(sizes.out_size()),
        kernel_size(sizes.kernel_size()) {
    for (size_t d = 0; d < kMaxSpatialDims; ++d) {
      const WindowDim& window = sizes.window[d];
      dims[d] = {window.in,     window.out,      window.kernel,
                 window.stride, window.dilation, window.padding};
    }
  }

  template <int64_t Dim::*kSize>
  __device__ Place place(int64_t i) const {
    Place p;
    for (int d = kMaxSpatialDims - 1; d >= 0; --d) {
      const auto [quotient, rest] = divide(i, dims[d].*kSize);
      p.at[d] = rest;
      i = quotient;
    }
    return p;
  }

  // The element of a plane of x that tap `k` of window `o` reads; -1 where it is padding.
  __device__ int64_t read_at(const Place& o, const Place& k) const {
    int64_t offset = 0;
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      const int64_t i = o.at[d] * dims[d].stride - dims[d].padding + k.at[d] * dims[d].dilation;
      if (i < 0 || i >= dims[d].in) return -1;
      offset = offset * dims[d].in + i;
    }
    return offset;
  }

  // The window whose tap `k` reads element `i`; -1 where there is none.
  __device__ int64_t window_at(const Place& i, const Place& k) const {
    int64_t offset = 0;
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      const int64_t start = i.at[d] + dims[d].padding - k.at[d] * dims[d].dilation;
      if (start < 0 || start % dims[d].stride != 0 || start / dims[d].stride >= dims[d].out) {
        return -1;
      }
      offset = offset * dims[d].out + start / dims[d].stride;
    }
    return offset;
  }
};

// y: (batch, out_channels, out)
template <class T>
struct ConvForward {
  DeviceConv conv;
  const T* x;
  const T* weight;
  const T* bias;
  T* y;

  __device__ void operator()(int64_t item) const {
    const auto [plane, at] = divide(item, conv.out_size);
    const auto [n, oc] = divide(plane, conv.out_channels);
    const Place o = conv.place<&DeviceConv::Dim::out>(at);
    const int64_t first = oc / conv.out_group * conv.in_group;
    const T* const own_x = x + (n * conv.in_channels + first) * conv.in_size;
    const T* const own_weight = weight + oc * conv.in_group * conv.kernel_size;
    Wide<T> sum = bias != nullptr ? widen(bias[oc]) : Wide<T>{0};
    for (int64_t k = 0; k < conv.kernel_size; ++k) {
      const int64_t read = conv.read_at(o, conv.place<&DeviceConv::Dim::kernel>(k));
      if (read < 0) continue;
      for (int64_t c = 0; c < conv.in_group; ++c) {
        sum += widen(own_x[c * conv.in_size + read]) * widen(own_weight[c * conv.kernel_size + k]);
      }
    }
    y[item] = narrow<T>(sum);
  }
};

// dx: (batch, in_channels, in)
template <class T>
struct ConvBackwardInput {
  DeviceConv conv;
  const T* dy;
  const T* weight;
  T* dx;

  __device__ void operator()(int64_t item) const {
    const auto [plane, at] = divide(item, conv.in_size);
    const auto [n, ic] = divide(plane, conv.in_channels);
    const Place i = conv.place<&DeviceConv::Dim::in>(at);
    const auto [group, c] = divide(ic, conv.in_group);
    const int64_t first = group * conv.out_group;
    const T* const own_dy = dy + (n * conv.out_channels + first) * conv.out_size;
    Wide<T> sum = 0;
    for (int64_t k = 0; k < conv.kernel_size; ++k) {
      const int64_t window = conv.window_at(i, conv.place<&DeviceConv::Dim::kernel>(k));
      if (window < 0) continue;
      for (int64_t oc = 0; oc < conv.out_group; ++oc) {
        sum += widen(own_dy[oc * conv.out_size + window]) *
               widen(weight[((first + oc) * conv.in_group + c) * conv.kernel_size + k]);
      }
    }
    dx[item] = narrow<T>(sum);
  }
};

// dweight: (out_channels, in_group, kernel); a team computes each element.
template <class T>
struct ConvBackwardWeight {
  DeviceConv conv;
  const T* x;
  const T* dy;
  T* dweight;

  __device__ void operator()(int64_t item, Team team) const {
    const auto [channels, tap] = divide(item, conv.kernel_size);
    const auto [oc, c] = divide(channels, conv.in_group);
    const Place k = conv.place<&DeviceConv::Dim::kernel>(tap);
    const int64_t ic = oc / conv.out_group * conv.in_group + c;
    Wide<T> sum = 0;
    for (int64_t i = team.first(); i < conv.batch * conv.out_size; i += team.step()) {
      const auto [n, at] = divide(i, conv.out_size);
      const int64_t read = conv.read_at(conv.place<&DeviceConv::Dim::out>(at), k);
      if (read < 0) continue;
      sum += widen(x[(n * conv.in_channels + ic) * conv.in_size + read]) *
             widen(dy[(n * conv.out_channels + oc) * conv.out_size + at]);
    }
    sum = team.sum(sum);
    if (team.leads()) dweight[item] = narrow<T>(sum);
  }
};

template <class T>
struct ConvBackwardBias {
  DeviceConv conv;
  const T* dy;
  T* dbias;

  __device__ void operator()(int64_t oc, Team team) const {
    Wide<T> sum = 0;
    for (int64_t i = team.first(); i < conv.batch * conv.out_size; i += team.step()) {
      const auto [n, at] = divide(i, conv.out_size);
      sum += widen(dy[(n * conv.out_channels + oc) * conv.out_size + at]);
    }
    sum = team.sum(sum);
    if (team.leads()) dbias[oc] = narrow<T>(sum);
  }
};

void run(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ConvState>();
  const DeviceConv conv(state.sizes);
  const DenseInput first(ctx, 0);
  const DenseInput second(ctx, 1);
  const DenseInput bias(ctx, state.roles.writes_y() && state.roles.has_bias ? 2 : -1);
  const TensorView& result = ctx.out(0);
  dispatch_floating(result.meta->dtype, [&]<class T>() {
    const T* a = first.as<T>();
    const T* b = second.as<T>();
    T* y = result.as<T>();
    if (state.roles.writes_x) {
      for_each_element(ctx, result.numel(), ConvBackwardInput<T>{conv, a, b, y});
    } else if (state.roles.writes_weight) {
      for_each_row(ctx, result.numel(), conv.batch * conv.out_size,
                   ConvBackwardWeight<T>{conv, a, b, y});
      if (state.roles.has_bias) sum_conv_bias(ctx, state.sizes);
    } else {
      for_each_element(ctx, result.numel(), ConvForward<T>{conv, a, b, bias.as<T>(), y});
    }
  });
}

KernelChoice select(const KernelQuery& query) {
  const ConvRoles roles = conv_roles(query);
  const ConvSizes sizes = conv_sizes(query);
  if (!conv_parts_agree(query, roles, sizes)) return {};
  return {run, std::make_shared<const ConvState>(ConvState{roles, sizes})};
}

KernelChoice select_cudnn(const KernelQuery& query) {
  return select_conv_cudnn(query, select(query));
}

}  // namespace

void sum_conv_bias(const KernelContext& ctx, const ConvSizes& sizes) {
  const DeviceConv conv(sizes);
  const DenseInput dy(ctx, 1);
  dispatch_floating(ctx.out(1).meta->dtype, [&]<class T>() {
    for_each_row(ctx, conv.out_channels, conv.batch * conv.out_size,
                 ConvBackwardBias<T>{conv, dy.as<T>(), ctx.out(1).as<T>()});
  });
}

void register_conv_cuda(KernelTable& table) {
  for (const OpDef* op :
       {&kConv, &kConvBackwardInput, &kConvBackwardWeight, &kConvBackwardWeightBias}) {
    table.add(*op, DeviceType::kCuda, {"cuda", select});
    table.add(*op, DeviceType::kCuda, {"cudnn", select_cudnn});
  }
}

}  // namespace flow::ops
