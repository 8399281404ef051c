// Graph: a training or inference step that is traced, compiled and replayed. A training step
// contains forward, backward and the update. There is one trace for each layout of the inputs.
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

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/site.h"
#include "core/tensor.h"
#include "nn/compiled_graph.h"
#include "nn/graph_config.h"
#include "nn/graph_values.h"
#include "nn/module.h"

namespace flow::autograd {
struct BackwardRules;
}

namespace flow::optim {
class TracedScaler;

namespace lr_scheduler {
class LRScheduler;
}
}  // namespace flow::optim

namespace flow::nn {

class CallTurns;
class KeptPlans;
class ZeroParameters;

struct GraphOptimizerOptions {
  // A schedule that steps after each run that has gradients, even if a GradScaler skipped the
  // update, as in an eager loop that calls both step functions. A run under NoGradGuard is no step.
  optim::lr_scheduler::LRScheduler* lr_scheduler = nullptr;
  // Clips the gradients to this norm, taken of all gradients as one vector. Unset: no clipping.
  std::optional<double> clip_grad_norm = {};
};

// The part of a graph that does not depend on its type. Belongs to one rank. Several threads of the
// rank may call and compile it: they take turns. Everything else is not thread safe. Optimizers and
// schedules must outlive it.
class GraphBase {
 public:
  GraphBase(const GraphBase&) = delete;
  GraphBase& operator=(const GraphBase&) = delete;

  // CompiledGraph::summary(), explain() and dump() of the plan that was used last. Throw
  // InvalidArgument if there is none.
  std::string summary() const;
  std::string explain() const;
  void dump(const std::string& folder) const;

  // What training needs to go on, apart from data and the generator: the state of the registered
  // modules ("model.fc1.weight"), of each optimizer ("optimizer.0.3.exp_avg") and its schedule
  // ("lr_scheduler.0.last_epoch") by number, and of the GradScaler ("grad_scaler.scale"). Each part
  // has the names of its own state_dict(). Throws InvalidArgument if an optimizer has a parameter
  // that belongs to no registered module.
  StateDict state_dict() const;
  // Restores such a state, before or after the first call, in the layouts that the graph uses.
  // Throws InvalidArgument before anything is loaded if a part is missing or a name belongs to no
  // part. A part whose tensors do not fit raises its own error; parts that come earlier in
  // state_dict() are loaded then.
  void load_state_dict(const StateDict& state);

 protected:
  GraphBase();
  ~GraphBase();

  // Names a module for state_dict() and returns it: `Train(Mlp m) : model(register_module("model",
  // m)) {}`. The name must be new, must not contain dots and must not be the name of another part
  // of the state, else InvalidArgument.
  template <class M>

  requires std::derived_from<M, ModuleBase> M register_module(std::string_view name, M module) {
    add_module(name, module);
    return module;
  }

  // Every run ends with a step of this optimizer, using the gradients that build() computes. The
  // graph neither reads nor writes gradients outside of it. Throws InvalidArgument if the schedule
  // belongs to another optimizer. Compiling throws InvalidArgument, with this line, if build()
  // gives no parameter of the optimizer a gradient while gradients are recorded.
  void add_optimizer(optim::Optimizer& optimizer, const GraphOptimizerOptions& options = {},
                     Site site = Site::here());

  GraphConfig& config() { return config_; }

  // While it exists, no other thread calls or compiles the graph. Throws InvalidArgument if another
  // thread rank does so at this moment.
  class Turn {
   public:
    explicit Turn(GraphBase& graph);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    CallTurns& turns_;
  };

  // Runs build() on traced inputs and returns the traced outputs.
  using Build = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                  std::shared_ptr<const void>& result)>;

  // `members`: the bytes of the object with build().
  CompiledGraph& compiled_for(const internal::TensorReader& arguments, const Build& build,
                              std::span<const std::byte> members);
  std::vector<Tensor> run(CompiledGraph& compiled, const std::vector<Tensor>& arguments);

 private:
  struct OptimizerEntry {
    optim::Optimizer* optimizer;
    GraphOptimizerOptions options;
    Site site;  // of add_optimizer
  };

  // A part of the state.
  struct StatePart {
    std::string name;
    std::function<StateDict()> save;
    std::function<void(const StateDict&)> load;
  };

  // Throws InvalidArgument if build() has given the parameters of an optimizer no gradients.
  void check_gradients() const;
  const CompiledGraph& last_plan(const char* function) const;
  void add_module(std::string_view name, const ModuleBase& module);
  std::vector<StatePart> state_parts() const;

  std::unique_ptr<CompiledGraph> compile_for(const internal::TensorReader& arguments,
                                             const Build& build,
                                             std::span<const std::byte> members);

  autograd::BackwardRules backward_rules(const ZeroParameters& zero,
                                         optim::TracedScaler* scaler) const;

  GraphConfig config_;
  NamedModules modules_;
  std::vector<OptimizerEntry> optimizers_;
  std::unique_ptr<KeptPlans> plans_;
  std::unique_ptr<CallTurns> turns_;
};

// CRTP base that gives Derived its call operator, which replays Derived::build.
//
// build() runs once for each layout of its inputs, mode of its modules and layout of a surrounding
// PlacementGuard, and again if what it read has changed: modules and their members, hooks, options
// for graphs, tensors among the members of the graph, and which tensors record gradients. Numbers
// among the members of the graph are read only then; any side effect of build() other than ops
// happens only then. Reading values in build() is an error. So is writing to a tensor, unless it is
// a parameter or buffer of a module that build() calls or belongs to an optimizer. Scalars that
// build() returns are replicated on every rank, so reading them does not wait for other ranks.
template <class Derived>
class Graph : public GraphBase {
 public:
  template <class... Args>
  auto operator()(const Args&... args) {
    using Result = ResultOf<Derived, Args...>;
    const Turn turn(*this);
    const internal::TensorReader arguments = read(args...);
    CompiledGraph& compiled = compiled_for(arguments, build_with(args...), members());
    return internal::with_tensors(*static_cast<const Result*>(compiled.result_.get()),
                                  run(compiled, arguments.tensors));
  }

  // Traces and compiles for arguments with the layouts of these. Runs nothing. The result lives
  // until a call or compilation drops the plan (GraphConfig::set_max_plans) or makes it again.
  template <class... Args>
  const CompiledGraph& compile(const Args&... args) {
    const Turn turn(*this);
    return compiled_for(read(args...), build_with(args...), members());
  }

 private:
  // Self delays the inspection of build() until Derived is complete.
  template <class Self, class... Args>
  using ResultOf =
      std::decay_t<decltype(std::declval<Self&>().build(std::declval<const Args&>()...))>;

  std::span<const std::byte> members() const {
    return std::as_bytes(std::span(static_cast<const Derived*>(this), 1));
  }

  template <class... Args>
  static internal::TensorReader read(const Args&... args) {
    internal::TensorReader reader;
    reader.type = typeid(std::tuple<Args...>);
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
