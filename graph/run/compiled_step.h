// A compiled step on one rank: its captured tensors, its program and the executor that runs it.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/program/compiled_artifact.h"
#include "graph/run/executor.h"
#include "graph/run/rank_agreement.h"

namespace flow::graph {

// Immutable except for the memory that it runs in. Thread ranks share the compiled artifact. The
// step belongs to the rank that made it and is not thread safe.
class CompiledStep {
 public:
  // `captures` are the tensors behind the captures of the artifact's graph, in the same order; the
  // ones in `copied` are copied at the start of each run (TracedStep). Steps that run one after
  // another may share an arena; null: this one has its own.
  CompiledStep(std::vector<Tensor> captures, std::shared_ptr<const CompiledArtifact> step,
               const std::vector<size_t>& copied = {}, std::shared_ptr<Arena> arena = nullptr);
  CompiledStep(const CompiledStep&) = delete;
  CompiledStep& operator=(const CompiledStep&) = delete;

  // Runs the step. `inputs` are in the order in which they were added to the trace. The outputs
  // have separate memory. Captured tensors that the step writes have new values afterwards; strided
  // ones are copied to and from row-major memory. Throws InvalidArgument, before anything runs, if
  // a tensor's layout differs from that of the trace. Calls agree() first.
  //
  // An error of a run reaches the ranks that wait for this one, unless all of them have it
  // themselves. The generator and running statistics are those before the call then; an optimizer
  // may have updated some parameters already.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

  // Throws InvalidArgument on all ranks of the placements if their steps differ. Collective over
  // these ranks at the first call if the step has global tensors; later calls do nothing.
  void agree() { agreement_.reach(*thread_state().context); }

  // The ranks of all placements, ascending; empty if all tensors are local.
  const std::vector<int64_t>& ranks() const { return agreement_.ranks(); }

  // True if this rank runs the step together with others.
  bool concerns_others() const { return agreement_.concerns_others(); }

  // What the messages of a run belong to; the same for all plans of one step.
  const boxing::RunningStep& running_step() const { return agreement_.step(); }

  // Returns whether every captured tensor still has the layout that it was traced with, strides
  // included.
  bool fits() const;

  // The times of the last run. Requires: the step has run.
  const RunTimes& last_run() const { return executor_->last_run(); }

  // Turns the recording of step times on or off; a change takes effect at the next run.
  void record_steps(bool on);

  // Whether the next runs queue their steps on a CUDA device as CUDA graphs where they can. Off at
  // first.
  void use_cuda_graphs(bool on) { uses_cuda_graphs_ = on; }

  // What became of it, in a line or two, and with every step that is in no graph; empty: no run has
  // used them.
  std::string cuda_graphs_summary() const;
  std::string cuda_graphs_explanation() const;

  std::span<const StepTime> last_steps() const { return executor_->last_steps(); }

  const Graph& graph() const { return step_->graph; }

  // The program of this rank, or of a rank of the same class.
  const Program& program() const { return *program_; }

  // The programs of all ranks; only this rank's if all tensors are local.
  const Programs& programs() const { return step_->programs; }

  const std::vector<PassResult>& passes() const { return step_->passes; }

  const Certificate& certificate() const { return step_->certificate; }

  // The most bytes that a run takes from this rank's allocator if the arena is as large as this
  // step needs it. The arena is part of them and is kept.
  int64_t peak_bytes() const { return peak_bytes_of(*step_, rank_); }

  int64_t arena_bytes() const { return program_->arena_bytes; }

  int64_t output_bytes() const;

  // Returns inputs, captured tensors, nodes, passes, memory, certificate and redistributions as
  // text.
  std::string summary() const;

  const CompiledArtifact& step() const { return *step_; }

  // The captured tensors, in the order of graph().captures.
  const std::vector<Tensor>& captures() const { return captures_; }

  // True if the step writes a captured tensor in the memory of this one.
  bool writes(const Tensor& tensor) const;

 private:
  Executor& executor();

  // Memory of a capture that nodes before the update phase write, such as running statistics.
  struct Statistic {
    size_t capture;
    Ref<Storage> before = {};  // its value before the run, on the same device
  };

  void find_statistics();
  void keep_statistics();
  void restore_statistics();
  // Compares what ranks hold alike among the outputs and written captures.
  void check_results(std::span<const Tensor> outputs) const;
  // Drops the inputs and outputs of the last run.
  void release_externals();
  std::vector<Tensor> run_once(std::span<const Tensor> inputs);
  // Undoes what a run that threw has changed. `untold` is an error that the other ranks must be
  // told; null: they have it as well.
  void give_up(const std::exception* untold);
  // Gives the run copies of the captures in copied_.
  void copy_captures();
  void write_back();

  std::vector<Tensor> captures_;
  std::vector<MetaPtr> capture_metas_;  // as they were traced
  std::vector<size_t> copied_;          // captures that a run copies
  std::vector<size_t> written_;         // captures that a run writes
  std::vector<Statistic> statistics_;
  std::shared_ptr<const CompiledArtifact> step_;
  RankAgreement agreement_;
  int64_t rank_;
  const Program* program_;  // of step_
  std::vector<MetaPtr> output_metas_;
  std::vector<Tensor> externals_;  // inputs, captures, outputs; the outputs only during a run
  std::shared_ptr<Arena> arena_;
  std::unique_ptr<Executor> executor_;  // made at the first run
  bool uses_cuda_graphs_ = false;
  bool checks_replicas_;  // FLOW_CHECK
};

}  // namespace flow::graph
