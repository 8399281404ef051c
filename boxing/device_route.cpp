#include "boxing/device_route.h"

#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "boxing/comm/device_collectives.h"
#include "boxing/comm/device_communicator.h"
#include "boxing/device_boxes.h"
#include "boxing/exchange.h"
#include "boxing/run_route.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/device/cuda_error.h"
#include "core/device/cuda_launch.h"
#include "core/device/device_memory.h"

namespace flow::boxing {

namespace {

// A rank's part before or after a step.
struct Part {
  const std::byte* data = nullptr;
  DeviceType device = DeviceType::kCuda;
  Ref<Storage> storage = {};  // null: the memory belongs to the caller
};

Strides dense(const Shape& extents) {
  return contiguous_strides(extents);
}

class DeviceRoute {
 public:
  DeviceRoute(RankContext& context, const RankRoute& route, Channel channel)
      : context_(context), host_(context, route, channel) {}

  const Route& route() const { return host_.route(); }

  // `source` and `target` are row-major parts on the device.
  void run(const KernelContext& ctx, const std::byte* source, std::byte* target) const;

 private:
  size_t bytes_of(int64_t count) const {
    return static_cast<size_t>(count) * dtype_size(route().dtype);
  }

  Ref<Storage> allocate(DeviceType device, int64_t count) const {
    return device == DeviceType::kCuda ? allocate_storage(context_, device, bytes_of(count))
                                       : allocate_staging(context_, bytes_of(count));
  }

  // The part where a step needs it.
  Part moved(Part part, DeviceType device, int64_t count) const {
    if (part.device == device) return part;
    Part result{.device = device, .storage = allocate(device, count)};
    if (count > 0) {
      copy_bytes(context_, result.storage->data(), device, part.data, part.device, bytes_of(count));
    }
    result.data = result.storage->data();
    return result;
  }

  void run_step(const KernelContext& ctx, const RankStep& step, DeviceCommunicator* group,
                const std::byte* source, std::byte* target, const Fingerprint& what) const;
  // A step whose data is packed, exchanged and unpacked.
  void exchange(const KernelContext& ctx, const RankStep& step, Communicator& group,
                const std::byte* source, std::byte* target, const Fingerprint& what) const;

