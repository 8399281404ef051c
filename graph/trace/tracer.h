// Tracing: the second interpreter. While a Trace lives, this thread's calls are written down
// instead of carried out; forward, backward and optimizer go through the same dispatch as eagerly.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/dispatch.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// Nodes traced while it lives carry this pipeline stage.
class [[nodiscard]] StageGuard {
 public:
  explicit StageGuard(int64_t stage);
  ~StageGuard();
  StageGuard(const StageGuard&) = delete;
  StageGuard& operator=(const StageGuard&) = delete;

 private:
  int64_t outer_;
};

// While it lives, calls of this thread are carried out at once though a trace goes on: for state
// that a step needs and that is made at its first trace. Nothing outside a trace.
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

// Nodes traced while it lives are transient (graph/ir/ir.h). Nothing outside a trace.
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

// What a trace gives: the graph, and the tensors behind graph.captures in the same order.
struct TracedStep {
  Graph graph;
  std::vector<Tensor> captures;
};

// Records one step on the calling thread. Outside tensors that are read become captures; those that
// are written in place too are written back when the plan runs. Random ops draw at each run what an
// eager step would draw then; the trace itself uses up nothing. A write makes a new value, through
// a view a new one of all tensors that share its memory. Refused with Unsupported: ops whose shape
// depends on data, two views of one outside tensor, writes through a redistributed one, or through
// any where gradients are recorded. Reading a traced value (item, to_vector) is an InvalidArgument.
class Trace final : public Interpreter {
 public:
  Trace();
  ~Trace() override;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // A traced stand-in with the layout of `example`; its values are given at each run.
  Tensor add_input(const Tensor& example);

  // Nodes from here on run only where this output of the step is true; -1: always.
  void set_guard(int64_t output) { guard_ = output; }

  // Ends the trace with these results. Gradients of captured leaves are put back as they were.
  TracedStep finish(const std::vector<Tensor>& outputs);

  void run(const Call& call, const Decision& decision, Tensor* outputs) override;

 private:
  friend class SuspendTracing;
  friend class TransientGuard;

  struct TracedValue;

  // An outside tensor, what stands for it in the trace, and its gradient before.
  struct CapturedTensor {
    Tensor tensor;
    std::shared_ptr<TracedValue> value;
    Tensor grad;
  };

  void restore();
  // The slot of a tensor, a new capture where it comes from outside; up to date.
  std::shared_ptr<TracedValue> value_of(const Tensor& tensor);
  // Takes a view again whose tensor was written.
  void refresh(TracedValue& slot);
  // Gives a slot a new value, and what it is a view of one with that in its place.
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
