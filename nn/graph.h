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

#include "core/tensor.h"
#include "nn/graph_config.h"
#include "nn/graph_values.h"

namespace flow::autograd {
struct BackwardRules;
}

namespace flow::graph {
class CompiledStep;
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

// One compiled form of a graph: for inputs of one layout.
class CompiledGraph {
 public:
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  const graph::CompiledStep& plan() const;

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
