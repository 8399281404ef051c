// Runs programs. Pointers are resolved and the arena is allocated once; a run makes no decisions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "boxing/comm/communicator.h"
#include "core/tensor.h"
#include "graph/program/program.h"

namespace flow::graph {

// The seconds that a run took, and for how many of them it waited for messages from and to other
// ranks.
struct RunTimes {
  double total = 0;
  double waiting = 0;
};

// When a step ran, in nanoseconds of the steady clock.
struct StepTime {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// Runs one program on the calling thread's rank. Not thread safe.
class Executor {
 public:
  // `program` must outlive the executor. The calling thread's rank must be the program's or in the
  // same class. Makes the kernels that the program lacks.
  explicit Executor(const Program& program);

  // externals[i] is the memory of program.externals[i]. It has the same local layout and is written
  // where the program writes. Ranks outside a tensor's placement pass a tensor without data. Throws
  // InvalidArgument, before anything runs, if a tensor differs from the one that the program was
  // compiled for.
  void run(std::span<const Tensor> externals);

  const RunTimes& last_run() const { return times_; }

  // Turns the recording of step times on or off; it reads the clock twice a step. Off at first.
  void record_steps(bool on);

  // The times of the last recorded run, by step.
  std::span<const StepTime> last_steps() const { return step_times_; }

 private:
  // Where a step reads or writes an external: a view of the step and how far into the memory it
  // begins.
  struct Use {
    size_t view;
    int64_t offset;  // bytes
  };

  struct External {
    MetaPtr meta = nullptr;
    const std::byte* data = nullptr;  // of the last run
    bool is_written = false;
    std::vector<Use> uses = {};
  };

  // A tensor without dims in host memory that a step on a device reads. The step gets a copy.
  struct MovedNumber {
    size_t view;
    TensorView there;
    Ref<Storage> memory;  // of `there`
  };

  struct Kernel {
    KernelFn fn = nullptr;
    const void* state = nullptr;
  };

  void load_metas();
  void load_kernel(const Step& step);
  std::shared_ptr<const KernelCall> kernel_call_here(const Step& step) const;
  void find_written_externals();

  MetaPtr meta_of(BufferId id) const {
    return id == kNoBuffer ? nullptr : metas_[static_cast<size_t>(id)];
  }

  void add_view(BufferId id);
  void add_moved_numbers(size_t step);
  void run_with_numbers(size_t step, const KernelContext& context);
  void bind(std::span<const Tensor> externals);
  // Returns whether the guard of a step allows it to run.
  bool guard_allows(size_t index);
  void run_step(size_t index);
  void run_timed(size_t index);

  const Program& program_;
  RankContext& rank_;
  Ref<Storage> arena_;           // of host memory
  Ref<Storage> device_arena_;    // the same offsets on the device; null: no buffer is there
  std::vector<MetaPtr> metas_;   // of this rank, by buffer
  std::vector<Kernel> kernels_;  // by step
  // By step; null for steps without a kernel call.
  std::vector<std::shared_ptr<const KernelCall>> calls_;
  // The views of step i begin at first_view_[i]: its inputs, then its outputs.
  std::vector<TensorView> views_;
  std::vector<size_t> first_view_;
  std::vector<Site> sites_;  // by step
  std::vector<External> externals_;
  std::vector<RandomStream> streams_;    // of this run, by draw
  std::vector<boxing::Transfer> sends_;  // by step; null except for sends in progress
  std::vector<Ref<Storage>> sent_;       // by step: host copies of what is sent from a device
  std::vector<std::vector<MovedNumber>> numbers_;  // by step; empty: the program uses no device
  int64_t num_sends_ = 0;                          // number of sends in progress
  RunTimes times_;
  bool records_steps_ = false;
  std::vector<StepTime> step_times_;
  BufferId read_guard_ = kNoBuffer;  // the guard that this run has read last
  std::byte is_open_{0};             // the value of that guard
};

}  // namespace flow::graph
