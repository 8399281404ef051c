// Convolutions of a single pixel by a single tap are matrix products of (batch, channels) and the
// weight in its own layout. oneDNN would reorder the weight for them and divide the sum over the
// batch of its gradient into images, which takes several times as long.
#include "ops/conv/conv_pixel.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "ops/conv/conv_kernels.h"
#include "ops/kernel/blocked_layout.h"
#include "ops/kernel/contiguous.h"
#include "ops/linear/gemm.h"
#include "ops/linear/product_cells.h"
#include "ops/vendor/onednn.h"

namespace flow::ops {
namespace {

struct PixelState {
  int64_t batch;
  int64_t in;   // channels
  int64_t out;  // channels
  bool has_bias;
};

void multiply(const KernelContext& ctx, const GemmTask<float>& task) {
  multiply_on_threads(ctx.pool(), task);
}

// y = x weight^T + bias
void run_forward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PixelState>();
  const ContiguousInput<float> x(ctx, 0);
  const ContiguousInput<float> weight(ctx, 1);
  std::optional<ContiguousInput<float>> bias;
  if (state.has_bias) bias.emplace(ctx, 2);
  const ContiguousOutput<float> y(ctx, 0);
  multiply(ctx, {.transpose_b = Transpose::kYes,
                 .m = state.batch,
                 .n = state.out,
                 .k = state.in,
                 .a = x.data(),
                 .lda = state.in,
                 .b = weight.data(),
                 .ldb = state.in,
                 .c = y.data(),
                 .ldc = state.out,
                 .bias = bias ? bias->data() : nullptr});
  y.finish(ctx);
}

// dx = dy weight
void run_backward_input(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PixelState>();
  const ContiguousInput<float> dy(ctx, 0);
  const ContiguousInput<float> weight(ctx, 1);
  const ContiguousOutput<float> dx(ctx, 0);
  multiply(ctx, {.m = state.batch,
                 .n = state.in,
                 .k = state.out,
                 .a = dy.data(),
                 .lda = state.out,
                 .b = weight.data(),
                 .ldb = state.in,
                 .c = dx.data(),
                 .ldc = state.in});
  dx.finish(ctx);
}

// dweight = dy^T x,  dbias = dy summed over the batch
void run_backward_weight(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PixelState>();
  const ContiguousInput<float> x(ctx, 0);
  const ContiguousInput<float> dy(ctx, 1);
  const ContiguousOutput<float> dweight(ctx, 0);
  multiply(ctx, {.transpose_a = Transpose::kYes,
                 .m = state.out,
                 .n = state.in,
                 .k = state.batch,
                 .a = dy.data(),
                 .lda = state.out,
                 .b = x.data(),
                 .ldb = state.in,
                 .c = dweight.data(),
                 .ldc = state.in});
  dweight.finish(ctx);
  if (!state.has_bias) return;
  const ContiguousOutput<float> dbias(ctx, 1);
  std::copy_n(dy.data(), state.out, dbias.data());
  for (int64_t i = 1; i < state.batch; ++i) {
    for (int64_t c = 0; c < state.out; ++c)
      dbias.data()[c] += dy.data()[i * state.out + c];
  }
  dbias.finish(ctx);
}

// Returns true if the memory is (batch, channels) without gaps.
bool is_dense(const BlockedLayout* layout, const Shape& shape) {
  if (layout == nullptr) return true;
  const ChannelBlocks blocks = channel_blocks(*layout, shape);
  return blocks.lanes != 0 && !blocks.has_padding();
}

bool is_single(const ConvSizes& sizes) {
  return sizes.kernel_size() == 1 && sizes.in_size() == 1 && sizes.out_size() == 1 &&
         std::all_of(sizes.window.begin(), sizes.window.end(),
                     [](const WindowDim& dim) { return dim.padding == 0; });
}

}  // namespace

KernelChoice select_conv_pixel(const KernelQuery& query) {
  const ConvRoles roles = conv_roles(query);
  const ConvSizes sizes = conv_sizes(query);
  const auto meta = [&](bool is_output, int i) -> const TensorMeta& {
    return is_output ? query.output(i) : query.input(i);
  };
  const TensorMeta& x = meta(roles.writes_x, roles.x);
  const TensorMeta& weight = meta(roles.writes_weight, roles.weight);
  const TensorMeta& y = meta(roles.writes_y(), roles.y);
  const Shape weight_shape = weight.local_shape;
  if (query.output(0).dtype == DType::kFloat64 || sizes.volume() == 0 || !is_single(sizes) ||
      x.local_shape[0] != y.local_shape[0] || x.local_shape[1] != weight_shape[1] ||
      y.local_shape[1] != weight_shape[0] || weight.blocked != nullptr) {
    return {};
  }
  if (roles.has_bias && !roles.writes_weight && query.input(2).local_shape[0] != weight_shape[0])
    return {};
  if (!is_dense(x.blocked, x.local_shape) || !is_dense(y.blocked, y.local_shape)) return {};
  std::vector<MetaPtr> outputs(query.outputs.begin(), query.outputs.end());
  if (!roles.writes_weight && query.output(0).dtype == DType::kFloat32) {
    // The output gets the layout of its input, so that the ops after it stay in blocked layouts.
    const Shape& shape = query.output(0).local_shape;
    const auto layout = layout_like(query.input(0).blocked, shape);
    if (!layout || !is_dense(*layout, shape)) return {};
    if (*layout != nullptr) outputs[0] = with_blocked(outputs[0], *layout);
  }
  const KernelFn fn = roles.writes_x        ? run_backward_input
                      : roles.writes_weight ? run_backward_weight
                                            : run_forward;
  return {fn,
          std::make_shared<const PixelState>(
              PixelState{sizes.batch, sizes.in_channels, sizes.out_channels, roles.has_bias}),
          std::move(outputs)};
}

}  // namespace flow::ops
