// Graph: a step (forward, and for training backward and update) that is traced once per layout of
// its inputs, compiled, and replayed.
//
//   struct Train : flow::nn::Graph<Train> {
//     Mlp model;
//     Train(Mlp m, flow::optim::SGD& optimizer) : model(m) { add_optimizer(optimizer); }
//     flow::Tensor build(const flow::Tensor& x, const flow::Tensor& y) {
//       flow::Tensor loss = flow::cross_entropy(model(x), y);
//       loss.backward();
//       return loss;
//     }
//   };
//   Train graph(model, optimizer);
//   flow::Tensor loss = graph(x, y);  // traces, compiles and runs; later calls only run
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"
#include "graph/pass_set.h"
#include "nn/graph_values.h"
#include "nn/optim/grad_scaler.h"
#include "pipeline/schedule.h"

namespace flow::autograd {
struct BackwardRules;
}

namespace flow::graph {
class Plan;
}

namespace flow::optim {
class TracedScaler;

namespace lr_scheduler {
class LRScheduler;
}
}  // namespace flow::optim

namespace flow::nn {

class ZeroParameters;

struct GraphOptimizerOptions {
  // Makes a step after each run of the graph, also where a GradScaler left the update out, as a
  // loop does that steps both.
  optim::lr_scheduler::LRScheduler* lr_scheduler = nullptr;
  // The largest norm of all gradients taken as one vector.
  std::optional<double> clip_grad_norm = {};
};

inline constexpr graph::PassSet exact = graph::PassSet::kExact;

// What is cut over ranks that hold the same parameter (Rajbhandari et al. 2020); a stage has what
// those below it have. Values are those without. Parameters on one rank, and local ones, have
// nothing to cut.
struct ZeroOptions {
  // 1: optimizer state.
  // 2: gradients too: each is added up into parts as soon as it is made.
  // 3: parameters too: from the first compilation on each rank has its part, in the tensor as well
  //    (split where it was broadcast), and they are gathered where they are used, in forward and
  //    again in backward.
  int64_t stage = 1;
  // Gathers and sums of stages 2 and 3 are made once a step, not where parameters are used and for
  // each micro-batch: less is moved, but whole parameters are kept through the step, and with
  // micro-batches whole gradients.
  bool once_per_step = false;
  friend bool operator==(const ZeroOptions&, const ZeroOptions&) = default;
};

// Which runs of a graph a timeline shows.
struct TimelineOptions {
  int64_t skip = 1;      // runs before the first; the very first takes memory
  int64_t runs = 3;      // one after another
  bool kernels = false;  // each kernel too
};

class GraphTimeline;

// How a graph is compiled. After a change the next call compiles anew.
class GraphConfig {
 public:
  // Forward under autocast to `dtype`, bfloat16 or float16. For float16 the graph has a GradScaler:
  // backward() begins with its scale, gradients are divided by it before they are clipped, and
  // where any rank finds one that is not finite, the optimizer's step is left out on all. Between
  // backward() and the end of build() gradients are scaled.
  GraphConfig& enable_amp(DType dtype = bfloat16);
  // The same with options of the scaler's, for bfloat16 too.
  GraphConfig& enable_amp(DType dtype, const optim::GradScalerOptions& scaling);
  // A scaler of the program's in place of the graph's own, which eager steps and other graphs may
  // share; it must outlive the graph.
  GraphConfig& set_grad_scaler(optim::GradScaler& scaler);

  // The scaler, for its scale and state; null for none.
  optim::GradScaler* grad_scaler() const { return scaler_.get(); }

  GraphConfig& enable_zero(ZeroOptions options = {});
  // `exact`: only passes that leave results as they are bit for bit; the graph then equals the
  // eager step.
  GraphConfig& set_passes(graph::PassSet passes);
  // Results must be those of the whole batch: what would make them others, a batch norm in training
  // under micro-batches, raises Unsupported with module and line when the graph is compiled.
  GraphConfig& require_exact(bool on = true);
  // The batch is cut into so many parts along dim 0 of every input, which run one after another;
  // gradients are summed, results and random draws are those of the whole batch. Batch norm in
  // training takes the statistics of each part, over all ranks, and updates running ones once for
  // each, in order; summary() names such modules. Other ops that mix samples cannot be cut and
  // raise Unsupported when the graph is compiled.
  GraphConfig& set_micro_batches(int64_t count);
  // The order in which stages take micro-batches; pipeline::one_f_one_b() unless it is set. With
  // one micro-batch, too.
  GraphConfig& set_schedule(const pipeline::ScheduleRule& schedule);
  // What stages save for backward, and outside of them elements of ModuleList and Sequential, is
  // dropped and computed again (GraphModule::set_activation_checkpointing for single modules).
  // Modules that give more than one tensor are left as they are.
  GraphConfig& enable_recompute();
  // A folder where compiled plans are kept, and from where a later run of the same program takes
  // them instead of compiling; FLOW_PLAN_CACHE unless it is set, and none where that is not.
  GraphConfig& set_plan_cache(std::string folder);
  // Measures coming runs and writes them, all ranks in one, to a file that Perfetto and flow-sim
  // open (docs/timelines.md). The last of the runs writes it, on rank 0; later ones are not
  // measured. A change does not compile anew. Unsupported, at the first run, for a graph of local
  // tensors on several ranks.
  GraphConfig& set_timeline(const std::string& path, const TimelineOptions& options = {});