  RankContext& context_;
  BoundRoute host_;  // for steps whose data goes through host memory
};

void DeviceRoute::run(const KernelContext& ctx, const std::byte* source, std::byte* target) const {
  const RankRoute& own = host_.rank_route();
  if (own.steps.empty()) {
    if (!own.copies_all || own.count == 0) return;
    FLOW_CUDA_CALL(cudaMemcpyAsync(target, source, bytes_of(own.count), cudaMemcpyDeviceToDevice,
                                   cuda::stream_of(ctx)));
    return;
  }
  const Fingerprint what = host_.fingerprint(ctx.site);
  Part now{.data = source};
  for (size_t i = 0; i < own.steps.size(); ++i) {
    const RankStep& step = own.steps[i];
    const bool is_last = i + 1 == own.steps.size();
    Communicator* const group = host_.group_of_step(i);
    DeviceCommunicator* const there =
        group != nullptr ? device_communicator_for(context_, *group, what) : nullptr;
    const bool is_staged = group != nullptr
                               ? there == nullptr && !stays_on_devices(context_, *group, what)
                               : now.device == DeviceType::kCpu;
    const DeviceType device = is_staged ? DeviceType::kCpu : DeviceType::kCuda;
    if (!step.group.empty()) now = moved(std::move(now), device, step.source_count);
    Part next{.device = device};
    std::byte* out = target;
    if (is_staged || !is_last) {
      next.storage = allocate(device, step.target_count);
      out = next.storage->data();
    }
    next.data = out;
    if (step.group.empty()) {
      // This rank takes no part, and holds nothing before or after the step.
    } else if (step.kind == RouteStepKind::kAllReduce && !is_staged) {
      device_collectives_for(context_, *group)
          .all_reduce(now.data, out, step.target_count, route().dtype, step.source_op, what);
    } else if (is_staged) {
      host_.run_step(i, now.data, out, ctx.site);
    } else if (group != nullptr && there == nullptr) {
      exchange(ctx, step, device_collectives_for(context_, *group), now.data, out, what);
    } else {
      run_step(ctx, step, there, now.data, out, what);
    }
    if (is_last && is_staged && step.target_count > 0) {
      copy_bytes(context_, target, DeviceType::kCuda, out, DeviceType::kCpu,
                 bytes_of(step.target_count));
    }
    now = std::move(next);
  }
}

void DeviceRoute::run_step(const KernelContext& ctx, const RankStep& step,
                           DeviceCommunicator* group, const std::byte* source, std::byte* target,
                           const Fingerprint& what) const {
  const DType dtype = route().dtype;
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  if (step.fills) fill_device_neutral(ctx, dtype, step.fill_op, target, step.target_count);
  std::vector<const std::byte*> parts{source};
  if (group != nullptr) {
    parts.clear();
    for (const DeviceCommunicator::Part& part : group->open({.source = source}, what))
      parts.push_back(part.source);
  }
  std::vector<const std::byte*> sources;
  for (const BoxCopy& copy : step.copies) {
    sources.clear();
    for (const int64_t member : copy.members) {
      sources.push_back(parts[group != nullptr ? static_cast<size_t>(member) : 0] +
                        copy.source_offset * size);
    }
    std::byte* const out = target + copy.target_offset * size;
    if (sources.size() <= 1) {
      copy_device_box(ctx, copy.extents, copy.source_strides,
                      sources.empty() ? source + copy.source_offset * size : sources[0],
                      copy.target_strides, out, dtype);
    } else {
      reduce_device_box(ctx, copy.extents, copy.source_strides, copy.target_strides, dtype,
                        step.source_op, sources, out);
    }
  }
  if (group != nullptr) group->close(what);
}

void DeviceRoute::exchange(const KernelContext& ctx, const RankStep& step, Communicator& group,
                           const std::byte* source, std::byte* target,
                           const Fingerprint& what) const {
  struct DeviceMemory {
    RankContext& context;
    const KernelContext& ctx;
    DType dtype;
    ReduceOp op;

    Ref<Storage> allocate(size_t bytes) const {
      return allocate_storage(context, DeviceType::kCuda, bytes);
    }

    void copy(const Shape& extents, const Strides& from_strides, const std::byte* from,
              const Strides& to_strides, std::byte* to) const {
      copy_device_box(ctx, extents, from_strides, from, to_strides, to, dtype);
    }

    void reduce(const BoxCopy& box, std::span<const std::byte* const> sources,
                std::byte* to) const {
      reduce_device_box(ctx, box.extents, box.source_strides, box.target_strides, dtype, op,
                        sources, to);
    }
  };

  const DType dtype = route().dtype;
  if (step.fills) fill_device_neutral(ctx, dtype, step.fill_op, target, step.target_count);
  if (packs_messages(step) || step.is_streamed) {
    exchange_packed(step, group, dtype, source, target, what,
                    DeviceMemory{context_, ctx, dtype, step.source_op});
  } else {
    exchange_parts(step, group, dtype, source, target, what);
  }
}

void run_device_route(const KernelContext& ctx) {
  const auto& route = ctx.state_as<DeviceRoute>();
  const TensorView& input = ctx.in(0);
  const std::byte* source = input.data;
  Ref<Storage> packed;
  if (source != nullptr && !input.meta->is_contiguous) {
    const Shape& shape = input.meta->local_shape;
    packed = ctx.scratch(input.meta->local_bytes());
    copy_device_box(ctx, shape, input.meta->strides, source, dense(shape), packed->data(),
                    input.meta->dtype);
    source = packed->data();
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  route.run(ctx, source, ctx.out(0).data);
  if (route.route().steps.empty()) return;
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  ctx.rank.slot<TransferLog>().add(user_site(ctx.site), route.route(), took.count());
}

}  // namespace

KernelChoice bind_device_route(RankContext& context, const RankRoute& route, Channel channel) {
  return {run_device_route, std::make_shared<const DeviceRoute>(context, route, channel)};
}

}  // namespace flow::boxing
