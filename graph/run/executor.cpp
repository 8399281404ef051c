#include "graph/run/executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "boxing/comm/background_work.h"
#include "boxing/comm/device_collectives.h"
#include "boxing/ranks/advance.h"
#include "boxing/ranks/fail_ranks.h"
#include "boxing/routed_kernel.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/device/joined_launch.h"
#include "core/error.h"
#include "core/strided_twin.h"
#include "eager/run_kernel.h"
#include "eager/runtime.h"
#include "graph/ir/place.h"
#include "graph/program/kernel_binding.h"
#include "graph/program/program_classes.h"

namespace flow::graph {

namespace {
boxing::Channel channel_of(const Step& step) {
  return step.in_background ? boxing::Channel::kBackground : boxing::Channel::kCaller;
}

// The communicator for data on `device`.
boxing::Communicator& on_device(RankContext& rank, boxing::Communicator& group, DeviceType device) {
  return device == DeviceType::kCpu ? group : boxing::device_collectives_for(rank, group);
}

// An edge has a group of its two ranks, in ascending order.
boxing::Communicator& pair_with(RankContext& rank, int64_t peer, DeviceType device) {
  const std::array<int64_t, 2> ranks = {std::min(rank.rank(), peer), std::max(rank.rank(), peer)};
  return on_device(rank, boxing::communicator_for(rank, ranks), device);
}

// The messages that a step starts; null if it starts none.
LoadedMessage* message_of(LoadedStep& step) {
  if (auto* send = std::get_if<LoadedSend>(&step.body)) return send;
  return std::get_if<LoadedReceive>(&step.body);
}

int64_t bytes_of(const TensorView& view) {
  return static_cast<int64_t>(view.meta->local_bytes());
}

// Adds the seconds of its lifetime to a total.
class AddSeconds {
 public:
  explicit AddSeconds(double& sum) : sum_(sum) {}

  ~AddSeconds() { sum_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }

