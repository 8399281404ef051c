// Tracing: the second interpreter. While a Trace exists, this thread's calls are recorded and not
// carried out; forward, backward and optimizer use the same dispatch as in eager mode.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/dispatch.h"
#include "graph/ir/ir.h"

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

// The result of a trace: the graph, whose stages are not settled yet (graph/passes/pass.h), and the
// tensors of graph.captures in the same order.
struct TracedStep {
  Graph graph;
  std::vector<Tensor> captures;
};

// Records one step on the calling thread. Outside tensors that the step reads become captures;
// those that it writes in place are written back when the compiled step runs. At each run, random
// ops draw what an eager step would draw then; the trace itself consumes no random streams. A write
// makes a new value; a write through a view makes new values of all tensors that share its memory.
// Throws Unsupported for an op whose shape depends on data, two views of one outside tensor, a
// write through a redistributed view, and a write through any view while gradients are recorded.
// Reading a traced value (item, to_vector) throws InvalidArgument.
class Trace final : public Interpreter {
 public:
  Trace();
  ~Trace() override;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // A traced stand-in with the layout of `example`; each run gives its values.
  Tensor add_input(const Tensor& example);

  // The next nodes run only if this output of the step is true; -1: always.
  void set_guard(int64_t output) { guard_ = output; }

  // Ends the trace with these results. Captured leaves get back the gradients they had before.
  TracedStep finish(const std::vector<Tensor>& outputs);

  void run(const Call& call, const Decision& decision, Tensor* outputs) override;

 private:
  friend class SuspendTracing;
  friend class TransientGuard;

  struct TracedValue;

  // An outside tensor, its stand-in in the trace, and its gradient before the trace.
  struct CapturedTensor {
    Tensor tensor;
    std::shared_ptr<TracedValue> value;
    Tensor grad;
  };

  void restore();
  // The current slot of a tensor; an outside tensor becomes a capture.
  std::shared_ptr<TracedValue> value_of(const Tensor& tensor);
  // Makes a view again if its tensor has been written.
  void refresh(TracedValue& slot);
  // Gives a slot a new value. If the slot is a view, its base gets a new value too, with this one
  // in the view's place.
  void write(TracedValue& slot, ValueId value, Site site);
  bool make_view(const Call& call, const std::vector<const Tensor*>& inputs, MetaPtr meta,
                 ValueId value, Tensor& output);
  ValueId add_value(const Value& value);
  Tensor make_traced(MetaPtr meta, ValueId value);
  void follow_recorded_writes(const Call& call, Site site);
  int64_t draw_of(const RandomStream& random, Site site) const;
  void redistribute_inputs(const Call& call, const Decision& decision,
                           std::vector<const Tensor*>& inputs, std::vector<Tensor>& owned);

  Interpreter* outer_;           // who carried calls out, or wrote them down, before
  Interpreter* outer_trace_;     // null: no other trace runs
  Generator::State draws_from_;  // the generator when the trace began
  bool is_active_ = true;
  bool is_transient_ = false;
  int64_t guard_ = -1;
  Graph graph_;
  std::vector<CapturedTensor> captures_;
  // Captures by storage: aliases of one outside tensor are one capture.
  std::unordered_map<const Storage*, std::vector<size_t>> captures_of_;
};

}  // namespace flow::graph
