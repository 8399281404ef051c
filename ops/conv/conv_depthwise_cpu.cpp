// The weight gradient of depthwise convolutions with 3 × 3 taps on blocked memory: oneDNN 2.6 has a
// fast kernel for some sizes only and multiplies gathered windows for the others, which takes ten
// times as long. x and dy are read once.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/conv_op.h"
#include "ops/kernel/blocked_layout.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

void register_conv_depthwise_cpu(KernelTable& table);

namespace {

constexpr int64_t kTaps = 3;  // in either direction

struct DepthwiseState {
  WindowDim h, w;
  ChannelBlocks x;

  int64_t y_positions() const { return h.out * w.out; }
};

// Channels are contiguous, so one vector holds the products of several channels, for each tap.
using TapSums = std::array<Vec<float>, kTaps * kTaps>;

// The sums of one image: x and dy at its first pixel, `lanes` floats from pixel to pixel; `zeros`
// stands for rows outside.
TapSums sum_image(const DepthwiseState& state, const float* x, const float* dy,
                  const float* zeros) {
  using V = Vec<float>;
  const int64_t lanes = state.x.lanes;
  TapSums sums;
  sums.fill(V::zero());
  for (int64_t oh = 0; oh < state.h.out; ++oh) {
    const float* rows[kTaps];
    for (int64_t i = 0; i < kTaps; ++i) {
      const int64_t ih = oh * state.h.stride - state.h.padding + i * state.h.dilation;
      rows[i] = ih >= 0 && ih < state.h.in ? x + ih * state.w.in * lanes : zeros;
    }
    for (int64_t ow = 0; ow < state.w.out; ++ow) {
      const V d = V::load(dy);
      dy += lanes;
      const int64_t first = ow * state.w.stride - state.w.padding;
#pragma GCC unroll 3
      for (int64_t j = 0; j < kTaps; ++j) {
        const int64_t iw = first + j * state.w.dilation;
        if (iw < 0 || iw >= state.w.in) continue;
#pragma GCC unroll 3
        for (int64_t i = 0; i < kTaps; ++i) {
          V& sum = sums[static_cast<size_t>(i * kTaps + j)];
          sum = fma(V::load(rows[i] + iw * lanes), d, sum);
        }
      }
    }
  }
  return sums;
}

// x: (N, C, H, W) and dy, of one blocked layout -> (C, 1, 3, 3). A thread takes vectors of channels
// over all images, so the order of the sums does not depend on the threads.
void run_backward_weight(const KernelContext& ctx) {
  using V = Vec<float>;
  const auto& state = ctx.state_as<DepthwiseState>();
  const ChannelBlocks& blocks = state.x;
  const float* x = ctx.in(0).as<float>();
  const float* dy = ctx.in(1).as<float>();
  float* dw = ctx.out(0).as<float>();
  const int64_t vectors = blocks.lanes / V::kLanes;
  ctx.pool().parallel_for(0, blocks.blocks() * vectors, 1, [&](int64_t begin, int64_t end) {
    const std::vector<float> zeros(static_cast<size_t>(state.w.in * blocks.lanes));
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t lane = unit % vectors * V::kLanes;
      TapSums total;
      total.fill(V::zero());
      for (int64_t n = 0; n < blocks.batch; ++n) {
        const int64_t plane = n * blocks.blocks() + unit / vectors;
        const TapSums own =
            sum_image(state, x + plane * blocks.positions * blocks.lanes + lane,
                      dy + plane * state.y_positions() * blocks.lanes + lane, zeros.data());
        for (size_t tap = 0; tap < own.size(); ++tap)
          total[tap] = total[tap] + own[tap];
      }
      const int64_t first = unit / vectors * blocks.lanes + lane;
      for (size_t tap = 0; tap < total.size(); ++tap) {
        float lanes[V::kLanes];
        total[tap].store(lanes);
        for (int64_t c = 0; c < V::kLanes && first + c < blocks.channels; ++c)
          dw[(first + c) * kTaps * kTaps + static_cast<int64_t>(tap)] = lanes[c];
      }
    }
  });
}

KernelChoice select_backward_weight(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const TensorMeta& dy = query.input(1);
  if (x.blocked == nullptr || dy.blocked == nullptr || x.dim() != 4) return {};
  if (x.dtype != DType::kFloat32 || !query.output(0).is_contiguous) return {};
  const ConvSizes sizes = conv_sizes(query);
  const WindowDim& h = sizes.window[1];
  const WindowDim& w = sizes.window[2];
  const ChannelBlocks blocks = channel_blocks(*x.blocked, x.local_shape);
  const bool is_depthwise = sizes.groups == sizes.in_channels && sizes.groups == sizes.out_channels;
  if (!is_depthwise || h.kernel != kTaps || w.kernel != kTaps || blocks.lanes == 0 ||
      blocks.lanes % Vec<float>::kLanes != 0 ||
      channel_blocks(*dy.blocked, dy.local_shape).lanes != blocks.lanes) {
    return {};
  }
  return {run_backward_weight,
          std::make_shared<const DepthwiseState>(DepthwiseState{h, w, blocks})};
}

}  // namespace

void register_conv_depthwise_cpu(KernelTable& table) {
  table.add(kConvBackwardWeight, DeviceType::kCpu, {FLOW_ISA_NAME, select_backward_weight, true});
}

#include "ops/kernel/isa_end.h"
