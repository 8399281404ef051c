// Runs programs. Pointers are resolved once, and again if the arena has moved; a run makes no
// decisions.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/device_memory.h"
#include "core/generator.h"
#include "core/tensor.h"
#include "graph/program/program.h"
#include "graph/run/arena.h"
#include "graph/run/captured_steps.h"
#include "graph/run/loaded_step.h"
#include "graph/run/step_timeline.h"

namespace flow::graph {

// The seconds that a run took, and for how many of them it waited for messages from and to other
// ranks.
struct RunTimes {
  double total = 0;
  double waiting = 0;
};

// When a step ran, in nanoseconds of the steady clock. The two are equal only for a step that was
// skipped: for its guard or its turn.
struct StepTime {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// Runs one program on the calling thread's rank. Not thread safe.
class Executor {
 public:
  // `program` must outlive the executor. The calling thread's rank must be the program's or in the
  // same class. Makes the kernels that the program lacks. Executors may share an arena if they run
  // one after another.
  explicit Executor(const Program& program,
                    std::shared_ptr<Arena> arena = std::make_shared<Arena>());

  // externals[i] is the memory of program.externals[i]. It has the same local layout and is written
  // where the program writes. Ranks outside a tensor's placement pass a tensor without data. Throws
  // InvalidArgument, before anything runs, if a tensor differs from the one that the program was
  // compiled for.
  void run(std::span<const Tensor> externals);

  // Cancels the messages of a run that threw and waits for its collectives in the background,
  // because the next run reuses their memory, and takes back its random draws; does nothing after a
  // complete run. Ranks that may be waiting must have been told of the error.
  void cancel_run();

  const RunTimes& last_run() const { return times_; }

  // Turns the recording of step times on or off; it reads the clock twice a step. Off at first.
  void record_steps(bool on);

  // Lets runs queue what they can as CUDA graphs (CapturedSteps). They are captured at the third
  // run and again if memory moves; runs of which times are recorded do without. Off at first.
  void use_cuda_graphs(bool on);

  // What became of it, for people; empty: it is off.
  std::string cuda_graphs_summary() const;
  std::string cuda_graphs_explanation() const;

  // The times of the last recorded run, by step in the order in which they ran.
  std::span<const StepTime> last_steps() const { return step_times_; }

 private:
  // Where a step reads or writes an external: one of views_ and how far into the memory it begins.
  struct Use {
    size_t view;
    int64_t offset;  // bytes
  };

  struct External {
    MetaPtr meta = nullptr;
    const std::byte* data = nullptr;  // that the steps use, in the last run
    bool is_used = false;
    bool is_written = false;
    bool is_read = false;  // a step needs the values from before the run
    std::vector<Use> uses = {};
    // With CUDA graphs, of an external whose memory has moved between runs: what the steps use
    // instead, and the memory of this run.
    Ref<Storage> copy = {};
    std::byte* original = nullptr;
  };

  // The part of the program that is in the arena on a device.
  struct InArena {
    size_t bytes = 0;           // that the program needs there
    std::byte* data = nullptr;  // the arena's block in the last run
    std::vector<Use> uses = {};
  };

  InArena& in_arena(DeviceType device) { return in_arena_[static_cast<size_t>(device)]; }

  MetaPtr meta_of(BufferId id) const {
    return id == kNoBuffer ? nullptr : metas_[static_cast<size_t>(id)];
  }

  void load_metas();
  void load_externals();
  void load_steps();
  void load_step(const Step& step, LoadedBlock& block);
  void add_view(BufferId id, LoadedBlock& block);
  // The kernels of a step whose operands have other positions in each micro-batch.
  std::vector<LoadedKernel> load_each(const Step& step, const LoadedBlock& block);
  // The meta of a buffer in a micro-batch.
  MetaPtr meta_in(BufferId id, int32_t micro_batch) const;
  LoadedKernel load(const Step& step, const KernelStep& kernel) const;
  LoadedKernel load(const KernelStep& kernel, const KernelCall& call) const;
  LoadedKernel load(const Step& step, const CollectiveStep& collective) const;
  LoadedBucket load(const Step& step, const BucketStep& bucket) const;
  LoadedSend load(const Step& step, const SendStep& send) const;
  LoadedReceive load(const Step& step, const ReceiveStep& receive) const;

  // The other kinds run as they are.
  template <class Body>
  Body load(const Step&, const Body& body) const {
    return body;
  }

  // The communicator of the group for data on `device`.
  boxing::Communicator& on_device(boxing::Communicator& group, DeviceType device) const;
  // The communicator of an edge, whose group is its two ranks, in ascending order.
  boxing::Communicator& pair_with(int64_t peer, DeviceType device) const;

