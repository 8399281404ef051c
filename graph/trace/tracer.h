// Tracing: the second interpreter. While a Trace exists, this thread's calls are recorded and not
// carried out; forward, backward and optimizer use the same dispatch as in eager mode.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/context.h"
#include "core/dispatch.h"
#include "core/traced.h"
#include "graph/ir/ir.h"

namespace flow::autograd {
class RecomputeRegion;
}

namespace flow::graph {

// Nodes that are traced while it exists carry this pipeline stage.
class [[nodiscard]] StageGuard {
 public:
  explicit StageGuard(int64_t stage);
  ~StageGuard();
  StageGuard(const StageGuard&) = delete;
  StageGuard& operator=(const StageGuard&) = delete;

 private:
  int64_t outer_;
};

// While it exists, this thread's calls are carried out although a trace runs: for state that a step
// needs and that its first trace creates. Does nothing outside a trace.
class [[nodiscard]] SuspendTracing {
 public:
  SuspendTracing();
  ~SuspendTracing();
  SuspendTracing(const SuspendTracing&) = delete;
  SuspendTracing& operator=(const SuspendTracing&) = delete;

 private:
  Interpreter* interpreter_;
  Interpreter* trace_;
};

class Trace;

// Nodes that are traced while it exists are transient (graph/ir/ir.h). Does nothing outside a
// trace.
class [[nodiscard]] TransientGuard {
 public:
  TransientGuard();
  ~TransientGuard();
  TransientGuard(const TransientGuard&) = delete;
  TransientGuard& operator=(const TransientGuard&) = delete;

 private:
  Trace* trace_;  // null: no trace runs
  bool outer_ = false;
};

// An outside tensor that a trace used. Tensors that show the same memory are one capture.
struct CapturedHandle {
  Tensor tensor;
  size_t capture;  // index in graph.captures
};

// The result of a trace: the graph, whose stages are not settled yet (graph/passes/pass.h), and the
// tensors of graph.captures in the same order.
struct TracedStep {
  Graph graph;
  std::vector<Tensor> captures;
  // The captures, in ascending order, that share memory with a written capture. A run reads the
  // values that they have when it starts.
  std::vector<size_t> copied = {};
  // All outside tensors that the trace used and that somebody still refers to.
  std::vector<CapturedHandle> handles = {};
};

// Records one step on the calling thread. Outside tensors that the step reads become captures;
// those that it writes in place are written back when the compiled step runs. At each run, random
// ops draw what an eager step would draw then; the trace itself consumes no random streams. A write
// makes a new value; views are linked (core/view_link.h), so a write through a view makes new
// values of all tensors that share its memory in eager mode. Throws Unsupported for an op whose
// shape depends on data, a write to an outside tensor whose memory another one shows and uses
// afterwards, and a write to an input of the step. Reading a traced value (item, to_vector) throws
// InvalidArgument.
class Trace final : public Interpreter {
 public:
  Trace();
  ~Trace() override;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // A traced stand-in with the layout of `example`; each run gives its values.
  Tensor add_input(const Tensor& example);

  // The next nodes run only if this output of the step is true; -1: always. Otherwise the tensors
  // that they write keep their values.
  void set_guard(int64_t output);

  // Ends the trace with these results. Captured leaves get back the gradients they had before.
  TracedStep finish(const std::vector<Tensor>& outputs);

  void run(const Call& call, const Decision& decision, Tensor* outputs) override;
  void replace(const Tensor& target, const Tensor& value) override;
  uint32_t version_of(const Tensor& tensor) override;

  std::shared_ptr<TraceSlot> slot_of(const Tensor& tensor) override;

  // The user's line of the last call.
  Site last_site() const { return site_; }

 private:
  friend class SuspendTracing;
  friend class TransientGuard;

  struct TracedValue;

  // An outside tensor and its gradient before the trace.
  struct OutsideTensor {
    explicit OutsideTensor(const Tensor& outside)
        : tensor(outside), grad(outside.requires_grad() ? outside.grad() : Tensor()) {}

    void restore_grad() const;

    Tensor tensor;
    Tensor grad;
  };

  // An outside tensor, and its stand-in in the trace.
  struct CapturedTensor : OutsideTensor {
    std::shared_ptr<TracedValue> value;
    std::vector<OutsideTensor> others = {};  // further tensors that show the same memory
  };

  void restore();
  // The current slot of a tensor; an outside tensor becomes a capture.
  std::shared_ptr<TracedValue> value_of(const Tensor& tensor);
  // Returns the captures that must be copied when a run starts, because they share memory with a
  // capture that is written after their last use. Throws Unsupported if one is used later.
  std::vector<size_t> overlapping_captures() const;
  void check_overlap(size_t written, size_t other) const;
  // Lets captures that guarded nodes have given values in other memory be written in place.
  void finish_guarded_writes();
  // Gives the slot of a written tensor its new value.
  void write(const Call& call, const Tensor& written, ValueId value);
  bool make_view(const Call& call, const Decision& decision,
                 const std::vector<const Tensor*>& inputs, ValueId value, Tensor& output);
  ValueId add_value(const Value& value);
  Tensor make_traced(MetaPtr meta, ValueId value);
  // The number of this draw within the step.
  int64_t draw_of(uint64_t seed, uint64_t stream, Site site) const;
  void redistribute_inputs(const Call& call, const Decision& decision,
                           std::vector<const Tensor*>& inputs, std::vector<Tensor>& owned);

  const uint64_t number_;     // of this trace; no other trace of the process has it
  Site site_ = Site::none();  // of the last call
  Interpreter* outer_;        // who carried calls out, or wrote them down, before
  Interpreter* outer_trace_;  // null: no other trace runs
  // A step may be traced in a hook of an eager backward, or in a region that is recomputed.
  Phase outer_phase_;
  autograd::RecomputeRegion* outer_region_;
  Generator::State draws_from_;  // the generator when the trace began
  bool is_active_ = true;
  bool is_transient_ = false;
  int64_t guard_ = -1;
  std::vector<ValueId> before_guard_;  // by capture: its value when the guarded nodes began
  Graph graph_;
  std::vector<CapturedTensor> captures_;
  // Captures by storage: aliases of one outside tensor are one capture.
  std::unordered_map<const Storage*, std::vector<size_t>> captures_of_;
};

}  // namespace flow::graph
