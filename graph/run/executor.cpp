#include "graph/run/executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "boxing/ranks/advance.h"
#include "boxing/routed_kernel.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "core/strided_twin.h"
#include "eager/run_kernel.h"
#include "eager/runtime.h"
#include "graph/program/kernel_binding.h"
#include "graph/program/program_classes.h"

namespace flow::graph {

namespace {
// An edge has a group of its two ranks, in ascending order.
boxing::Communicator& pair_with(RankContext& rank, int64_t peer) {
  const std::array<int64_t, 2> ranks = {std::min(rank.rank(), peer), std::max(rank.rank(), peer)};
  return boxing::communicator_for(rank, ranks);
}

int64_t bytes_of(const TensorView& view) {
  return static_cast<int64_t>(view.meta->local_bytes());
}

// File names of call sites. Reports keep them longer than a program lives.
const char* intern_file(const std::string& file) {
  static std::mutex mutex;
  static auto& files = *new std::set<std::string>;  // outlives static objects
  const std::lock_guard lock(mutex);
  return files.insert(file).first->c_str();
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

Executor::Executor(const Program& program) : program_(program), rank_(*thread_state().context) {
  load_metas();
  const auto lies_in_arena_on = [&](DeviceType device) {
    return std::any_of(program.buffers.begin(), program.buffers.end(), [&](const Buffer& buffer) {
      return buffer.arena_offset >= 0 && buffer.meta->device == device;
    });
  };
  const auto arena_bytes = static_cast<size_t>(program.arena_bytes);
  if (lies_in_arena_on(DeviceType::kCuda)) {
    device_arena_ = allocate_storage(rank_, DeviceType::kCuda, arena_bytes);
  }
  const bool uses_host = !device_arena_ || lies_in_arena_on(DeviceType::kCpu);
  arena_ = Storage::allocate(rank_.allocator(), uses_host ? arena_bytes : 0);
  load_externals();
  load_steps();
  streams_.resize(static_cast<size_t>(program.num_draws));
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
  for (const Step& step : program_.steps) {
    for (BufferId id : step.outputs) {
      while (program_.buffer(id).base != kNoBuffer)
        id = program_.buffer(id).base;
      const int32_t external = program_.buffer(id).external;
      if (external >= 0) externals_[static_cast<size_t>(external)].is_written = true;
    }
  }
}

void Executor::load_steps() {
  size_t num_views = 0;
  for (const Step& step : program_.steps)
    num_views += step.inputs.size() + step.outputs.size() + (step.guard != kNoBuffer ? 1 : 0);
  views_.reserve(num_views);  // steps point at views
  steps_.reserve(program_.steps.size());
  for (const Step& step : program_.steps) {
    LoadedStep& loaded = steps_.emplace_back();
    const TensorView* first = views_.data() + views_.size();
    for (const BufferId id : step.inputs)
      add_view(id);
    for (const BufferId id : step.outputs)
      add_view(id);
    loaded.inputs = {first, step.inputs.size()};
    loaded.outputs = {first + step.inputs.size(), step.outputs.size()};
    if (step.guard != kNoBuffer) {
      add_view(step.guard);
      loaded.guard = step.guard;
      loaded.guard_view = &views_.back();
    }
    if (step.line != 0) loaded.site = Site::here(intern_file(step.file), step.line);
    std::visit([&](const auto& body) { loaded.body = load(step, body); }, step.body);
  }
}

LoadedKernel Executor::load(const Step& step, const KernelStep& kernel) const {
  const std::shared_ptr<const KernelCall> call = kernel_call_here(step, kernel);
  LoadedKernel loaded{.fn = call->fn,
                      .state = call->state,
                      .attrs = kernel.op_call.raw_attrs(),
                      .draw = kernel.draw,
                      .draws_globally = kernel.draws_globally};
  for (size_t i = 0; i < call->forms.size(); ++i) {
    if (call->forms[i] != InputForm::kOnDevice) continue;
    const MetaPtr there = call->inputs[i];
    Ref<Storage> memory = allocate_storage(rank_, there->device, there->local_bytes());
    std::byte* data = memory->data();
    loaded.numbers.push_back({i, {data, there}, std::move(memory)});
  }
  return loaded;
}

LoadedKernel Executor::load(const Step& step, const CollectiveStep& collective) const {
  const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return meta_of(id); });
  KernelChoice choice = boxing::bind_route(metas.query(collective.op_call), *collective.route);
  return {
      .fn = choice.fn, .state = std::move(choice.state), .attrs = collective.op_call.raw_attrs()};
}

LoadedSend Executor::load(const Step&, const SendStep& send) const {
  return {.peer = send.peer, .tag = send.tag};
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

void Executor::add_view(BufferId id) {
  TensorView& view = views_.emplace_back();
  if (id == kNoBuffer) return;
  const Buffer* buffer = &program_.buffers[static_cast<size_t>(id)];
  view.meta = meta_of(id);
  int64_t offset = 0;
  while (buffer->base != kNoBuffer) {
    offset += buffer->offset * static_cast<int64_t>(dtype_size(buffer->meta->dtype));
    buffer = &program_.buffers[static_cast<size_t>(buffer->base)];
  }
  if (!buffer->meta->is_held) return;
  if (buffer->external >= 0) {
    externals_[static_cast<size_t>(buffer->external)].uses.push_back({views_.size() - 1, offset});
  } else if (buffer->arena_offset >= 0) {
    const Ref<Storage>& arena = view.meta->device == DeviceType::kCpu ? arena_ : device_arena_;
    view.data = arena->data() + buffer->arena_offset + offset;
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

void Executor::bind(std::span<const Tensor> externals) {
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
    std::byte* data = data_of(externals[i], external.is_written);
    if (data == external.data) continue;
    external.data = data;
    for (const Use& use : external.uses)
      views_[use.view].data = data + use.offset;
  }
}

void Executor::run(std::span<const Tensor> externals) {
  drawn_before_ = rank_.generator().state();
  is_running_ = true;
  bind(externals);
  times_ = {};
  read_guard_ = kNoBuffer;
  num_sends_ = 0;
  const AddSeconds timed(times_.total);
  for (RandomStream& stream : streams_)
    stream = rank_.generator().next();
  size_t step = 0;
  if (records_steps_) {
    for (; step < steps_.size(); ++step)
      run_timed(step);
  }
  for (; step < steps_.size(); ++step)
    run_step(steps_[step]);
  is_running_ = false;
}

void Executor::cancel_run() {
  if (!is_running_) return;
  is_running_ = false;
  for (LoadedStep& step : steps_) {
    auto* send = std::get_if<LoadedSend>(&step.body);
    if (send == nullptr) continue;
    send->transfer = {};
    send->sent = {};
  }
  rank_.generator().set_state(drawn_before_);
}

void Executor::record_steps(bool on) {
  records_steps_ = on;
  step_times_.resize(on ? program_.steps.size() : 0);
}

void Executor::run_timed(size_t index) {
  const auto now_ns = [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  step_times_[index].begin_ns = now_ns();
  run_step(steps_[index]);
  step_times_[index].end_ns = now_ns();
}

bool Executor::guard_allows(const LoadedStep& step) {
  if (step.guard != read_guard_) {
    const TensorView& guard = *step.guard_view;
    copy_bytes(rank_, &is_open_, DeviceType::kCpu, guard.data, guard.meta->device, 1);
    read_guard_ = step.guard;
  }
  return is_open_ != std::byte{0};
}

void Executor::run_step(LoadedStep& step) {
  if (step.guard != kNoBuffer && !guard_allows(step)) return;
  // Nearly all steps are kernels. Asking for them first saves the jump of the visit, about 2 ns.
  if (const auto* kernel = std::get_if<LoadedKernel>(&step.body)) return run(step, *kernel);
  std::visit([&](auto& body) { run(step, body); }, step.body);
}

void Executor::run(const LoadedStep& step, const LoadedKernel& kernel) {
  if (num_sends_ > 0) boxing::advance_messages(rank_);
  RandomStream random;
  if (kernel.draw >= 0) {
    random = streams_[static_cast<size_t>(kernel.draw)];
    if (!kernel.draws_globally) random.rank = static_cast<uint64_t>(rank_.rank());
  }
  if (!kernel.numbers.empty()) return run_with_numbers(step, kernel, random);
  eager::run_kernel(kernel.fn, {step.inputs, step.outputs, kernel.attrs, kernel.state.get(), random,
                                rank_, step.site});
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
  eager::run_kernel(kernel.fn, {inputs, step.outputs, kernel.attrs, kernel.state.get(), random,
                                rank_, step.site});
}

void Executor::run(const LoadedStep& step, const ConvertStep&) {
  const BlockedLayout& layout = *step.inputs[0].meta->blocked;
  layout.to_strided(layout, step.inputs[0].data, step.outputs[0].data);
}

void Executor::run(const LoadedStep& step, LoadedSend& send) {
  const TensorView& input = step.inputs[0];
  boxing::Communicator& pair = pair_with(rank_, send.peer);
  const std::byte* data = input.data;
  if (input.meta->device != DeviceType::kCpu) {
    send.sent = host_copy(rank_, input);
    data = send.sent->data();
  }
  send.transfer =
      pair.isend(data, bytes_of(input), 1 - pair.position(), send.tag, {.op = "pipeline edge"});
  num_sends_ += send.transfer != nullptr ? 1 : 0;
}

void Executor::run(const LoadedStep& step, const ReceiveStep& receive) {
  const AddSeconds timed(times_.waiting);
  const TensorView& output = step.outputs[0];
  boxing::Communicator& pair = pair_with(rank_, receive.peer);
  const DeviceType device = output.meta->device;
  const auto bytes = static_cast<size_t>(bytes_of(output));
  const bool is_on_host = device == DeviceType::kCpu;
  const Ref<Storage> host = is_on_host ? Ref<Storage>() : allocate_staging(rank_, bytes);
  std::byte* data = is_on_host ? output.data : host->data();
  pair.recv(data, bytes_of(output), 1 - pair.position(), receive.tag, {.op = "pipeline edge"});
  if (!is_on_host) copy_bytes(rank_, output.data, device, data, DeviceType::kCpu, bytes);
}

void Executor::run(const LoadedStep&, const WaitStep& wait) {
  const AddSeconds timed(times_.waiting);
  LoadedSend& send = std::get<LoadedSend>(steps_[wait.send].body);
  boxing::Communicator& pair = pair_with(rank_, send.peer);
  num_sends_ -= send.transfer != nullptr ? 1 : 0;
  pair.wait(std::move(send.transfer));
  send.sent = {};
}

}  // namespace flow::graph
