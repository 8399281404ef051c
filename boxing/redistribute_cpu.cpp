// Kernels of the layout ops on host memory. The route is found once per decision and carried out at
// every call.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <tuple>
#include <utility>

#include "boxing/comm/communicator.h"
#include "boxing/plan.h"
#include "boxing/planned_kernel.h"
#include "boxing/redistribute_op.h"
#include "boxing/register.h"
#include "boxing/run_plan.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/device_memory.h"
#include "core/env.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/kernel.h"

namespace flow::boxing {

namespace {

// Carries out the route and adds its time to the rank's transfer log.
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

// Calls fn with the input's part, which is packed first if it is strided.
template <class Fn>
void with_packed_input(const KernelContext& ctx, const Fn& fn) {
  const TensorView& source = ctx.in(0);
  if (source.data == nullptr || source.meta->is_contiguous) {
    fn(source.data);
    return;
  }
  const TensorMeta& meta = *source.meta;
  const Ref<Storage> packed = ctx.scratch(meta.local_bytes());
  copy_box(meta.local_shape, meta.strides, source.data, contiguous_strides(meta.local_shape),
           packed->data(), dtype_size(meta.dtype));
  fn(packed->data());
}

void run_bound_plan(const KernelContext& ctx) {
  with_packed_input(ctx, [&](const std::byte* source) {
    run_logged(ctx.plan_as<BoundPlan>(), source, ctx.out(0).data, ctx.site);
  });
}

uint64_t hash_of(const std::byte* data, size_t bytes) {
  Hasher hasher;
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, data + i, std::min(sizeof(word), bytes - i));
    hasher.add(word);
  }
  return hasher.value();
}

// Throws InvalidArgument on every rank if data that becomes one broadcast value differs between
// ranks.
void check_replicas(const KernelContext& ctx, const std::byte* source) {
  const Plan& plan = ctx.plan_as<BoundPlan>().plan();
  if (plan.steps.empty()) return;
  RankContext& context = *thread_state().context;
  const std::vector<int64_t> group = group_of(plan.steps[0], context.rank());
  if (group.empty()) return;
  const uint64_t own = hash_of(source, ctx.in(0).meta->local_bytes());
  std::vector<uint64_t> all(group.size());
  const std::vector<int64_t> bytes(group.size(), sizeof(own));
  communicator_for(context, group)
      .all_gather(&own, all.data(), bytes,
                  {.op = "to_global", .shape = plan.shape, .dtype = plan.dtype, .site = ctx.site});
  for (size_t i = 0; i < group.size(); ++i) {
    if (all[i] == all[0]) continue;
    throw InvalidArgument(str("[to_global] ranks ", group[0], " and ", group[i],
                              " pass different data for ", plan.to, " of a ", plan.dtype, ' ',
                              plan.shape,
                              "; pass equal data (without FLOW_CHECK=1 the data of rank ", group[0],
                              " replaces the others')"));
  }
}

void run_checked_plan(const KernelContext& ctx) {
  with_packed_input(ctx, [&](const std::byte* source) {
    check_replicas(ctx, source);
    run_logged(ctx.plan_as<BoundPlan>(), source, ctx.out(0).data, ctx.site);
  });
}

// Runs `kernel` for data on a device: it gets copies in host memory.
template <KernelFn kernel>
void staged(const KernelContext& ctx) {
  run_on_host(ctx, kernel);
}

KernelChoice select_planned(const KernelQuery& query) {
  return bind_plan(query, plan_of(query));
}

// Copies this rank's part to a separate tensor if a view is not possible.
void copy_part(const KernelContext& ctx) {
  const TensorMeta& meta = *ctx.in(0).meta;
  if (meta.local_numel == 0) return;
  copy_box(meta.local_shape, meta.strides, ctx.in(0).data, ctx.out(0).strides(), ctx.out(0).data,
           dtype_size(meta.dtype));
}

}  // namespace

bool follows_plan(const OpDef& op) {
  return &op == &kRedistribute || &op == &kLocalToGlobal || &op == &kCandidatesToGlobal;
}

Plan plan_of(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  if (&query.op == &kRedistribute) {
    const auto& attrs = query.attrs_as<RedistributeAttrs>();
    return plan_redistribution(x.shape, x.dtype, {x.placement, x.nd_sbp},
                               {attrs.placement, attrs.nd_sbp});
  }
  const auto& attrs = query.attrs_as<LocalToGlobalAttrs>();
  const Layout layout{attrs.placement, attrs.nd_sbp};
  return attrs.sends_first ? plan_first_replica(attrs.shape, x.dtype, layout)
                           : plan_redistribution(attrs.shape, x.dtype, layout, layout);
}

KernelChoice bind_plan(const KernelQuery& query, const Plan& plan) {
  RankContext& context = *thread_state().context;
  RankPlan own = make_rank_plan(plan, context.rank());
  const bool is_checked = &query.op != &kRedistribute &&
                          query.attrs_as<LocalToGlobalAttrs>().sends_first &&
                          env_flag("FLOW_CHECK");
  const bool is_on_host =
      query.input(0).device == DeviceType::kCpu && query.output(0).device == DeviceType::kCpu;
  const KernelFn checked = is_on_host ? run_checked_plan : staged<run_checked_plan>;
  const KernelFn unchecked = is_on_host ? run_bound_plan : staged<run_bound_plan>;
  return {is_checked ? checked : unchecked,
          std::make_shared<const BoundPlan>(context, std::move(own))};
}

KernelScratch scratch_of_plan(const KernelQuery& query, const Plan& plan, int64_t rank) {
  KernelScratch blocks;
  const TensorMeta& x = query.input(0);
  if (x.is_held && !x.is_contiguous) blocks.push_back({static_cast<int64_t>(x.local_bytes())});
  const auto bytes_after = [&](size_t step) {
    const Layout& layout = plan.steps[step].to;
    return static_cast<int64_t>(
        global_meta(plan.shape, plan.dtype, layout.placement, layout.nd_sbp, rank)->local_bytes());
  };
  // The bytes that a step reads and writes.
  int64_t read = 0, written = 0;
  for (size_t i = 0; i + 1 < plan.steps.size(); ++i) {
    const int64_t before = i == 0 ? 0 : bytes_after(i - 1), after = bytes_after(i);
    if (before + after > read + written) std::tie(read, written) = std::pair(before, after);
  }
  for (const int64_t bytes : {read, written}) {
    if (bytes > 0) blocks.push_back({bytes});
  }
  return blocks;
}

void register_ops(OpTable& table) {
  table.add(kRedistribute);
  table.add(kLocalToGlobal);
  table.add(kCandidatesToGlobal);
  table.add(kToLocal);
}

void register_cpu_kernels(KernelTable& table) {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
    table.add(kRedistribute, device, {"reference", select_planned});
    table.add(kLocalToGlobal, device, {"reference", select_planned});
    table.add(kCandidatesToGlobal, device, {"reference", select_planned});
  }
  table.add(kToLocal, DeviceType::kCpu, {"reference", always<copy_part>});
  table.add(kToLocal, DeviceType::kCuda, {"reference", always<staged<copy_part>>});
}

}  // namespace flow::boxing
