// From a program to the steps that a rank runs: metas and kernels of this rank, and where each step
// finds its operands.
#include <algorithm>
#include <memory>
#include <utility>

#include "boxing/comm/device_collectives.h"
#include "boxing/routed_kernel.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/ir/place.h"
#include "graph/program/kernel_binding.h"
#include "graph/program/program_classes.h"
#include "graph/run/executor.h"

namespace flow::graph {

namespace {

boxing::Channel channel_of(const Step& step) {
  return step.in_background ? boxing::Channel::kBackground : boxing::Channel::kCaller;
}

}  // namespace

Executor::Executor(const Program& program, std::shared_ptr<Arena> arena)
    : program_(program), rank_(*thread_state().context), arena_(std::move(arena)), runs_(program) {
  load_metas();
  const auto lies_in_arena_on = [&](DeviceType device) {
    return std::any_of(program.buffers.begin(), program.buffers.end(), [&](const Buffer& buffer) {
      return buffer.arena_offset >= 0 && buffer.meta->device == device;
    });
  };
  const auto arena_bytes = static_cast<size_t>(program.arena_bytes);
  const bool uses_device = lies_in_arena_on(DeviceType::kCuda);
  if (uses_device) in_arena(DeviceType::kCuda).bytes = arena_bytes;
  if (!uses_device || lies_in_arena_on(DeviceType::kCpu))
    in_arena(DeviceType::kCpu).bytes = arena_bytes;
  load_externals();
  load_steps();
  streams_.resize(static_cast<size_t>(program.num_draws));
  if (timeline::TimelineLog* log = timeline::timeline_log(rank_))
    timeline_ = std::make_unique<StepTimeline>(*log, program);
}

void Executor::load_metas() {
  for (const Buffer& buffer : program_.buffers) {
    metas_.push_back(program_.rank == rank_.rank() ? buffer.meta
                                                   : local_meta_on(buffer.meta, rank_.rank()));
    FLOW_ASSERT(metas_.back() != nullptr, "a program of rank ", program_.rank,
                " does not fit rank ", rank_.rank());
  }
}

void Executor::load_externals() {
  for (const BufferId id : program_.externals)
    externals_.push_back({.meta = meta_of(id)});
  const auto external_of = [&](BufferId id) -> External* {
    const int32_t index = id == kNoBuffer ? -1 : program_.buffer(program_.root_of(id)).external;
    return index < 0 ? nullptr : &externals_[static_cast<size_t>(index)];
  };
  for (const Step& step : program_.steps) {
    for (const BufferId id : step.inputs)
      if (External* external = external_of(id)) external->is_read = external->is_used = true;
    for (const BufferId id : step.outputs) {
      External* external = external_of(id);
      if (external == nullptr) continue;
      external->is_written = external->is_used = true;
      const bool writes_all = program_.buffer(id).base == kNoBuffer && step.guard == kNoBuffer;
      external->is_read |= !writes_all;
    }
    if (External* external = external_of(step.guard)) external->is_read = external->is_used = true;
  }
}

void Executor::load_steps() {
  size_t num_views = 0;
  for (const Step& step : program_.steps)
    num_views += step.inputs.size() + step.outputs.size() + (step.guard != kNoBuffer ? 1 : 0);
  views_.reserve(num_views);  // steps point at views
  steps_.reserve(program_.steps.size());
  for (const Block& block : runs_.blocks()) {
    LoadedBlock& loaded = blocks_.emplace_back();
    loaded.first_step = block.first_step;
    loaded.end_step = block.end_step;
    for (size_t i = block.first_step; i < block.end_step; ++i)
      load_step(program_.steps[i], loaded);
  }
}

void Executor::load_step(const Step& step, LoadedBlock& block) {
  LoadedStep& loaded = steps_.emplace_back();
  const TensorView* first = views_.data() + views_.size();
  const size_t num_moving = block.moving.size();
  for (const BufferId id : step.inputs)
    add_view(id, block);
  for (const BufferId id : step.outputs)
    add_view(id, block);
  loaded.inputs = {first, step.inputs.size()};
  loaded.outputs = {first + step.inputs.size(), step.outputs.size()};
  if (step.guard != kNoBuffer) {
    add_view(step.guard, block);
    loaded.guard = step.guard;
    loaded.guard_view = &views_.back();
  }
  loaded.turn = step.turn;
  if (step.line != 0) loaded.site = Site::here(interned(step.file)->c_str(), step.line);
  loaded.module_path = interned(step.module);
  std::visit([&](const auto& body) { loaded.body = load(step, body); }, step.body);
  const bool is_positional =
      std::any_of(block.moving.begin() + static_cast<std::ptrdiff_t>(num_moving),
                  block.moving.end(), [](const MovingView& it) { return !it.metas.empty(); });
  if (is_positional) loaded.kernels = load_each(step, block);
  loaded.in_background = step.in_background;
  loaded.depends_on_run = is_positional || step.turn != StepTurn::kEvery || loaded.in_background;
}

std::vector<LoadedKernel> Executor::load_each(const Step& step, const LoadedBlock& block) {
  const auto& kernel = *step.as<KernelStep>();
  std::vector<LoadedKernel> kernels;
  for (const BlockRun& run : runs_.runs()) {
    if (&blocks_[static_cast<size_t>(run.block)] != &block) continue;
    const auto in_run = [&](BufferId id) { return meta_in(id, run.micro_batch); };
    const KernelMetas metas = kernel_metas(step, in_run);
    auto call =
        std::make_shared<const KernelCall>(make_kernel_call(kernel.op_call, metas, kernel_table()));
    FLOW_ASSERT(call->fn != nullptr && metas.outputs == call->outputs, step.name(),
                " gives another memory layout in micro-batch ", run.micro_batch);
    const auto index = static_cast<size_t>(run.micro_batch);
    if (kernels.size() <= index) kernels.resize(index + 1);
    kernels[index] = load(kernel, *call);
  }
  return kernels;
}

MetaPtr Executor::meta_in(BufferId id, int32_t micro_batch) const {
  const MetaPtr meta = meta_of(id);
  if (meta == nullptr || program_.buffer(id).holders == kNoTable) return meta;
  const MetaPtr here =
      local_meta_on(meta, program_.number(program_.buffer(id).holders, micro_batch));
  FLOW_ASSERT(here != nullptr, "the parts of ", *meta, " differ between micro-batches");
  return here;
}

LoadedKernel Executor::load(const Step& step, const KernelStep& kernel) const {
  return load(kernel, *kernel_call_here(step, kernel));
}

LoadedKernel Executor::load(const KernelStep& kernel, const KernelCall& call) const {
  LoadedKernel loaded{.fn = call.fn,
                      .state = call.state,
                      .attrs = kernel.op_call.raw_attrs(),
                      .draw = kernel.draw,
                      .draws_globally = kernel.draws_globally};
  for (size_t i = 0; i < call.forms.size(); ++i) {
    if (call.forms[i] != InputForm::kOnDevice) continue;
    const MetaPtr there = call.inputs[i];
    Ref<Storage> memory = allocate_storage(rank_, there->device, there->local_bytes());
    std::byte* data = memory->data();
    loaded.numbers.push_back({i, {data, there}, std::move(memory)});
  }
  return loaded;
}

LoadedKernel Executor::load(const Step& step, const CollectiveStep& collective) const {
  const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return meta_of(id); });
  KernelChoice choice =
      boxing::bind_route(metas.query(collective.op_call), *collective.route, channel_of(step));
  return {
      .fn = choice.fn, .state = std::move(choice.state), .attrs = collective.op_call.raw_attrs()};
}

