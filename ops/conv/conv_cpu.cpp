// The list of convolution kernels, and the reference: the defining sums as plain loops.

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>

#include "core/kernel.h"
#include "ops/conv/conv_gemm.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/conv_onednn.h"
#include "ops/conv/conv_op.h"
#include "ops/conv/conv_pixel.h"

#include "ops/kernel/isa_begin.h"

void register_conv_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

struct ReferenceState {
  ConvRoles roles;
  ConvSizes sizes;
};

// Element (i, j, d, h, w) of a tensor with up to three spatial dims.
template <class T>
struct Elements {
  explicit Elements(const TensorView& view) : data(view.as<T>()) {
    const Strides& own = view.strides();
    strides[0] = own[0];
    strides[1] = own[1];
    const auto missing = static_cast<size_t>(5 - own.size());
    for (int64_t i = 2; i < own.size(); ++i)
      strides[static_cast<size_t>(i) + missing] = own[i];
  }

  T& at(int64_t i, int64_t j, const SpatialInts& s) const {
    return data[i * strides[0] + j * strides[1] + s[0] * strides[2] + s[1] * strides[3] +
                s[2] * strides[4]];
  }

  T* data;
  std::array<int64_t, 5> strides{};
};

template <class T>
double widened(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return x;
  } else {
    return static_cast<double>(static_cast<float>(x));
  }
}

template <class T>
T narrowed(double x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return T(static_cast<float>(x));
  }
}

template <class F>
void for_each(const SpatialInts& size, const F& f) {
  for (int64_t d = 0; d < size[0]; ++d) {
    for (int64_t h = 0; h < size[1]; ++h) {
      for (int64_t w = 0; w < size[2]; ++w)
        f(SpatialInts{d, h, w});
    }
  }
}

SpatialInts of_window(const ConvSizes& sizes, int64_t WindowDim::*member) {
  return {sizes.window[0].*member, sizes.window[1].*member, sizes.window[2].*member};
}

// The element that tap `k` of window `o` reads; false where it is padding.
bool find_read(const ConvSizes& sizes, const SpatialInts& o, const SpatialInts& k, SpatialInts& i) {
  for (size_t d = 0; d < i.size(); ++d) {
    const WindowDim& dim = sizes.window[d];
    i[d] = o[d] * dim.stride - dim.padding + k[d] * dim.dilation;
    if (i[d] < 0 || i[d] >= dim.in) return false;
  }
  return true;
}

// The window whose tap `k` reads element `i`; false where there is none.
bool find_window(const ConvSizes& sizes, const SpatialInts& i, const SpatialInts& k,
                 SpatialInts& o) {
  for (size_t d = 0; d < i.size(); ++d) {
    const WindowDim& dim = sizes.window[d];
    const int64_t start = i[d] + dim.padding - k[d] * dim.dilation;
    if (start < 0 || start % dim.stride != 0 || start / dim.stride >= dim.out) return false;
    o[d] = start / dim.stride;
  }
  return true;
}

template <class T>
void forward(const KernelContext& ctx, const ConvSizes& sizes) {
  const Elements<const T> x(ctx.in(0));
  const Elements<const T> weight(ctx.in(1));
  const Elements<T> y(ctx.out(0));
  const int64_t in_group = sizes.in_channels / std::max<int64_t>(sizes.groups, 1);
  const int64_t out_group = sizes.out_channels / std::max<int64_t>(sizes.groups, 1);
  const SpatialInts kernel = of_window(sizes, &WindowDim::kernel);
  for (int64_t n = 0; n < sizes.batch; ++n) {
    for (int64_t oc = 0; oc < sizes.out_channels; ++oc) {
      const double bias =
          ctx.has_input(2) ? widened(ctx.in(2).as<T>()[oc * ctx.in(2).strides()[0]]) : 0;
      const int64_t first = oc / out_group * in_group;
      for_each(of_window(sizes, &WindowDim::out), [&](const SpatialInts& o) {
        double sum = bias;
        SpatialInts i;
        for_each(kernel, [&](const SpatialInts& k) {
          if (!find_read(sizes, o, k, i)) return;
          for (int64_t c = 0; c < in_group; ++c)
            sum += widened(x.at(n, first + c, i)) * widened(weight.at(oc, c, k));
        });
        y.at(n, oc, o) = narrowed<T>(sum);
      });
    }
  }
}

