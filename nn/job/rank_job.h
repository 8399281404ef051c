// The state of the jobs on one rank: variables, compiled functions, and the function being traced.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/placement.h"
#include "nn/job/function.h"
#include "nn/job/module.h"
#include "nn/job/optimizer.h"
#include "nn/job/variable.h"
#include "nn/module.h"

namespace flow::optim {
class Optimizer;
}

namespace flow::job {

using Definition = internal::Definition;
using DefinitionPtr = std::shared_ptr<const Definition>;

// The update rule of a training function.
struct Minimizer {
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>& variables)> make = {};
  LrScheduler lr = {};
};

// A local read-only tensor that shares the array's values, starting at element `offset`.
Tensor wrap(const Array& array, int64_t offset, const Shape& shape);
Array to_array(const Tensor& local);

class CompiledJob;
struct FunctionState;

class RankJob {
 public:
  RankJob();
  ~RankJob();
  RankJob(const RankJob&) = delete;
  RankJob& operator=(const RankJob&) = delete;

  // The job whose function this thread is running. Throws InvalidArgument, naming `caller`, outside
  // of a job function.
  static RankJob& in_function(const char* caller, Site site);

  // ---- commands, which all ranks run `inputs` are the inputs of this rank. Returns the results of
  // this rank; in consistent view rank 0 returns all results and the other ranks none.
  std::vector<Array> call(const DefinitionPtr& definition, const std::vector<Array>& inputs);
  // Makes the variables of functions that have not run yet, without those whose body has thrown
  // before: their error is known.
  void declare(std::span<const DefinitionPtr> definitions);
  void forget();
  // The whole variables by name, and the state that `definitions` need to continue training. Every
  // rank returns all of it.
  nn::StateDict state(std::span<const DefinitionPtr> definitions) const;
  nn::StateDict variables() const;
  // Throws InvalidArgument, before anything is changed, if names or shapes do not match.
  void load_state(std::span<const DefinitionPtr> definitions, const nn::StateDict& state);
  void load_variables(const nn::StateDict& values) const;

  // ---- called from within functions Runs the body on traced inputs and returns its results in the
  // layout in which they leave the step.
  std::vector<Tensor> run_body(const Definition& definition, const std::vector<Tensor>& inputs);
  Tensor variable(std::string_view name, const Shape& shape, const VariableOptions& options,
                  Site site);
  std::shared_ptr<void> module(std::string_view name, const std::type_info& type,
                               const std::function<internal::MadeModule()>& make,
                               const ModuleOptions& options, Site site);

  // Whether the function is of type "train".
  bool is_training() const { return body_->definition.is_train; }

  // Returns x on the placement of the scope, in consistent view.
  Tensor in_scope(const TensorArg& x) const;
  // Sets the placement of the scope and returns the previous one.
  Placement enter(const Placement& placement, Site site);
  void leave(const Placement& outer);
  // Returns "dense1", "dense2", … in the order of the body's calls.
  std::string unique_name(const std::string& kind);
  void minimize(const TensorArg& loss, const Minimizer& minimizer);

 private:
  struct Variable {
    Tensor tensor;
    bool trainable = true;
  };

  struct HeldModule {
    internal::MadeModule made;
    const std::type_info* type;
    Placement placement;
    View view;
  };

  // The function being traced.
  struct Body {
    const Definition& definition;
    Placement placement;  // of the scope
    bool only_declares;   // true: only variables are made, nothing is differentiated
    std::map<std::string, int64_t> num_unnamed = {};
    std::vector<Tensor> used = {};  // trainable variables that the body uses
    std::optional<Minimizer> minimizer = {};
  };

  HeldModule make_module(std::string_view name, const std::type_info& type,
                         const std::function<internal::MadeModule()>& make,
                         const ModuleOptions& options, Site site);
  // Registers the tensors of the module as variables.
  void add_variables(std::string_view name, const nn::ModuleBase& module, Site site);
  void note_use(const Tensor& variable);
  // The names of variables.
  std::vector<std::string> names_of(const std::vector<Tensor>& tensors) const;
  // Sets training or evaluation mode of all modules.
  void set_mode(bool is_train);
  // Throws InvalidArgument for a name that no variable has, or a value of another shape or dtype.
  void check_fit(const nn::StateDict& values) const;
  // The training functions among `definitions` that are compiled, in their order.
  std::vector<CompiledJob*> training(std::span<const DefinitionPtr> definitions) const;
  void load_functions(std::span<const DefinitionPtr> definitions,
                      std::span<const FunctionState> saved) const;
  CompiledJob& compiled(const DefinitionPtr& definition);
  // Makes the variables and finds what the function minimizes, by a trace that is then discarded.
  std::unique_ptr<CompiledJob> compile(const DefinitionPtr& definition);
  std::vector<Tensor> run(Body& body, const std::vector<Tensor>& inputs);
  void average_gradients() const;
  static Tensor as_result(const Tensor& output, View view);

  Placement devices_;
  std::map<std::string, Variable, std::less<>> variables_;
  std::map<int64_t, std::unique_ptr<CompiledJob>> compiled_;  // by number of definition
  std::set<int64_t> failed_;  // numbers of the definitions that could not be compiled
  std::map<std::string, HeldModule, std::less<>> modules_;
  std::optional<bool> mode_;  // training mode of all modules; unset: unknown
  Body* body_ = nullptr;      // set while a body runs
};

}  // namespace flow::job
