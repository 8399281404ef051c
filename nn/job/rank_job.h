// What one rank keeps of the jobs: variables, compiled functions, and the function being traced.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
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

// How a training function updates its variables.
struct Minimizer {
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>& variables)> make = {};
  LrScheduler lr = {};
};

// A local tensor that shares the values of the array from `offset` (in elements) on, to be read
// only.
Tensor wrap(const Array& array, int64_t offset, const Shape& shape);
Array to_array(const Tensor& local);

class CompiledJob;

class RankJob {
 public:
  RankJob();
  ~RankJob();
  RankJob(const RankJob&) = delete;
  RankJob& operator=(const RankJob&) = delete;

  // The job whose function this thread is running. Throws InvalidArgument outside of one.
  static RankJob& in_function(const char* caller, Site site);

  // ---- commands, the same on all ranks
  // `inputs`: this rank's. Results are this rank's, in consistent view rank 0's and none elsewhere.
  std::vector<Array> call(const DefinitionPtr& definition, const std::vector<Array>& inputs);
  // Makes the variables of functions that have not run yet.
  void declare(std::span<const DefinitionPtr> definitions);
  void forget();
  // Variables by name, and what `definitions` need to go on with training; whole, on every rank.
  nn::StateDict state(std::span<const DefinitionPtr> definitions) const;
  nn::StateDict variables() const;
  // Throws InvalidArgument, before anything is changed, when names or shapes do not fit.
  void load_state(std::span<const DefinitionPtr> definitions, const nn::StateDict& state);
  void load_variables(const nn::StateDict& values) const;

  // ---- for the functions
  // Runs the body on traced inputs; gives its results as they leave the step.
  std::vector<Tensor> run_body(const Definition& definition, const std::vector<Tensor>& inputs);
  Tensor variable(std::string_view name, const Shape& shape, const VariableOptions& options,
                  Site site);
  std::shared_ptr<void> module(std::string_view name, const std::type_info& type,
                               const std::function<internal::MadeModule()>& make,
                               const ModuleOptions& options, Site site);
  // Moved to the placement of the scope, in consistent view.
  Tensor in_scope(const TensorArg& x) const;
  // Makes this the placement of the scope, and gives the one before.
  Placement enter(const Placement& placement, Site site);
  void leave(const Placement& outer);
  // "dense1", "dense2" in the order of a body's calls.
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
  };

  // The function being traced.
  struct Body {
    const Definition& definition;
    Placement placement;  // of the scope
    bool only_declares;   // nothing is differentiated
    std::map<std::string, int64_t> num_unnamed = {};
    std::vector<Tensor> used = {};  // trainable variables
    std::optional<Minimizer> minimizer = {};
  };

  HeldModule make_module(std::string_view name, const std::type_info& type,
                         const std::function<internal::MadeModule()>& make,
                         const ModuleOptions& options, Site site);
  // Its tensors' names and whether they are trained.
  void add_variables(std::string_view name, const nn::ModuleBase& module, Site site);
  void note_use(const Tensor& variable);
  // Puts modules in the mode of a function's type.
  void set_mode(bool is_train);
  // Throws InvalidArgument for another name, shape or dtype than a variable's.
  void check_fit(const nn::StateDict& values) const;
  CompiledJob& compiled(const DefinitionPtr& definition);
  // Makes variables and finds out what the function minimizes, by a trace that is dropped.
  std::unique_ptr<CompiledJob> compile(const DefinitionPtr& definition);
  std::vector<Tensor> run(Body& body, const std::vector<Tensor>& inputs);
  void average_gradients() const;
  Tensor as_result(const Tensor& output) const;

  Placement devices_;
  std::map<std::string, Variable, std::less<>> variables_;
  std::map<int64_t, std::unique_ptr<CompiledJob>> compiled_;  // by number of definition
  std::map<std::string, HeldModule, std::less<>> modules_;
  std::optional<bool> mode_;  // of all modules: training
  Body* body_ = nullptr;      // while one runs
};

}  // namespace flow::job
