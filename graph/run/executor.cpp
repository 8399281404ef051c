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
  for (const BufferId id : program.externals)
    externals_.push_back({.meta = meta_of(id)});
  find_written_externals();
  for (const Step& step : program.steps) {
    load_kernel(step);
    first_view_.push_back(views_.size());
    for (const BufferId id : step.inputs)
      add_view(id);
    for (const BufferId id : step.outputs)
      add_view(id);
    if (step.guard != kNoBuffer) add_view(step.guard);
    sites_.push_back(step.line == 0 ? Site::none() : Site::here(intern_file(step.file), step.line));
  }
  streams_.resize(static_cast<size_t>(program.num_draws));
  sends_.resize(program.steps.size());
  sent_.resize(program.steps.size());
  const bool uses_devices = std::any_of(
      metas_.begin(), metas_.end(), [](MetaPtr meta) { return meta->device != DeviceType::kCpu; });
  if (!uses_devices) return;
  numbers_.resize(program.steps.size());
  for (size_t step = 0; step < program.steps.size(); ++step)
    add_moved_numbers(step);
}

void Executor::add_moved_numbers(size_t step) {
  if (calls_[step] == nullptr || !calls_[step]->moves_numbers) return;
  const KernelCall& call = *calls_[step];
  for (size_t i = 0; i < call.forms.size(); ++i) {
    if (call.forms[i] != InputForm::kOnDevice) continue;
    const MetaPtr there = call.inputs[i];
    Ref<Storage> memory = allocate_storage(rank_, there->device, there->local_bytes());
    std::byte* data = memory->data();
    numbers_[step].push_back({first_view_[step] + i, {data, there}, std::move(memory)});
  }
}

void Executor::run_with_numbers(size_t step, const KernelContext& context) {
  std::vector<TensorView> inputs(context.inputs.begin(), context.inputs.end());
  for (const MovedNumber& number : numbers_[step]) {
    TensorView& input = inputs[number.view - first_view_[step]];
    copy_bytes(rank_, number.there.data, number.there.meta->device, input.data, input.meta->device,
               number.there.meta->local_bytes());
    input = number.there;
  }
  eager::run_kernel(kernels_[step].fn, {inputs, context.outputs, context.attrs, context.state,
                                        context.random, context.rank, context.site});
}

void Executor::load_metas() {
  for (const Buffer& buffer : program_.buffers) {
    metas_.push_back(program_.rank == rank_.rank() ? buffer.meta
                                                   : local_meta_on(buffer.meta, rank_.rank()));
    FLOW_ASSERT(metas_.back() != nullptr, "a program of rank ", program_.rank,
                " does not fit rank ", rank_.rank());
  }
}

void Executor::load_kernel(const Step& step) {
  calls_.push_back(step.kind == StepKind::kKernel ? kernel_call_here(step) : nullptr);
  Kernel& kernel = kernels_.emplace_back();
  if (calls_.back() != nullptr) kernel = {calls_.back()->fn, calls_.back()->state.get()};
}

