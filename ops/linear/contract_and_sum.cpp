// A product over leading dims together with the sum of one of its operands.
#include <memory>
#include <string_view>
#include <utility>

#include "ops/linear/contract_and_sum_op.h"
#include "ops/linear/matmul_op.h"
#include "ops/linear/part_kernel.h"
#include "ops/reduce/reduce_op.h"

namespace flow::ops {

namespace {

void infer(InferContext& ctx) {
  const int64_t operand = ctx.attrs<ContractAndSumAttrs>().operand;
  ctx.check(operand == 0 || operand == 1, "operand ", operand, " does not exist; name 0 or 1");
  ctx.check(is_floating(ctx.input(0).dtype), "the tensors must be floating");
  InferContext product(kContractLeading, ctx.inputs(), nullptr);
  kContractLeading.infer(product);
  ctx.add_output(product.outputs()[0]);
  const TensorMeta& summed = ctx.input(static_cast<int>(operand));
  ctx.add_output(Shape{summed.shape.back()}, summed.dtype);
}

// Those of the product. The sum is linear in its operand and does not depend on the other one.
void sbp(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const bool is_first = ctx.attrs<ContractAndSumAttrs>().operand == 0;
  const int64_t last = ctx.input(0).shape.size() - 1;
  for (int64_t i = 0; i < last; ++i)
    ctx.add({split(i), split(i)}, {partial_sum, partial_sum});
  ctx.add({split(last), broadcast}, {split(0), is_first ? split(0) : broadcast});
  ctx.add({broadcast, split(last)}, {split(1), is_first ? broadcast : split(0)});
  ctx.add({partial_sum, broadcast}, {partial_sum, is_first ? partial_sum : broadcast});
  ctx.add({broadcast, partial_sum}, {partial_sum, is_first ? broadcast : partial_sum});
}

Cost cost(const SbpContext& ctx) {
  const TensorMeta &a = ctx.input(0), &b = ctx.input(1);
  const int64_t summed = ctx.attrs<ContractAndSumAttrs>().operand == 0 ? a.numel : b.numel;
  return {.flops =
              2.0 * static_cast<double>(a.shape.numel()) * static_cast<double>(b.shape.back()) +
              static_cast<double>(summed)};
}

// ---- kernels of any device

struct PairState {
  int operand = 0;
  SumToAttrs sum_attrs;
  KernelChoice product;
  KernelChoice sum;
};

void run_pair(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PairState>();
  run_part(ctx, state.product, nullptr, ctx.inputs, ctx.out(0));
  run_part(ctx, state.sum, &state.sum_attrs, {&ctx.in(state.operand), 1}, ctx.out(1));
}

}  // namespace

KernelChoice select_contract_then_sum(const KernelQuery& query, DeviceType device,
                                      std::string_view only) {
  auto state = std::make_shared<PairState>();
  state->operand = static_cast<int>(query.attrs_as<ContractAndSumAttrs>().operand);
  state->sum_attrs.shape = query.output(1).shape;
  state->product =
      select_part({kContractLeading, query.inputs, query.outputs.first(1), nullptr}, device, only);
  const auto operand = query.inputs.subspan(static_cast<size_t>(state->operand), 1);
  state->sum =
      select_part({kSumTo, operand, query.outputs.subspan(1), &state->sum_attrs}, device, only);
  KernelScratch scratch = scratch_of_both(state->product, state->sum);
  return with_scratch({run_pair, std::move(state)}, std::move(scratch));
}

const OpDef kContractLeadingAndSum{.name = "contract_leading_and_sum",
                                   .num_inputs = 2,
                                   .num_outputs = 2,
                                   .attrs = attrs_def<ContractAndSumAttrs>(),
                                   .infer = infer,
                                   .sbp = sbp,
                                   .grad = not_differentiable,
                                   .cost = cost};

void register_contract_and_sum(OpTable& table);

void register_contract_and_sum(OpTable& table) {
  table.add(kContractLeadingAndSum);
}

void register_contract_and_sum(KernelTable& table);

void register_contract_and_sum(KernelTable& table) {
  add_cpu_pair<select_contract_then_sum>(table, kContractLeadingAndSum);
}

}  // namespace flow::ops
