// The shapes, layouts and gradients of sampling images at arbitrary positions.
#include "ops/conv/grid_sample_op.h"

#include <array>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::ops {
namespace {

using Attrs = GridSampleAttrs;

// The number of spatial dims.
int64_t rank_of(const TensorMeta& grid) {
  return grid.dim() - 2;
}

// The shape of y, or of x for its spatial sizes.
Shape image_shape(int64_t batch, int64_t channels, const int64_t* sizes, int64_t rank) {
  Shape shape = {batch, channels};
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(sizes[i]);
  return shape;
}

void check_grid(const OpContext& ctx, const TensorMeta& image, const TensorMeta& grid) {
  const int64_t rank = rank_of(grid);
  ctx.check(is_floating(image.dtype) && grid.dtype == image.dtype,
            "takes an image and a grid of one floating dtype; cast one of them");
  ctx.check((rank == 2 || rank == 3) && image.dim() == grid.dim() && grid.shape.back() == rank &&
                grid.shape[0] == image.shape[0],
            "takes images (N, C, H, W) with grids (N, h, w, 2), or (N, C, D, H, W) with ",
            "(N, d, h, w, 3); received ", image, " and ", grid);
}

Shape sampled_shape(const TensorMeta& grid, int64_t channels) {
  return image_shape(grid.shape[0], channels, grid.shape.begin() + 1, rank_of(grid));
}

void infer(InferContext& ctx) {
  check_grid(ctx, ctx.input(0), ctx.input(1));
  ctx.add_output(sampled_shape(ctx.input(1), ctx.input(0).shape[1]), ctx.input(0).dtype);
}

void check_dy(const OpContext& ctx, const TensorMeta& grid) {
  const TensorMeta& dy = ctx.input(0);
  check_grid(ctx, dy, grid);
  ctx.check(dy.shape == sampled_shape(grid, dy.shape[1]), "takes a gradient of the result's shape ",
            sampled_shape(grid, dy.shape[1]), "; received ", dy);
}

void infer_backward_x(InferContext& ctx) {
  const TensorMeta& grid = ctx.input(1);
  check_dy(ctx, grid);
  ctx.add_output(image_shape(grid.shape[0], ctx.input(0).shape[1], ctx.attrs<Attrs>().size.data(),
                             rank_of(grid)),
                 ctx.input(0).dtype);
}

void infer_backward_grid(InferContext& ctx) {
  const TensorMeta& grid = ctx.input(2);
  check_dy(ctx, grid);
  check_grid(ctx, ctx.input(1), grid);
  ctx.check(ctx.input(1).shape[1] == ctx.input(0).shape[1],
            "takes a gradient with the channels of the image; received ", ctx.input(0), " and ",
            ctx.input(1));
  ctx.add_output_like(2);
}

// Samples, channels and images are independent, and y is linear in x.
void sbp(SbpContext& ctx) {
  using sbp::broadcast, sbp::split;
  const Attrs& attrs = ctx.attrs<Attrs>();
  ctx.add({split(0), split(0)}, {split(0)});
  ctx.add({split(1), broadcast}, {split(1)});
  for (int64_t i = 1; i <= rank_of(ctx.input(1)); ++i)
    ctx.add({broadcast, split(i)}, {split(i + 1)});
  ctx.add({sbp::partial_sum, broadcast}, {sbp::partial_sum});
  // The nearest pixels are only moved.
  if (attrs.mode != GridMode::kNearest) return;
  for (const Sbp side : {sbp::partial_max, sbp::partial_min})
    ctx.add({side, broadcast}, {side});
}

// Gradients of samples are added up.
void sbp_backward_x(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  ctx.add({split(0), split(0)}, {split(0)});
  ctx.add({split(1), broadcast}, {split(1)});
  for (int64_t i = 1; i <= rank_of(ctx.input(1)); ++i)
    ctx.add({split(i + 1), split(i)}, {partial_sum});
  ctx.add({partial_sum, broadcast}, {partial_sum});
}

// Products of dy and x are added up over the channels.
void sbp_backward_grid(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  ctx.add({split(0), split(0), split(0)}, {split(0)});
  ctx.add({split(1), split(1), broadcast}, {partial_sum});
  for (int64_t i = 1; i <= rank_of(ctx.input(2)); ++i)
    ctx.add({split(i + 1), broadcast, split(i)}, {split(i)});
  ctx.add({partial_sum, broadcast, broadcast}, {partial_sum});
  ctx.add({broadcast, partial_sum, broadcast}, {partial_sum});
}

Attrs differentiated(const Attrs& attrs, int64_t coordinate) {
  Attrs next = attrs;
  ++next.orders[static_cast<size_t>(coordinate)];
  return next;
}

Tensor sample(const Tensor& x, const Tensor& grid, const Attrs& attrs) {
  return dispatch(kGridSample, {&x, &grid}, attrs, Site::here());
}

Tensor backward_x(const Tensor& dy, const Tensor& grid, const Attrs& attrs) {
  return dispatch(kGridSampleBackwardX, {&dy, &grid}, attrs, Site::here());
}

// The nearest pixel does not change with the position, except where it jumps.
Tensor backward_grid(const Tensor& dy, const Tensor& x, const Tensor& grid, const Attrs& attrs) {
  if (attrs.mode == GridMode::kNearest) return zeros_like(grid);
  return dispatch(kGridSampleBackwardGrid, {&dy, &x, &grid}, attrs, Site::here());
}

Attrs with_size_of(const Attrs& attrs, const TensorMeta& x) {
  Attrs sized = attrs;
  for (int64_t i = 2; i < x.dim(); ++i)
    sized.size[static_cast<size_t>(i - 2)] = x.shape[i];
  return sized;
}

// y = W(grid) x:  dx = W^T dy
void grad(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor grid = ctx.input(1);
  if (ctx.needs(0)) {
    ctx.set(0, backward_x(ctx.dy(), grid, with_size_of(attrs, *ctx.input_meta(0))));
  }
  if (ctx.needs(1)) ctx.set(1, backward_grid(ctx.dy(), ctx.input(0), grid, attrs));
}

// dx = W(grid)^T dy with the gradient u:  ddy = W u, and dgrid is that of u . dx = dy . W u.
void grad_backward_x(GradContext& ctx) {
  const Tensor& u = ctx.dy();
  if (!u.defined()) return;
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor grid = ctx.input(1);
  if (ctx.needs(0)) ctx.set(0, sample(u, grid, attrs));
  if (ctx.needs(1)) ctx.set(1, backward_grid(ctx.input(0), u, grid, attrs));
}

// u . dgrid = sum over coordinates i of (u_i dy) . W_i x, where W_i is the derivative of W by
// coordinate i: the gradients are those of the samples W_i x.
void grad_backward_grid(GradContext& ctx) {
  const Tensor& u = ctx.dy();
  if (!u.defined()) return;
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor dy = ctx.input(0);
  const Tensor x = ctx.input(1);
  const Tensor grid = ctx.input(2);
  std::array<Tensor, 3> sums;
  const auto accumulate = [&](int input, const Tensor& term) {
    Tensor& sum = sums[static_cast<size_t>(input)];
    sum = sum.defined() ? add(sum, term) : term;
  };
  for (int64_t i = 0; i < rank_of(*ctx.input_meta(2)); ++i) {
    const Attrs along = differentiated(attrs, i);
    const Tensor u_i = unsqueeze(select(u, -1, i), 1);
    if (ctx.needs(0)) accumulate(0, mul(sample(x, grid, along), u_i));
    if (!ctx.needs(1) && !ctx.needs(2)) continue;
    const Tensor weighted = mul(dy, u_i);
    if (ctx.needs(1)) {
      accumulate(1, backward_x(weighted, grid, with_size_of(along, *ctx.input_meta(1))));
    }
    if (ctx.needs(2)) accumulate(2, backward_grid(weighted, x, grid, along));
  }
  for (int input = 0; input < 3; ++input) {
    if (ctx.needs(input)) ctx.set(input, sums[static_cast<size_t>(input)]);
  }
}

// A multiplication and an addition for each pixel that a sample reads, of each channel.
double flops(const SbpContext& ctx, const Shape& samples) {
  constexpr std::array kTaps = {1.0, 2.0, 4.0};
  const double taps = kTaps[static_cast<size_t>(ctx.attrs<Attrs>().mode)];
  double pixels = 1;
  for (int64_t i = 2; i < samples.size(); ++i)
    pixels *= taps;
  return 2 * pixels * static_cast<double>(samples.numel());
}

Cost cost(const SbpContext& ctx) {
  return {.flops = flops(ctx, ctx.output(0).shape)};
}

Cost cost_backward(const SbpContext& ctx) {
  return {.flops = flops(ctx, ctx.input(0).shape)};
}

}  // namespace