// Returns the program's kernel call if the step's metas are the same on this rank, otherwise a call
// decided for this rank.
std::shared_ptr<const KernelCall> Executor::kernel_call_here(const Step& step) const {
  const KernelMetas metas = kernel_metas(step, [&](BufferId id) { return meta_of(id); });
  const auto programs_meta = [&](BufferId id) {
    return program_.buffers[static_cast<size_t>(id)].meta;
  };
  const bool is_bound = step.call != nullptr && step.call->fn != nullptr;
  if (is_bound && (program_.rank == rank_.rank() || metas == kernel_metas(step, programs_meta))) {
    return step.call;
  }
  auto call = std::make_shared<KernelCall>();
  if (step.route && metas.plain_outputs[0]->device == DeviceType::kCpu) {
    KernelChoice choice = boxing::bind_route(metas.query(step), *step.route);
    call->fn = choice.fn;
    call->state = std::move(choice.state);
    call->outputs = choice.outputs.empty() ? metas.plain_outputs : std::move(choice.outputs);
  } else {
    *call = make_kernel_call(step, metas, kernel_table());
  }
  FLOW_ASSERT(call->fn != nullptr && metas.outputs == call->outputs, step.op->name,
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

void Executor::find_written_externals() {
  for (const Step& step : program_.steps) {
    for (BufferId id : step.outputs) {
      while (program_.buffers[static_cast<size_t>(id)].base != kNoBuffer)
        id = program_.buffers[static_cast<size_t>(id)].base;
      const int32_t external = program_.buffers[static_cast<size_t>(id)].external;
      if (external >= 0) externals_[static_cast<size_t>(external)].is_written = true;
    }
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
  bind(externals);
  times_ = {};
  read_guard_ = kNoBuffer;
  num_sends_ = 0;
  const AddSeconds timed(times_.total);
  for (RandomStream& stream : streams_)
    stream = rank_.generator().next();
  size_t step = 0;
  if (records_steps_) {
    for (; step < program_.steps.size(); ++step)
      run_timed(step);
  }
  for (; step < program_.steps.size(); ++step)
    run_step(step);
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
  run_step(index);
  step_times_[index].end_ns = now_ns();
}

bool Executor::guard_allows(size_t index) {
  const Step& step = program_.steps[index];
  if (step.guard != read_guard_) {
    const TensorView& guard = views_[first_view_[index] + step.inputs.size() + step.outputs.size()];
    copy_bytes(rank_, &is_open_, DeviceType::kCpu, guard.data, guard.meta->device, 1);
    read_guard_ = step.guard;
  }
  return is_open_ != std::byte{0};
}

void Executor::run_step(size_t index) {
  const Step& step = program_.steps[index];
  const std::span<const TensorView> inputs(views_.data() + first_view_[index], step.inputs.size());
  const std::span<const TensorView> outputs(inputs.data() + inputs.size(), step.outputs.size());
  if (step.guard != kNoBuffer && !guard_allows(index)) return;
  switch (step.kind) {
    case StepKind::kKernel: {
      if (num_sends_ > 0) boxing::advance_messages(rank_);
      RandomStream random;
      if (step.draw >= 0) {
        random = streams_[static_cast<size_t>(step.draw)];
        if (!step.draws_globally) random.rank = static_cast<uint64_t>(rank_.rank());
      }
      const Kernel& kernel = kernels_[index];
      const KernelContext context{inputs, outputs, step.raw_attrs(), kernel.state,
                                  random, rank_,   sites_[index]};
      if (!numbers_.empty() && !numbers_[index].empty()) return run_with_numbers(index, context);
      eager::run_kernel(kernel.fn, context);
      return;
    }
    case StepKind::kToStrided: {
      const BlockedLayout& layout = *inputs[0].meta->blocked;
      layout.to_strided(layout, inputs[0].data, outputs[0].data);
      return;
    }
    case StepKind::kSend: {
      boxing::Communicator& pair = pair_with(rank_, step.peer);
      const std::byte* data = inputs[0].data;
      if (inputs[0].meta->device != DeviceType::kCpu) {
        sent_[index] = host_copy(rank_, inputs[0]);
        data = sent_[index]->data();
      }
      sends_[index] = pair.isend(data, bytes_of(inputs[0]), 1 - pair.position(), step.tag,
                                 {.op = "pipeline edge"});
      num_sends_ += sends_[index] != nullptr ? 1 : 0;
      return;
    }
    case StepKind::kRecv: {
      const AddSeconds timed(times_.waiting);
      boxing::Communicator& pair = pair_with(rank_, step.peer);
      const DeviceType device = outputs[0].meta->device;
      const auto bytes = static_cast<size_t>(bytes_of(outputs[0]));
      const bool is_on_host = device == DeviceType::kCpu;
      const Ref<Storage> host = is_on_host ? Ref<Storage>() : allocate_staging(rank_, bytes);
      std::byte* data = is_on_host ? outputs[0].data : host->data();
      pair.recv(data, bytes_of(outputs[0]), 1 - pair.position(), step.tag, {.op = "pipeline edge"});
      if (!is_on_host) {
        copy_bytes(rank_, outputs[0].data, device, data, DeviceType::kCpu, bytes);
      }
      return;
    }
    case StepKind::kWait: {
      const AddSeconds timed(times_.waiting);
      const auto send = static_cast<size_t>(step.peer);
      boxing::Communicator& pair = pair_with(rank_, program_.steps[send].peer);
      num_sends_ -= sends_[send] != nullptr ? 1 : 0;
      pair.wait(std::move(sends_[send]));
      sent_[send] = {};
      return;
    }
  }
}

}  // namespace flow::graph
