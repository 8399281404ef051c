#include "graph/run/executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "boxing/comm/background_work.h"
#include "boxing/ranks/advance.h"
#include "boxing/ranks/fail_ranks.h"
#include "boxing/routed_kernel.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/device/joined_launch.h"
#include "core/device/sanitizer.h"
#include "core/error.h"
#include "core/strided_twin.h"
#include "eager/run_kernel.h"

namespace flow::graph {

namespace {
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
  for (size_t i = 0; i < externals_.size(); ++i) {
    External& external = externals_[i];
    if (!external.meta->is_held) continue;
    others.add(externals[i].impl(), "graph", Site::none());
    std::byte* data = place_of(external, data_of(externals[i], external.is_written));
    if (data == external.data) continue;
    external.data = data;
    for (const Use& use : external.uses)
      views_[use.view].data = data + use.offset;
    unbind_blocks();  // now, because the next one may throw
    if (external.is_used && external.meta->device == DeviceType::kCuda) forget_graphs();
  }
}

void Executor::bind_arena() {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda}) {
    InArena& part = in_arena(device);
    arena_->reserve(rank_, device, part.bytes);
    std::byte* data = arena_->data(device);
    if (data == part.data) continue;
    part.data = data;
    for (const Use& use : part.uses)
      views_[use.view].data = data + use.offset;
    unbind_blocks();
    if (device == DeviceType::kCuda) forget_graphs();
  }
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
  const auto now_ns = [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const bool runs = !is_skipped(step);
  std::optional<timeline::TimelineSpan> span;
  if (runs && timeline_ != nullptr) timeline_->begin_step(index, span);
  const int64_t begin_ns = records_steps_ ? now_ns() : 0;
  if (runs) run_step(step);
  if (records_steps_) step_times_[num_timed_++] = {begin_ns, runs ? now_ns() : begin_ns};
}

bool Executor::is_skipped(const LoadedStep& step) {
  if (step.guard != kNoBuffer && !guard_allows(step)) return true;
  return !takes_turn(step.turn, *run_);
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

namespace {

// The memory of a result holds what a step before has left. Results that a kernel writes over its
// inputs keep it.
[[maybe_unused]] void fill_results(const LoadedStep& step) {
  for (const TensorView& result : step.outputs) {
    const bool is_whole = result.data != nullptr && result.meta->is_held &&
                          result.meta->is_contiguous && result.meta->device == DeviceType::kCpu;
    const auto is_overwritten = [&](const TensorView& input) {
      return input.data != nullptr && input.data < result.data + bytes_spanned(*result.meta) &&
             result.data < input.data + bytes_spanned(*input.meta);
    };
    if (is_whole && std::none_of(step.inputs.begin(), step.inputs.end(), is_overwritten))
      fill_unwritten(result.data, result.meta->local_bytes());
  }
}

}  // namespace

void Executor::run(const LoadedStep& step, const LoadedKernel& kernel) {
  if constexpr (kChecksAddresses) fill_results(step);
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

boxing::Communicator& Executor::pair_with(int64_t peer, DeviceType device) const {
  const std::array<int64_t, 2> ranks = {std::min(rank_.rank(), peer), std::max(rank_.rank(), peer)};
  return on_device(boxing::communicator_for(rank_, ranks), device);
}

void Executor::run(const LoadedStep& step, LoadedSend& send) {
  const TensorView& input = step.inputs[0];
  boxing::Communicator& pair = pair_with(send.peer, input.meta->device);
  note_started(send, pair.isend(input.data, bytes_of(input), 1 - pair.position(), tag_of(send),
                                {.op = "pipeline edge"}));
}

void Executor::run(const LoadedStep& step, LoadedReceive& receive) {
  const TensorView& output = step.outputs[0];
  boxing::Communicator& pair = pair_with(receive.peer, output.meta->device);
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
  pair_with(message.peer, data.meta->device).wait(std::move(pending->transfer));
  message.pending.erase(pending);
}

}  // namespace flow::graph