 private:
  friend class GraphBase;

  std::optional<DType> amp_;
  std::shared_ptr<optim::GradScaler> scaler_;
  ZeroOptions zero_ = {.stage = 0};
  int64_t micro_batches_ = 1;
  pipeline::ScheduleRule schedule_;
  bool recomputes_ = false;
  bool is_exact_ = false;
  std::optional<std::string> plan_cache_;
  std::shared_ptr<GraphTimeline> timeline_;
  graph::PassSet passes_ = graph::PassSet::kAll;
};

// One compiled form of a graph: for inputs of one layout.
class CompiledGraph {
 public:
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  const graph::Plan& plan() const;

  // Nodes, passes, memory, what was proved of the programs of all ranks, and the redistributions
  // with their lines: a text of some lines.
  std::string summary() const;

  // Writes the plan of all ranks to a file, which flow-plan shows. The file appears whole or not at
  // all; any rank may do it, and need not wait for others.
  void save(const std::string& path) const;

  // Writes what its schedule is predicted to do, as a timeline. Throws IoError; InvalidArgument for
  // a graph of one stage and one micro-batch, which has none.
  void write_predicted_timeline(const std::string& path) const;

 private:
  friend class GraphBase;
  template <class Derived>
  friend class Graph;
  struct State;

  CompiledGraph();

  std::unique_ptr<State> state_;
  std::shared_ptr<const void> result_;  // what build() returned, as a form to fill
};

// What every graph shares. Belongs to one rank; not thread safe. Optimizers and schedules must
// outlive it.
class GraphBase {
 public:
  GraphBase(const GraphBase&) = delete;
  GraphBase& operator=(const GraphBase&) = delete;

 protected:
  GraphBase();
  ~GraphBase();

  // Every run ends with a step of it, on the gradients that build() makes. Gradients outside the
  // graph are neither read nor written.
  void add_optimizer(optim::Optimizer& optimizer, const GraphOptimizerOptions& options = {});

  GraphConfig& config() { return config_; }

  // Runs build() on traced inputs and gives the traced outputs.
  using Build = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                  std::shared_ptr<const void>& result)>;

  CompiledGraph& compiled_for(const internal::TensorReader& arguments, const Build& build);
  std::vector<Tensor> run(CompiledGraph& compiled, const std::vector<Tensor>& arguments);

 private:
  struct OptimizerEntry {
    optim::Optimizer* optimizer;
    GraphOptimizerOptions options;
  };

  std::unique_ptr<CompiledGraph> compile_for(const internal::TensorReader& arguments,
                                             const Build& build);

  autograd::BackwardRules backward_rules(const ZeroParameters& zero,
                                         optim::TracedScaler* scaler) const;

  GraphConfig config_;
  std::vector<OptimizerEntry> optimizers_;
  std::vector<std::unique_ptr<CompiledGraph>> compiled_;
};

// CRTP base: gives Derived its call operator, which replays Derived::build.
//
// build() is called once for each layout of its inputs, mode of its modules and set of parameters
// that record gradients; what it does beside calling ops happens then only. Reading values in it is
// an error, as is writing to a tensor that is neither a parameter or buffer of a module that it
// calls nor an optimizer's. Scalars that it returns lie whole on every rank.
template <class Derived>
class Graph : public GraphBase {
 public:
  template <class... Args>
  auto operator()(const Args&... args) {
    using Result = ResultOf<Derived, Args...>;
    const internal::TensorReader arguments = read(args...);
    CompiledGraph& compiled = compiled_for(arguments, build_with(args...));
    return internal::with_tensors(*static_cast<const Result*>(compiled.result_.get()),
                                  run(compiled, arguments.tensors));
  }

  // Traces and compiles for arguments like these, and runs nothing.
  template <class... Args>
  const CompiledGraph& compile(const Args&... args) {
    return compiled_for(read(args...), build_with(args...));
  }

 private:
  // Self delays the look at build() until Derived is complete.
  template <class Self, class... Args>
  using ResultOf =
      std::decay_t<decltype(std::declval<Self&>().build(std::declval<const Args&>()...))>;

  template <class... Args>
  static internal::TensorReader read(const Args&... args) {
    internal::TensorReader reader;
    (internal::visit_tensors(args, reader), ...);
    return reader;
  }

  template <class... Args>
  Build build_with(const Args&... args) {
    return [this, &args...](const std::vector<Tensor>& inputs, std::shared_ptr<const void>& form) {
      internal::TensorWriter writer(inputs);
      std::tuple<Args...> traced(args...);
      std::apply([&](auto&... arg) { (internal::visit_tensors(arg, writer), ...); }, traced);
      ResultOf<Derived, Args...> result = std::apply(
          [this](const auto&... arg) { return static_cast<Derived&>(*this).build(arg...); },
          traced);
      internal::TensorReader outputs;
      internal::visit_tensors(std::as_const(result), outputs);
      const std::vector<Tensor> none(outputs.tensors.size());
      form = std::make_shared<const ResultOf<Derived, Args...>>(
          internal::with_tensors(std::move(result), none));
      return outputs.tensors;
    };
  }
};

}  // namespace flow::nn