LoadedBucket Executor::load(const Step& step, const BucketStep& bucket) const {
  const std::vector<int64_t> ranks = boxing::group_of(bucket.route->steps[0], rank_.rank());
  return {.route = bucket.route.get(),
          .group = &on_device(boxing::communicator_for(rank_, ranks, channel_of(step)),
                              meta_of(step.outputs[0])->device)};
}

LoadedSend Executor::load(const Step&, const SendStep& send) const {
  return {{.peer = send.peer, .tag = send.tag}};
}

LoadedReceive Executor::load(const Step&, const ReceiveStep& receive) const {
  return {{.peer = receive.peer, .tag = receive.tag}};
}

std::shared_ptr<const KernelCall> Executor::kernel_call_here(const Step& step,
                                                             const KernelStep& kernel) const {
  const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return meta_of(id); });
  const auto programs_meta = [&](BufferId id) { return program_.buffer(id).meta; };
  if (kernel.kernel_call != nullptr &&
      (program_.rank == rank_.rank() || metas == kernel_metas(step, programs_meta))) {
    return kernel.kernel_call;
  }
  auto call =
      std::make_shared<const KernelCall>(make_kernel_call(kernel.op_call, metas, kernel_table()));
  FLOW_ASSERT(call->fn != nullptr && metas.outputs == call->outputs, step.name(),
              " gives a memory layout that differs from that of its program");
  return call;
}

void Executor::add_view(BufferId id, LoadedBlock& block) {
  TensorView& view = views_.emplace_back();
  if (id == kNoBuffer) return;
  view.meta = meta_of(id);
  MovingView moving{.view = views_.size() - 1};
  const Buffer* buffer = &program_.buffer(id);
  if (buffer->holders != kNoTable) {
    const size_t num_micro_batches = program_.tables[static_cast<size_t>(buffer->holders)].size();
    for (const BlockRun& run : runs_.runs()) {
      if (&blocks_[static_cast<size_t>(run.block)] != &block) continue;
      moving.metas.resize(num_micro_batches, nullptr);
      moving.metas[static_cast<size_t>(run.micro_batch)] = meta_in(id, run.micro_batch);
    }
  }
  for (; buffer->base != kNoBuffer; buffer = &program_.buffer(buffer->base)) {
    const auto size = static_cast<int64_t>(dtype_size(buffer->meta->dtype));
    moving.offset += buffer->offset * size;
    if (buffer->begins != kNoTable) moving.begins.push_back({buffer->begins, size});
  }
  if (!buffer->meta->is_held) return;
  moving.external = buffer->external;
  moving.frame = buffer->frame;
  const bool moves = moving.frame >= 0 || !moving.begins.empty() || !moving.metas.empty();
  if (buffer->external < 0) {
    if (buffer->arena_offset < 0) return;
    moving.device = view.meta->device;
    moving.offset += buffer->arena_offset;
    in_arena(moving.device).uses.push_back({views_.size() - 1, moving.offset});
  } else if (!moves) {
    externals_[static_cast<size_t>(buffer->external)].uses.push_back(
        {views_.size() - 1, moving.offset});
  }
  if (moves) block.moving.push_back(std::move(moving));
}

boxing::Communicator& Executor::on_device(boxing::Communicator& group, DeviceType device) const {
  return device == DeviceType::kCpu ? group : boxing::device_collectives_for(rank_, group);
}

}  // namespace flow::graph
