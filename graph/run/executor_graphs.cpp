// Runs of a program on a CUDA device as CUDA graphs.
#include <algorithm>
#include <utility>

#include "boxing/ranks/advance.h"
#include "core/context.h"
#include "core/error.h"
#include "graph/run/executor.h"

namespace flow::graph {

namespace {

// Libraries search for algorithms in the first run of a program, and which externals move shows in
// the second.
constexpr int64_t kRunsBeforeCapture = 2;
// A plan whose memory moves more often would be captured again and again.
constexpr int64_t kMostCaptures = 8;

size_t bytes_of(const MetaPtr meta) {
  return static_cast<size_t>(meta->local_bytes());
}

}  // namespace

void Executor::use_cuda_graphs(bool on) {
  if (on == wants_graphs_) return;
  wants_graphs_ = on;
  if (on) return;
  is_captured_ = false;
  no_graphs_because_.clear();
  captured_ = nullptr;
  capture_memory_ = nullptr;
  device_streams_ = {};
}

void Executor::forget_graphs() {
  is_captured_ = false;
  if (captured_ != nullptr) captured_->forget();
}

void Executor::give_up_graphs(std::string reason) {
  use_cuda_graphs(false);
  wants_graphs_ = true;
  no_graphs_because_ = std::move(reason);
}

// The memory of arguments and results differs between runs, that of parameters seldom does.
std::byte* Executor::place_of(External& external, std::byte* data) {
  if (!external.is_used || external.meta->device != DeviceType::kCuda) return data;
  const bool has_moved = external.data != nullptr && external.data != data;
  if (uses_graphs() && !external.copy && has_moved && external.meta->is_contiguous) {
    try {
      external.copy = allocate_storage(rank_, DeviceType::kCuda, bytes_of(external.meta));
    } catch (const OutOfMemory& error) {
      give_up_graphs(error.what());
    }
  }
  if (!uses_graphs()) external.copy = {};
  external.original = data;
  return external.copy ? external.copy->data() : data;
}

void Executor::copy_externals_in() {
  for (const External& external : externals_) {
    if (!external.copy || !external.is_read) continue;
    copy_bytes(rank_, external.copy->data(), DeviceType::kCuda, external.original,
               DeviceType::kCuda, bytes_of(external.meta));
  }
}

void Executor::copy_externals_out() {
  for (const External& external : externals_) {
    if (!external.copy || !external.is_written) continue;
    copy_bytes(rank_, external.original, DeviceType::kCuda, external.copy->data(),
               DeviceType::kCuda, bytes_of(external.meta));
  }
}

bool Executor::prepare_replay() {
  if (!uses_graphs() || records_steps_ || timeline_ != nullptr) return false;
  if (num_runs_ < kRunsBeforeCapture) return false;
  if (!is_captured_) capture_steps();
  if (!is_captured_ || captured_->parts().empty()) return false;
  if (device_streams_) {
    copy_bytes(rank_, device_streams_->data(), DeviceType::kCuda, streams_.data(), DeviceType::kCpu,
               streams_.size() * sizeof(RandomStream));
  }
  return true;
}

void Executor::capture_steps() {
  if (num_captures_ == kMostCaptures) {
    return give_up_graphs(str("memory that they use has moved ", kMostCaptures - 1, " times"));
  }
  ++num_captures_;
  try {
    if (captured_ == nullptr) captured_ = std::make_unique<CapturedSteps>(program_, runs_, steps_);
    if (capture_memory_ == nullptr) capture_memory_ = arena_->capture_memory();
    if (captured_->draws() && !device_streams_) {
      device_streams_ =
          allocate_storage(rank_, DeviceType::kCuda, streams_.size() * sizeof(RandomStream));
    }
    captured_->capture(rank_, capture_memory_,
                       [this](const ScheduledStep& at) { capture_step(at); });
    is_captured_ = true;
  } catch (const OutOfMemory& error) {
    give_up_graphs(error.what());
  }
}

void Executor::enter_run(size_t index) {
  run_ = &runs_.runs()[index];
  bind_block(blocks_[static_cast<size_t>(run_->block)], run_->micro_batch);
}

void Executor::capture_step(const ScheduledStep& at) {
  enter_run(at.run);
  const LoadedStep& step = steps_[at.step];
  const LoadedKernel& kernel = step.kernels.empty()
                                   ? std::get<LoadedKernel>(step.body)
                                   : step.kernels[static_cast<size_t>(run_->micro_batch)];
  const KernelContext context{step.inputs,       step.outputs, kernel.attrs, kernel.state.get(),
                              stream_of(kernel), rank_,        step.site};
  if (kernel.draw < 0) return kernel.fn(context);
  const auto* streams = reinterpret_cast<const RandomStream*>(device_streams_->data());
  const CapturedDraw draw(streams + kernel.draw);
  kernel.fn(context);
  if (!draw.was_used()) throw Error("its random numbers come from the host");
}

void Executor::replay() {
  const std::span<const ScheduledStep> order = captured_->order();
  size_t next = 0;
  const auto run_to = [&](size_t end) {
    for (; next < end; ++next) {
      enter_run(order[next].run);
      run_step(steps_[order[next].step]);
    }
  };
  for (const CapturedSteps::Part& part : captured_->parts()) {
    run_to(part.begin);
    launch(part);
    next = part.end;
  }
  run_to(order.size());
}

void Executor::launch(const CapturedSteps::Part& part) {
  const ScheduledStep& first = captured_->order()[part.begin];
  const LoadedStep& step = steps_[first.step];
  try {
    if (step.guard != kNoBuffer) {
      enter_run(first.run);
      if (!guard_allows(step)) return;
    }
    if (num_messages_ > 0) boxing::advance_messages(rank_);
    part.graph.launch(rank_);
  } catch (Error& error) {
    error.add_place(step.site, step.module_path);
    throw;
  }
}

std::string Executor::cuda_graphs_summary() const {
  if (!wants_graphs_) return {};
  if (!no_graphs_because_.empty()) return str("CUDA graphs: none: ", no_graphs_because_, "\n");
  if (captured_ == nullptr) {
    return str("CUDA graphs: they are captured at run ", kRunsBeforeCapture + 1, " of the plan\n");
  }
  std::string text = captured_->summary();
  int64_t num_copies = 0, copied_bytes = 0;
  for (const External& external : externals_) {
    if (!external.copy) continue;
    ++num_copies;
    copied_bytes += static_cast<int64_t>(bytes_of(external.meta));
  }
  return text + str("  memory of the graphs: ", capture_memory_->bytes(), " bytes, and copies of ",
                    num_copies,
                    " inputs and results whose memory moves between runs: ", copied_bytes,
                    " bytes\n");
}

std::string Executor::cuda_graphs_explanation() const {
  std::string text = cuda_graphs_summary();
  if (uses_graphs() && captured_ != nullptr) text += captured_->explain();
  return text;
}

}  // namespace flow::graph