const OpDef kGridSample{.name = "grid_sample",
                        .num_inputs = 2,
                        .attrs = attrs_def<GridSampleAttrs>(),
                        .infer = infer,
                        .sbp = sbp,
                        .grad = grad,
                        .cost = cost,
                        .saved_inputs = 0b11};

const OpDef kGridSampleBackwardX{.name = "grid_sample_backward_x",
                                 .num_inputs = 2,
                                 .attrs = attrs_def<GridSampleAttrs>(),
                                 .infer = infer_backward_x,
                                 .sbp = sbp_backward_x,
                                 .grad = grad_backward_x,
                                 .cost = cost_backward,
                                 .saved_inputs = 0b11};

const OpDef kGridSampleBackwardGrid{.name = "grid_sample_backward_grid",
                                    .num_inputs = 3,
                                    .attrs = attrs_def<GridSampleAttrs>(),
                                    .infer = infer_backward_grid,
                                    .sbp = sbp_backward_grid,
                                    .grad = grad_backward_grid,
                                    .cost = cost_backward,
                                    .saved_inputs = 0b111};

void register_grid_sample(OpTable& table);

void register_grid_sample(OpTable& table) {
  table.add(kGridSample);
  table.add(kGridSampleBackwardX);
  table.add(kGridSampleBackwardGrid);
}

}  // namespace flow::ops