template <class T>
void backward_input(const KernelContext& ctx, const ConvSizes& sizes) {
  const Elements<const T> dy(ctx.in(0));
  const Elements<const T> weight(ctx.in(1));
  const Elements<T> dx(ctx.out(0));
  const int64_t in_group = sizes.in_channels / std::max<int64_t>(sizes.groups, 1);
  const int64_t out_group = sizes.out_channels / std::max<int64_t>(sizes.groups, 1);
  const SpatialInts kernel = of_window(sizes, &WindowDim::kernel);
  for (int64_t n = 0; n < sizes.batch; ++n) {
    for (int64_t ic = 0; ic < sizes.in_channels; ++ic) {
      const int64_t first = ic / in_group * out_group;
      for_each(of_window(sizes, &WindowDim::in), [&](const SpatialInts& i) {
        double sum = 0;
        SpatialInts o;
        for_each(kernel, [&](const SpatialInts& k) {
          if (!find_window(sizes, i, k, o)) return;
          for (int64_t c = 0; c < out_group; ++c) {
            sum +=
                widened(dy.at(n, first + c, o)) * widened(weight.at(first + c, ic % in_group, k));
          }
        });
        dx.at(n, ic, i) = narrowed<T>(sum);
      });
    }
  }
}

template <class T>
void backward_weight(const KernelContext& ctx, const ConvSizes& sizes) {
  const Elements<const T> x(ctx.in(0));
  const Elements<const T> dy(ctx.in(1));
  const Elements<T> dw(ctx.out(0));
  const int64_t in_group = sizes.in_channels / std::max<int64_t>(sizes.groups, 1);
  const int64_t out_group = sizes.out_channels / std::max<int64_t>(sizes.groups, 1);
  const SpatialInts out = of_window(sizes, &WindowDim::out);
  for (int64_t oc = 0; oc < sizes.out_channels; ++oc) {
    for (int64_t c = 0; c < in_group; ++c) {
      const int64_t ic = oc / out_group * in_group + c;
      for_each(of_window(sizes, &WindowDim::kernel), [&](const SpatialInts& k) {
        double sum = 0;
        SpatialInts i;
        for_each(out, [&](const SpatialInts& o) {
          if (!find_read(sizes, o, k, i)) return;
          for (int64_t n = 0; n < sizes.batch; ++n)
            sum += widened(x.at(n, ic, i)) * widened(dy.at(n, oc, o));
        });
        dw.at(oc, c, k) = narrowed<T>(sum);
      });
    }
    if (ctx.outputs.size() < 2) continue;
    double sum = 0;
    for_each(out, [&](const SpatialInts& o) {
      for (int64_t n = 0; n < sizes.batch; ++n)
        sum += widened(dy.at(n, oc, o));
    });
    ctx.out(1).as<T>()[oc] = narrowed<T>(sum);
  }
}

void run_reference(const KernelContext& ctx) {
  const auto& state = ctx.state_as<ReferenceState>();
  dispatch_floating(ctx.out(0).meta->dtype, [&]<class T>() {
    if (state.roles.writes_x) {
      backward_input<T>(ctx, state.sizes);
    } else if (state.roles.writes_weight) {
      backward_weight<T>(ctx, state.sizes);
    } else {
      forward<T>(ctx, state.sizes);
    }
  });
}

KernelChoice select_reference(const KernelQuery& query) {
  const ConvRoles roles = conv_roles(query);
  const ConvSizes sizes = conv_sizes(query);
  if (!conv_parts_agree(query, roles, sizes)) return {};
  return {run_reference, std::make_shared<const ReferenceState>(ReferenceState{roles, sizes})};
}

}  // namespace

// The fast kernels choose their instruction set themselves.
void register_conv_cpu(KernelTable& table) {
  for (const OpDef* op :
       {&kConv, &kConvBackwardInput, &kConvBackwardWeight, &kConvBackwardWeightBias}) {
    table.add(*op, DeviceType::kCpu, {"reference", select_reference});
    table.add(*op, DeviceType::kCpu, {"gemm", select_conv_gemm});
    table.add(*op, DeviceType::kCpu, {"onednn", select_conv_onednn, true});
    table.add(*op, DeviceType::kCpu, {"pixel", select_conv_pixel, true});
  }
}

#else

void register_conv_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
