// Kernels of the layout ops on host memory: a plan made once per decision, run at every call.
#include <chrono>

#include "boxing/plan.h"
#include "boxing/redistribute_op.h"
#include "boxing/register.h"
#include "boxing/run_plan.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/kernel.h"

namespace flow::boxing {

namespace {

// Runs the plan and enters what it took into the rank's transfer log.
void run_logged(const BoundPlan& plan, const std::byte* source, std::byte* target, Site site) {
  if (plan.plan().steps.empty()) {
    plan.run(source, target, site);
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  plan.run(source, target, site);
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  thread_state().context->slot<TransferLog>().add(user_site(site), plan.plan(), took.count());
}

void run_bound_plan(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<BoundPlan>();
  const TensorView& source = ctx.in(0);
  std::byte* target = ctx.out(0).data;
  if (source.data == nullptr || source.meta->is_contiguous) {
    run_logged(plan, source.data, target, ctx.site);
    return;
  }
  const TensorMeta& meta = *source.meta;
  const Ref<Storage> packed = ctx.scratch(meta.local_bytes());
  copy_box(meta.local_shape, meta.strides, source.data, contiguous_strides(meta.local_shape),
           packed->data(), dtype_size(meta.dtype));
  run_logged(plan, packed->data(), target, ctx.site);
}

KernelChoice bind(Plan plan) {
  RankContext& context = *thread_state().context;
  RankPlan own = make_rank_plan(plan, context.rank());
  return {run_bound_plan, std::make_shared<const BoundPlan>(context, std::move(own))};
}

KernelChoice select_redistribute(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const auto& attrs = query.attrs_as<RedistributeAttrs>();
  return bind(plan_redistribution(x.shape, x.dtype, {x.placement, x.nd_sbp},
                                  {attrs.placement, attrs.nd_sbp}));
}

KernelChoice select_local_to_global(const KernelQuery& query) {
  const auto& attrs = query.attrs_as<LocalToGlobalAttrs>();
  const Layout layout{attrs.placement, attrs.nd_sbp};
  const DType dtype = query.input(0).dtype;
  if (attrs.sends_first) return bind(plan_first_replica(attrs.shape, dtype, layout));
  return bind(plan_redistribution(attrs.shape, dtype, layout, layout));
}

// This rank's part as a tensor of its own, where the view does not serve.
void copy_part(const KernelContext& ctx) {
  const TensorMeta& meta = *ctx.in(0).meta;
  if (meta.local_numel == 0) return;
  copy_box(meta.local_shape, meta.strides, ctx.in(0).data, ctx.out(0).strides(), ctx.out(0).data,
           dtype_size(meta.dtype));
}

}  // namespace

void register_ops(OpTable& table) {
  table.add(kRedistribute);
  table.add(kLocalToGlobal);
  table.add(kCandidatesToGlobal);
  table.add(kToLocal);
}

void register_cpu_kernels(KernelTable& table) {
  table.add(kRedistribute, DeviceType::kCpu, {"reference", select_redistribute});
  table.add(kLocalToGlobal, DeviceType::kCpu, {"reference", select_local_to_global});
  table.add(kCandidatesToGlobal, DeviceType::kCpu, {"reference", select_local_to_global});
  table.add(kToLocal, DeviceType::kCpu, {"reference", always<copy_part>});
}

}  // namespace flow::boxing
