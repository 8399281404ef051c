// The route is found once per decision and carried out at every call.
#include "boxing/routed_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "boxing/comm/communicator.h"
#include "boxing/comm/process_world.h"
#include "boxing/device_route.h"
#include "boxing/planner.h"
#include "boxing/redistribute_op.h"
#include "boxing/run_route.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/env.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/kernel.h"

namespace flow::boxing {

namespace {

// Carries out the route and adds its time to the rank's transfer log.
void run_logged(const BoundRoute& route, const std::byte* source, std::byte* target, Site site) {
  if (route.route().steps.empty()) {
    route.run(source, target, site);
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  route.run(source, target, site);
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  thread_state().context->slot<TransferLog>().add(user_site(site), route.route(), took.count());
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

void run_bound_route(const KernelContext& ctx) {
  with_packed_input(ctx, [&](const std::byte* source) {
    run_logged(ctx.state_as<BoundRoute>(), source, ctx.out(0).data, ctx.site);
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
  const Route& route = ctx.state_as<BoundRoute>().route();
  if (route.steps.empty()) return;
  RankContext& context = *thread_state().context;
  const std::vector<int64_t> group = group_of(route.steps[0], context.rank());
  if (group.empty()) return;
  const uint64_t own = hash_of(source, ctx.in(0).meta->local_bytes());
  std::vector<uint64_t> all(group.size());
  const std::vector<int64_t> bytes(group.size(), sizeof(own));
  communicator_for(context, group)
      .all_gather(
          &own, all.data(), bytes,
          {.op = "to_global", .shape = route.shape, .dtype = route.dtype, .site = ctx.site});
  for (size_t i = 0; i < group.size(); ++i) {
    if (all[i] == all[0]) continue;
    throw InvalidArgument(str("[to_global] ranks ", group[0], " and ", group[i],
                              " pass different data for ", route.to, " of a ", route.dtype, ' ',
                              route.shape,
                              "; pass equal data (without FLOW_CHECK=1 the data of rank ", group[0],
                              " replaces the others')"));
  }
}

void run_checked_route(const KernelContext& ctx) {
  with_packed_input(ctx, [&](const std::byte* source) {
    check_replicas(ctx, source);
    run_logged(ctx.state_as<BoundRoute>(), source, ctx.out(0).data, ctx.site);
  });
}

// Runs `kernel` for data on a device: it gets copies in host memory.
template <KernelFn kernel>
void staged(const KernelContext& ctx) {
  run_on_host(ctx, kernel);
}

KernelChoice select_routed(const KernelQuery& query) {
  return bind_route(query, route_of_call(query));
}

}  // namespace

bool follows_route(const OpDef& op) {
  return &op == &kRedistribute || &op == &kAllReduceMean || &op == &kLocalToGlobal ||
         &op == &kCandidatesToGlobal;
}

Route route_of_call(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  if (&query.op == &kRedistribute) {
    const auto& attrs = query.attrs_as<RedistributeAttrs>();
    return find_route(x.shape, x.dtype, {x.placement, x.nd_sbp}, {attrs.placement, attrs.nd_sbp});
  }
  if (&query.op == &kAllReduceMean) return mean_route(x.shape, x.dtype, x.placement);
  const auto& attrs = query.attrs_as<LocalToGlobalAttrs>();
  const Layout layout{attrs.placement, attrs.nd_sbp};
  return attrs.sends_first ? first_replica_route(attrs.shape, x.dtype, layout)
                           : find_route(attrs.shape, x.dtype, layout, layout);
}

KernelChoice bind_route(const KernelQuery& query, const Route& route, Channel channel) {
  RankContext& context = *thread_state().context;
  RankRoute own = make_rank_route(route, context.rank());
  const bool is_checked = (&query.op == &kLocalToGlobal || &query.op == &kCandidatesToGlobal) &&
                          query.attrs_as<LocalToGlobalAttrs>().sends_first &&
                          env_flag("FLOW_CHECK");
  const bool is_on_host =
      query.input(0).device == DeviceType::kCpu && query.output(0).device == DeviceType::kCpu;
  // Values are compared in host memory.
  const bool is_on_devices = query.input(0).device == DeviceType::kCuda &&
                             query.output(0).device == DeviceType::kCuda && !is_checked;
  if (is_on_devices) {
    KernelChoice choice = bind_device_route(context, own, channel);
    if (choice.fn != nullptr) return choice;
  }
  const KernelFn checked = is_on_host ? run_checked_route : staged<run_checked_route>;
  const KernelFn unchecked = is_on_host ? run_bound_route : staged<run_bound_route>;
  return {is_checked ? checked : unchecked,
          std::make_shared<const BoundRoute>(context, std::move(own), channel)};
}

KernelScratch scratch_of_route(const TensorMeta& input, const Route& route, int64_t rank,
                               bool shares_memory) {
  KernelScratch most;  // of any step
  int64_t most_bytes = 0;
  const auto consider = [&](const KernelScratch& blocks) {
    const int64_t bytes = scratch_block_bytes(blocks, 1);
    if (bytes <= most_bytes) return;
    most = blocks;
    most_bytes = bytes;
  };
  std::optional<RankRoute> own;
  if (!shares_memory) own = make_rank_route(route, rank);
  std::optional<ScratchBlock> read;  // the intermediate part that a step reads
  for (size_t i = 0; i < route.steps.size(); ++i) {
    KernelScratch blocks;
    if (read) blocks.push_back(*read);
    const bool is_last = i + 1 == route.steps.size();
    if (!is_last) {
      const Layout& layout = route.steps[i].to;
      const MetaPtr part =
          global_meta(route.shape, route.dtype, layout.placement, layout.nd_sbp, rank);
      read = ScratchBlock{static_cast<int64_t>(part->local_bytes())};
      blocks.push_back(*read);
    }
    if (own && packs_messages(own->steps[i])) {
      const RankStep& step = own->steps[i];
      for (const std::vector<int64_t>& bytes : {step.send_bytes, step.recv_bytes})
        blocks.push_back({std::accumulate(bytes.begin(), bytes.end(), int64_t{0})});
    }
    consider(blocks);
  }
  if (input.is_held && !input.is_contiguous)
    most.push_back({static_cast<int64_t>(input.local_bytes())});
  return most;
}

bool ranks_share_memory(RankContext& context) {
  return context.slot_ptr<ProcessWorld>() == nullptr && process_world() == nullptr;
}

void register_routed_kernels(KernelTable& table) {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
    table.add(kRedistribute, device, {"reference", select_routed});
    table.add(kAllReduceMean, device, {"reference", select_routed});
    table.add(kLocalToGlobal, device, {"reference", select_routed});
    table.add(kCandidatesToGlobal, device, {"reference", select_routed});
  }
}

}  // namespace flow::boxing