  // Returns the program's kernel call if the step's metas are the same on this rank, otherwise a
  // call decided for this rank.
  std::shared_ptr<const KernelCall> kernel_call_here(const Step& step,
                                                     const KernelStep& kernel) const;

  // Reserves the arena, and moves the views in it if it is somewhere else than in the last run.
  void bind_arena();
  void bind(std::span<const Tensor> externals, OthersMemory& others);
  // Where the steps find an external that is at `data` in this run.
  std::byte* place_of(External& external, std::byte* data);
  // Fills the copies of externals, and what is read in them, before and after the steps.
  void copy_externals_in();
  void copy_externals_out();
  // Captures the steps if that is due. Returns whether this run queues graphs.
  bool prepare_replay();
  void capture_steps();
  // Queues the work of a step that is captured.
  void capture_step(const ScheduledStep& at);
  void replay();
  void launch(const CapturedSteps::Part& part);
  // Makes a run of a block the current one.
  void enter_run(size_t index);
  // Memory that graphs use has moved.
  void forget_graphs();
  // The step goes on without graphs.
  void give_up_graphs(std::string reason);

  bool uses_graphs() const { return wants_graphs_ && no_graphs_because_.empty(); }

  // The random numbers of a step in this run.
  RandomStream stream_of(const LoadedKernel& kernel) const;
  // The next run of each block moves its views.
  void unbind_blocks();
  // Moves the views of a block to a micro-batch.
  void bind_block(LoadedBlock& block, int32_t micro_batch);
  void run_blocks();
  void run_block(LoadedBlock& block);
  void run_step(LoadedStep& step);
  void run_body(LoadedStep& step);
  void run_timed(size_t index);
  // Runs the step in the communication thread.
  void start(LoadedStep& step);
  // Returns whether the guard of a step allows it to run.
  bool guard_allows(const LoadedStep& step);
  // Returns whether a step is left out in this run of its block.
  bool is_skipped(const LoadedStep& step);
  void run(const LoadedStep& step, const LoadedKernel& kernel);
  void run_with_numbers(const LoadedStep& step, const LoadedKernel& kernel,
                        const RandomStream& random);
  void run(const LoadedStep& step, const LoadedBucket& bucket);
  void run(const LoadedStep& step, const ConvertStep& conversion);
  void run(const LoadedStep& step, LoadedSend& send);
  void run(const LoadedStep& step, LoadedReceive& receive);
  // The transfer ends in a wait step of this micro-batch.
  void note_started(LoadedMessage& message, boxing::Transfer transfer);
  void run(const LoadedStep& step, const WaitStep& wait);

  // The tag of a message in the micro-batch that runs.
  int64_t tag_of(const LoadedMessage& message) const {
    return message.tag + std::max(run_->micro_batch, 0);
  }

  const Program& program_;
  RankContext& rank_;
  std::shared_ptr<Arena> arena_;
  std::array<InArena, 2> in_arena_;  // by device; offsets are the same on both
  std::vector<MetaPtr> metas_;       // of this rank, by buffer
  // For each step in turn its inputs, its outputs and its guard.
  std::vector<TensorView> views_;
  std::vector<LoadedStep> steps_;
  ProgramRuns runs_;
  std::vector<LoadedBlock> blocks_;
  const BlockRun* run_ = nullptr;  // of a block, in progress
  std::vector<External> externals_;
  std::vector<RandomStream> streams_;  // of this run, by draw
  Generator::State drawn_before_;      // the generator before this run
  bool is_running_ = false;            // also after a run that threw
  int64_t num_messages_ = 0;           // number of messages in progress
  RunTimes times_;
  bool records_steps_ = false;
  std::unique_ptr<StepTimeline> timeline_;  // null: FLOW_TIMELINE is not set
  std::vector<StepTime> step_times_;
  size_t num_timed_ = 0;
  bool wants_graphs_ = false;
  std::string no_graphs_because_;  // of an error; empty: there was none
  int64_t num_runs_ = 0;           // that have ended
  int64_t num_captures_ = 0;
  std::shared_ptr<CaptureMemory> capture_memory_;
  std::unique_ptr<CapturedSteps> captured_;  // null: not captured yet
  bool is_captured_ = false;                 // the graphs use the memory of the last run
  Ref<Storage> device_streams_;              // streams_ on the device, for captured draws
  BufferId read_guard_ = kNoBuffer;          // the guard that this run has read last
  std::byte is_open_{0};                     // the value of that guard
};

}  // namespace flow::graph
