// Products with gelu, or with its gradient.
#include <array>
#include <memory>
#include <utility>

#include "ops/elementwise/unary_op.h"
#include "ops/linear/linear_gelu_op.h"
#include "ops/linear/matmul_op.h"
#include "ops/linear/part_kernel.h"

namespace flow::ops {

namespace {

// ---- linear_gelu_tanh

void infer_linear_gelu(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "the tensors must be floating");
  InferContext linear(kLinear, ctx.inputs(), nullptr);
  kLinear.infer(linear);
  ctx.add_output(linear.outputs()[0]);
  ctx.add_output(linear.outputs()[0]);
}

// Samples and features are independent. Sums over ranks must be whole before gelu.
void sbp_linear_gelu(SbpContext& ctx) {
  using sbp::broadcast, sbp::split;
  const int64_t last = ctx.input(0).shape.size() - 1;
  for (int64_t i = 0; i < last; ++i)
    ctx.add({split(i), broadcast, broadcast}, {split(i), split(i)});
  ctx.add({broadcast, split(0), ctx.has_input(2) ? split(0) : broadcast},
          {split(last), split(last)});
}

// ---- matmul_gelu_tanh_grad

void infer_matmul_gelu_grad(InferContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype), "the tensors must be floating");
  ctx.check(ctx.input(1).dim() == 2, "the second operand must be a matrix");
  InferContext product(kMatmul, ctx.inputs().first(2), nullptr);
  kMatmul.infer(product);
  const OutputSpec& result = product.outputs()[0];
  ctx.check(ctx.input(2).shape == result.shape && ctx.input(2).dtype == result.dtype,
            "gelu's input must have the shape and dtype of the product, ", result.shape, " ",
            result.dtype);
  ctx.add_output(result);
}

// As matmul, and elementwise in h: dx is linear in the product.
void sbp_matmul_gelu_grad(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t last = ctx.input(0).shape.size() - 1;
  for (int64_t i = 0; i < last; ++i)
    ctx.add({split(i), broadcast, split(i)}, {split(i)});
  ctx.add({broadcast, split(1), split(last)}, {split(last)});
  ctx.add({split(last), split(0), broadcast}, {partial_sum});
  ctx.add({partial_sum, broadcast, broadcast}, {partial_sum});
  ctx.add({broadcast, partial_sum, broadcast}, {partial_sum});
}

Cost cost(const SbpContext& ctx) {
  return {.flops = 2.0 * static_cast<double>(ctx.output(0).shape.numel()) *
                   static_cast<double>(ctx.input(0).shape.back())};
}

// ---- kernels of any device

struct PairState {
  KernelChoice product;
  KernelChoice elementwise;
};

KernelChoice choice_of(KernelFn fn, PairState&& state) {
  KernelScratch scratch = scratch_of_both(state.product, state.elementwise);
  return with_scratch({fn, std::make_shared<const PairState>(std::move(state))},
                      std::move(scratch));
}

void run_linear_then_gelu(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PairState>();
  run_part(ctx, state.product, nullptr, ctx.inputs, ctx.out(1));
  run_part(ctx, state.elementwise, nullptr, ctx.outputs.subspan(1), ctx.out(0));
}

// The gradient of gelu is written over that of its result.
void run_matmul_then_gelu_grad(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PairState>();
  run_part(ctx, state.product, nullptr, ctx.inputs.first(2), ctx.out(0));
  const std::array<TensorView, 2> inputs{ctx.out(0), ctx.in(2)};
  run_part(ctx, state.elementwise, nullptr, inputs, ctx.out(0));
}

}  // namespace

KernelChoice select_linear_then_gelu(const KernelQuery& query, DeviceType device,
                                     std::string_view only) {
  const auto y = query.outputs.first(1), h = query.outputs.subspan(1);
  PairState state;
  state.product = select_part({kLinear, query.inputs, h, nullptr}, device, only);
  state.elementwise = select_part({gelu_tanh_op(), h, y, nullptr}, device, only);
  return choice_of(run_linear_then_gelu, std::move(state));
}

KernelChoice select_matmul_then_gelu_grad(const KernelQuery& query, DeviceType device,
                                          std::string_view only) {
  const std::array<MetaPtr, 2> inputs{query.outputs[0], query.inputs[2]};
  PairState state;
  state.product =
      select_part({kMatmul, query.inputs.first(2), query.outputs, nullptr}, device, only);
  state.elementwise = select_part({kGeluTanhGrad, inputs, query.outputs, nullptr}, device, only);
  return choice_of(run_matmul_then_gelu_grad, std::move(state));
}

const OpDef kLinearGeluTanh{.name = "linear_gelu_tanh",
                            .num_inputs = 3,
                            .num_outputs = 2,
                            .infer = infer_linear_gelu,
                            .sbp = sbp_linear_gelu,
                            .grad = not_differentiable,
                            .cost = cost};

const OpDef kMatmulGeluTanhGrad{.name = "matmul_gelu_tanh_grad",
                                .num_inputs = 3,
                                .infer = infer_matmul_gelu_grad,
                                .sbp = sbp_matmul_gelu_grad,
                                .grad = not_differentiable,
                                .cost = cost};

void register_linear_gelu(OpTable& table);

void register_linear_gelu(OpTable& table) {
  table.add(kLinearGeluTanh);
  table.add(kMatmulGeluTanhGrad);
}

void register_linear_gelu(KernelTable& table);

void register_linear_gelu(KernelTable& table) {
  add_cpu_pair<select_linear_then_gelu>(table, kLinearGeluTanh);
  add_cpu_pair<select_matmul_then_gelu_grad>(table, kMatmulGeluTanhGrad);
}

}  // namespace flow::ops