  AddSeconds(const AddSeconds&) = delete;
  AddSeconds& operator=(const AddSeconds&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  double& sum_;
  Clock::time_point begin_ = Clock::now();
};
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
          .group = &on_device(rank_, boxing::communicator_for(rank_, ranks, channel_of(step)),
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

void Executor::bind_block(LoadedBlock& block, int32_t micro_batch) {
  if (block.moving.empty() || block.bound_to == micro_batch) return;
  block.bound_to = micro_batch;
  const auto index = static_cast<size_t>(micro_batch);
  for (const MovingView& moving : block.moving) {
    TensorView& view = views_[moving.view];
    if (!moving.metas.empty()) view.meta = moving.metas[index];
    const std::byte* place = moving.external < 0
                                 ? in_arena(moving.device).data
                                 : externals_[static_cast<size_t>(moving.external)].data;
    int64_t offset = moving.offset;
    if (moving.frame >= 0)
      offset += program_.frames[static_cast<size_t>(moving.frame)].arena_offsets[index];
    for (const MovingView::Begin& begin : moving.begins)
      offset += program_.number(begin.table, micro_batch) * begin.scale;
    view.data = const_cast<std::byte*>(place) + offset;
  }
}

namespace {

// Returns the memory of a tensor that a program works on. A program reads strided forms, and what
// it writes becomes strided.
std::byte* data_of(const Tensor& tensor, bool is_written) {
  TensorImpl& impl = tensor.impl();
  if (is_written) make_writable(impl);
  return impl.meta->blocked == nullptr ? impl.data() : strided_twin(impl)->data();
}

}  // namespace

void Executor::bind(std::span<const Tensor> externals, OthersMemory& others) {
  FLOW_ASSERT(externals.size() == externals_.size(), "the program has ", externals_.size(),
              " externals, ", externals.size(), " are given");
  for (size_t i = 0; i < externals_.size(); ++i) {
    const MetaPtr wanted = externals_[i].meta;
    if (!wanted->is_held) continue;
    const MetaPtr meta = externals[i].meta_ptr();
    if (meta == wanted || (meta->blocked != nullptr && with_blocked(meta, nullptr) == wanted)) {
      continue;
    }
    throw InvalidArgument(
        str("[graph] a tensor differs from the one that the step was compiled for; received ",
            *meta, ", expected ", *wanted, "; compile the step for this tensor"));
  }
  bool has_moved = false;
  for (size_t i = 0; i < externals_.size(); ++i) {
    External& external = externals_[i];
    if (!external.meta->is_held) continue;
    others.add(externals[i].impl(), "graph", Site::none());
    std::byte* data = place_of(external, data_of(externals[i], external.is_written));
    if (data == external.data) continue;
    external.data = data;
    for (const Use& use : external.uses)
      views_[use.view].data = data + use.offset;
    has_moved = true;
    if (external.is_used && external.meta->device == DeviceType::kCuda) forget_graphs();
  }
  if (has_moved) unbind_blocks();
}

void Executor::bind_arena() {
  bool has_moved = false;
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
    InArena& part = in_arena(device);
    arena_->reserve(rank_, device, part.bytes);
    std::byte* data = arena_->data(device);
    if (data == part.data) continue;
    part.data = data;
    for (const Use& use : part.uses)
      views_[use.view].data = data + use.offset;
    has_moved = true;
    if (device == DeviceType::kCuda) forget_graphs();
  }
  if (has_moved) unbind_blocks();
}

void Executor::unbind_blocks() {
  for (LoadedBlock& block : blocks_)
    block.bound_to = kNoMicroBatch;
}

void Executor::run(std::span<const Tensor> externals) {
  drawn_before_ = rank_.generator().state();
  is_running_ = true;
  bind_arena();
  OthersMemory others(rank_);
  bind(externals, others);
  times_ = {};
  read_guard_ = kNoBuffer;
  num_messages_ = 0;
  const AddSeconds timed(times_.total);
  for (RandomStream& stream : streams_)
    stream = rank_.generator().next();
  num_timed_ = 0;
  if (timeline_) timeline_->begin_run();
  const bool replays = prepare_replay();
  copy_externals_in();
  const cuda::JoinLaunches joins;
  if (replays) {
    replay();
  } else {
    run_blocks();
  }
  cuda::queue_joined();
  copy_externals_out();
  ++num_runs_;
  if (timeline_) timeline_->end_run();
  is_running_ = false;
}

void Executor::run_blocks() {
  for (const BlockRun& run : runs_.runs()) {
    run_ = &run;
    if (timeline_) timeline_->begin_block_run(static_cast<size_t>(&run - runs_.runs().data()));
    run_block(blocks_[static_cast<size_t>(run.block)]);
  }
}

void Executor::run_block(LoadedBlock& block) {
  bind_block(block, run_->micro_batch);
  for (size_t i = block.first_step; i < block.end_step; ++i) {
    if (records_steps_ || timeline_ != nullptr) {
      run_timed(i);
    } else {
      run_step(steps_[i]);
    }
  }
}

void Executor::cancel_run() {
  if (!is_running_) return;
  is_running_ = false;
  if (timeline_) timeline_->end_run();
  for (LoadedStep& step : steps_) {
    if (LoadedMessage* message = message_of(step)) message->pending.clear();
    step.work.discard();  // its error is that of the run
  }
  rank_.generator().set_state(drawn_before_);
}

void Executor::record_steps(bool on) {
  records_steps_ = on;
  size_t num_steps = 0;
  for (const BlockRun& run : runs_.runs())
    num_steps += runs_.block_of(run).end_step - runs_.block_of(run).first_step;
  step_times_.resize(on ? num_steps : 0);
}

void Executor::run_timed(size_t index) {
  LoadedStep& step = steps_[index];
  std::optional<timeline::TimelineSpan> span;
  if (timeline_ != nullptr) timeline_->begin_step(index, span);
  if (!records_steps_) return run_step(step);
  const auto now_ns = [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  StepTime& time = step_times_[num_timed_++];
  time.begin_ns = now_ns();
  run_step(step);
  time.end_ns = now_ns();
}

bool Executor::guard_allows(const LoadedStep& step) {
  if (step.guard != read_guard_) {
    const TensorView& guard = *step.guard_view;
    copy_bytes(rank_, &is_open_, DeviceType::kCpu, guard.data, guard.meta->device, 1);
    read_guard_ = step.guard;
  }
  return is_open_ != std::byte{0};
}

// Errors of a step have the place of the op that was traced.
void Executor::run_step(LoadedStep& step) {
  try {
    run_body(step);
  } catch (Error& error) {
    error.add_place(step.site, step.module_path);
    throw;
  }
}

void Executor::run_body(LoadedStep& step) {
  if (step.guard != kNoBuffer && !guard_allows(step)) return;
  if (step.depends_on_run) {
    if (!takes_turn(step.turn, *run_)) return;
    if (step.in_background) return start(step);
    if (!step.kernels.empty())
      return run(step, step.kernels[static_cast<size_t>(run_->micro_batch)]);
  }
  // Nearly all steps are kernels. Asking for them first saves the jump of the visit, about 2 ns.
  if (const auto* kernel = std::get_if<LoadedKernel>(&step.body)) return run(step, *kernel);
  std::visit([&](auto& body) { run(step, body); }, step.body);
}

void Executor::start(LoadedStep& step) {
  const TensorView& data = step.outputs.empty() ? step.inputs[0] : step.outputs[0];
  step.work =
      boxing::BackgroundWork(rank_, data.meta->device, [&, in_run = boxing::running_step_here()] {
        std::optional<boxing::StepScope> scope;
        if (in_run != nullptr) scope.emplace(*in_run);
        try {
          if (const auto* bucket = std::get_if<LoadedBucket>(&step.body)) return run(step, *bucket);
          const auto& kernel = std::get<LoadedKernel>(step.body);
          kernel.fn(
              {step.inputs, step.outputs, kernel.attrs, kernel.state.get(), {}, rank_, step.site});
        } catch (Error& error) {
          // At once: before it waits for the step, this rank may wait for one that waits for it.
          error.add_place(step.site, step.module_path);
          boxing::fail_ranks(rank_, error.what());
          throw;
        }
      });
}

void Executor::run(const LoadedStep& step, const LoadedKernel& kernel) {
  if (num_messages_ > 0) boxing::advance_messages(rank_);
  const RandomStream random = stream_of(kernel);
  if (!kernel.numbers.empty()) return run_with_numbers(step, kernel, random);
  eager::run_kernel(
      kernel.fn,
      {step.inputs, step.outputs, kernel.attrs, kernel.state.get(), random, rank_, step.site},
      step.module_path);
}

RandomStream Executor::stream_of(const LoadedKernel& kernel) const {
  if (kernel.draw < 0) return {};
  RandomStream random = streams_[static_cast<size_t>(kernel.draw)];
  if (!kernel.draws_globally) random.rank = static_cast<uint64_t>(rank_.rank());
  return random;
}

void Executor::run_with_numbers(const LoadedStep& step, const LoadedKernel& kernel,
                                const RandomStream& random) {
  std::vector<TensorView> inputs(step.inputs.begin(), step.inputs.end());
  for (const MovedNumber& number : kernel.numbers) {
    TensorView& input = inputs[number.input];
    copy_bytes(rank_, number.there.data, number.there.meta->device, input.data, input.meta->device,
               number.there.meta->local_bytes());
    input = number.there;
  }
  eager::run_kernel(
      kernel.fn, {inputs, step.outputs, kernel.attrs, kernel.state.get(), random, rank_, step.site},
      step.module_path);
}

void Executor::run(const LoadedStep& step, const LoadedBucket& bucket) {
  const boxing::Route& route = *bucket.route;
  std::vector<boxing::Communicator::SourcePart> parts;
  for (const TensorView& input : step.inputs)
    parts.push_back({input.data, input.meta->local_numel});
  const auto begin = std::chrono::steady_clock::now();
  bucket.group->all_reduce_parts(parts, step.outputs[0].data, route.dtype,
                                 boxing::source_op(route.steps[0]),
                                 {.op = "redistribute",
                                  .shape = route.shape,
                                  .dtype = route.dtype,
                                  .from = route.from,
                                  .to = route.to,
                                  .site = step.site});
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  rank_.slot<boxing::TransferLog>().add(user_site(step.site), route, took.count());
}

void Executor::run(const LoadedStep& step, const ConvertStep&) {
  const BlockedLayout& layout = *step.inputs[0].meta->blocked;
  layout.to_strided(layout, step.inputs[0].data, step.outputs[0].data);
}

void Executor::run(const LoadedStep& step, LoadedSend& send) {
  const TensorView& input = step.inputs[0];
  boxing::Communicator& pair = pair_with(rank_, send.peer, input.meta->device);
  note_started(send, pair.isend(input.data, bytes_of(input), 1 - pair.position(), tag_of(send),
                                {.op = "pipeline edge"}));
}

void Executor::run(const LoadedStep& step, LoadedReceive& receive) {
  const TensorView& output = step.outputs[0];
  boxing::Communicator& pair = pair_with(rank_, receive.peer, output.meta->device);
  note_started(receive, pair.irecv(output.data, bytes_of(output), 1 - pair.position(),
                                   tag_of(receive), {.op = "pipeline edge"}));
}

void Executor::note_started(LoadedMessage& message, boxing::Transfer transfer) {
  num_messages_ += transfer != nullptr ? 1 : 0;
  message.pending.push_back({run_->micro_batch, std::move(transfer)});
}

void Executor::run(const LoadedStep&, const WaitStep& wait) {
  const AddSeconds timed(times_.waiting);
  LoadedStep& started = steps_[wait.started];
  if (started.in_background) return started.work.wait();
  LoadedMessage& message = *message_of(started);
  const TensorView& data = started.outputs.empty() ? started.inputs[0] : started.outputs[0];
  const auto pending =
      std::find_if(message.pending.begin(), message.pending.end(),
                   [&](const PendingMessage& it) { return it.micro_batch == run_->micro_batch; });
  FLOW_ASSERT(pending != message.pending.end(), "a wait for a message that has not begun");
  num_messages_ -= pending->transfer != nullptr ? 1 : 0;
  pair_with(rank_, message.peer, data.meta->device).wait(std::move(pending->transfer));
  message.pending.erase(pending);
}

}  // namespace flow::graph
