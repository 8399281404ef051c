#include "nn/job/rank_job.h"

#include <algorithm>
#include <utility>

#include "boxing/layout.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "graph/trace/tracer.h"
#include "nn/graph.h"
#include "nn/job/function_state.h"
#include "nn/layout.h"
#include "nn/optim/lr_decay.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/reduce/reduce.h"

namespace flow::job {

Tensor wrap(const Array& array, int64_t offset, const Shape& shape) {
  const int64_t bytes = offset * static_cast<int64_t>(dtype_size(array.dtype()));
  auto* data = const_cast<std::byte*>(array.data()) + bytes;  // NOLINT(*-const-cast): read only
  return flow::internal::wrap_blob(data, array.dtype(), shape, {}, {}, Site::here());
}

Array to_array(const Tensor& local) {
  std::vector<std::byte> bytes(static_cast<size_t>(local.numel()) * dtype_size(local.dtype()));
  flow::internal::read_values(local, local.dtype(), bytes.data(), "job", Site::here());
  return Array::copy_of(bytes.data(), local.dtype(), local.shape());
}

namespace {

// The slot of the rank's context through which its threads find the job.
struct CurrentJob {
  RankJob* job = nullptr;
};

// Copies a whole value to a variable of any layout.
void set_value(const Tensor& variable, const Tensor& value) {
  const NoGradGuard no_grad;
  variable.copy_(nn::with_layout_of(value, variable, Site::here()));
}

// The layout of an input: batches are split along dim 0; scalars are replicated.
NdSbp input_sbp(const Shape& shape, const Placement& placement) {
  const bool is_whole = shape.empty() || placement.num_ranks() == 1;
  return is_whole ? sbp::broadcast : sbp::split(0);
}

// A global tensor whose local part is this rank's rows of the array.
Tensor global_of(const Array& array, const Placement& placement) {
  const NdSbp sbp = input_sbp(array.shape(), placement);
  const Box box = box_of(array.shape(), placement, sbp, placement.position(env::rank()));
  int64_t offset = 0;
  if (!array.shape().empty() && array.numel() > 0)
    offset = box.begin[0] * (array.numel() / array.shape()[0]);
  const Tensor part = wrap(array, offset, box.size);
  const boxing::LocalToGlobalAttrs attrs{
      .shape = array.shape(), .placement = placement, .nd_sbp = sbp, .sends_first = false};
  return dispatch(boxing::kLocalToGlobal, {&part}, attrs, Site::here());
}

}  // namespace

// The graph of a job function on this rank.
class CompiledJob : public nn::Graph<CompiledJob> {
 public:
  // Does not own the definition, so that a function ends with its last handle. Who runs the graph
  // has one.
  CompiledJob(RankJob& job, const Definition& definition) : job_(job), definition_(definition) {}

  std::vector<Tensor> build(const std::vector<Tensor>& inputs) {
    return job_.run_body(definition_, inputs);
  }

  // `names` are those of `variables`.
  void minimize_with(const Minimizer& minimizer, const std::vector<Tensor>& variables,
                     std::vector<std::string> names) {
    optimizer_ = minimizer.make(variables);
    updated_ = std::move(names);
    if (minimizer.lr) {
      schedule_ = std::make_unique<optim::lr_scheduler::LambdaLR>(
          *optimizer_, optim::lr_scheduler::LambdaLROptions{.lr_lambda = minimizer.lr});
    }
    add_optimizer(*optimizer_, {.lr_scheduler = schedule_.get()});
  }

  bool is_training() const { return optimizer_ != nullptr; }

  // The names of the variables that a training function updates.
  const std::vector<std::string>& updated() const { return updated_; }

  FunctionState state() const {
    return {.variables = updated_,
            .optimizer = optimizer_->state_dict(),
            .schedule = schedule_ == nullptr ? nn::StateDict() : schedule_->state_dict()};
  }

  void load(const FunctionState& state) const {
    if (schedule_ == nullptr && !state.schedule.empty()) {
      throw InvalidArgument(
          "[job] the file has the state of a learning rate schedule, but the function that it "
          "belongs to has none; give its optimizer the schedule that was saved");
    }
    optimizer_->load_state_dict(state.optimizer);
    if (schedule_ != nullptr) schedule_->load_state_dict(state.schedule);
  }

 private:
  RankJob& job_;
  const Definition& definition_;
  std::unique_ptr<optim::Optimizer> optimizer_;  // of a training function
  std::vector<std::string> updated_;
  std::unique_ptr<optim::lr_scheduler::LambdaLR> schedule_;
};

RankJob::RankJob() : devices_(boxing::all_ranks(DeviceType::kCpu)) {
  thread_state().context->slot<CurrentJob>().job = this;
}

RankJob::~RankJob() {
  thread_state().context->slot<CurrentJob>().job = nullptr;
}

RankJob& RankJob::in_function(const char* caller, Site site) {
  RankJob* job = flow::internal::current_thread_state == nullptr
                     ? nullptr
                     : thread_state().context->slot<CurrentJob>().job;
  if (job == nullptr || job->body_ == nullptr) {
    throw InvalidArgument(str("[job] ", caller,
                              " was called outside of a job function; call it in the function "
                              "given to global_function"),
                          site);
  }
  return *job;
}

std::vector<Array> RankJob::call(const DefinitionPtr& definition,
                                 const std::vector<Array>& inputs) {
  CompiledJob& job = compiled(definition);
  const bool is_mirrored = definition->view == View::kMirrored;
  std::vector<Tensor> tensors;
  for (const Array& input : inputs)
    tensors.push_back(is_mirrored ? wrap(input, 0, input.shape()) : global_of(input, devices_));
  const GradModeGuard grad_mode(definition->is_train);
  set_mode(definition->is_train);
  std::vector<Array> results;
  for (const Tensor& output : job(tensors)) {
    const bool is_here = is_mirrored || output.placement().contains(env::rank());
    if (is_here) results.push_back(to_array(output.to_local()));
  }
  return results;
}

void RankJob::declare(std::span<const DefinitionPtr> definitions) {
  for (const DefinitionPtr& definition : definitions) {
    if (!failed_.contains(definition->number)) compiled(definition);
  }
}

void RankJob::forget() {
  compiled_.clear();
  variables_.clear();
  modules_.clear();
}

nn::StateDict RankJob::variables() const {
  nn::StateDict values;
  for (const auto& [name, variable] : variables_)
    values.emplace(name, variable.tensor.detach().full());
  return values;
}

std::vector<CompiledJob*> RankJob::training(std::span<const DefinitionPtr> definitions) const {
  std::vector<CompiledJob*> jobs;
  for (const DefinitionPtr& definition : definitions) {
    const auto found = compiled_.find(definition->number);
    if (found != compiled_.end() && found->second->is_training())
      jobs.push_back(found->second.get());
  }
  return jobs;
}

nn::StateDict RankJob::state(std::span<const DefinitionPtr> definitions) const {
  nn::StateDict state = variables();
  size_t number = 0;
  for (const CompiledJob* job : training(definitions))
    add_function(state, number++, job->state());
  return state;
}

void RankJob::check_fit(const nn::StateDict& values) const {
  for (const auto& [name, value] : values) {
    const auto found = variables_.find(name);
    if (found == variables_.end()) {
      throw InvalidArgument(str("[job] no function uses a variable named ", name,
                                "; leave it out, or define the function first"));
    }
    const Tensor& variable = found->second.tensor;
    if (variable.shape() == value.shape() && variable.dtype() == value.dtype()) continue;
    throw InvalidArgument(str("[job] variable ", name, " is ", variable.shape(), ' ',
                              variable.dtype(), "; received ", value.shape(), ' ', value.dtype(),
                              "; load values that were saved from the same functions"));
  }
}

void RankJob::load_variables(const nn::StateDict& values) const {
  check_fit(values);
  for (const auto& [name, value] : values)
    set_value(variables_.find(name)->second.tensor, value);
}

void RankJob::load_state(std::span<const DefinitionPtr> definitions, const nn::StateDict& state) {
  nn::StateDict values, of_functions;
  for (const auto& [name, value] : state) {
    const bool is_variable = variables_.contains(name) || !is_of_function(name);
    (is_variable ? values : of_functions).emplace(name, value);
  }
  for (const auto& [name, variable] : variables_) {
    if (!values.contains(name)) {
      throw InvalidArgument(str("[job] the file has no variable ", name, ' ',
                                variable.tensor.shape(),
                                "; load a file that was saved from the same functions"));
    }
  }
  check_fit(values);
  if (of_functions.empty()) {
    compiled_.clear();
    declare(definitions);
  } else {
    load_functions(definitions, read_functions(of_functions));
  }
  load_variables(values);
}

void RankJob::load_functions(std::span<const DefinitionPtr> definitions,
                             std::span<const FunctionState> saved) const {
  const std::vector<CompiledJob*> jobs = training(definitions);
  std::vector<std::vector<std::string>> updated;
  for (const CompiledJob* job : jobs)
    updated.push_back(job->updated());
  const std::vector<const FunctionState*> states = match_functions(saved, updated);
  for (size_t i = 0; i < jobs.size(); ++i)
    jobs[i]->load(*states[i]);
}

CompiledJob& RankJob::compiled(const DefinitionPtr& definition) {
  const int64_t number = definition->number;
  const auto found = compiled_.find(number);
  if (found != compiled_.end()) return *found->second;
  failed_.insert(number);
  CompiledJob& job = *compiled_.emplace(number, compile(definition)).first->second;
  failed_.erase(number);
  return job;
}

std::unique_ptr<CompiledJob> RankJob::compile(const DefinitionPtr& definition) {
  auto job = std::make_unique<CompiledJob>(*this, *definition);
  const GradModeGuard grad_mode(definition->is_train);
  Body body{.definition = *definition, .placement = devices_, .only_declares = true};

  struct DropGrads {
    const std::vector<Tensor>& variables;

    ~DropGrads() {
      for (const Tensor& variable : variables)
        variable.set_grad(Tensor());
    }
  };

  {
    const DropGrads drop_grads{body.used};
    graph::Trace trace;
    std::vector<Tensor> inputs;
    for (const internal::InputSpec& input : definition->inputs) {
      TensorOptions options{.dtype = input.dtype};
      if (definition->view == View::kConsistent) {
        options.placement = devices_;
        options.sbp = input_sbp(input.shape, devices_);
      }
      const auto example = [&] {
        const graph::SuspendTracing outside;
        return zeros(input.shape, options);
      };
      inputs.push_back(trace.add_input(example()));
    }
    run(body, inputs);
  }
  if (body.minimizer) job->minimize_with(*body.minimizer, body.used, names_of(body.used));
  return job;
}

std::vector<Tensor> RankJob::run_body(const Definition& definition,
                                      const std::vector<Tensor>& inputs) {
  Body body{.definition = definition, .placement = devices_, .only_declares = false};
  std::vector<Tensor> results = run(body, inputs);
  for (Tensor& result : results)
    result = as_result(result, definition.view);
  return results;
}

std::vector<Tensor> RankJob::run(Body& body, const std::vector<Tensor>& inputs) {
  struct Leave {
    Body*& slot;

    ~Leave() { slot = nullptr; }
  } leave{body_};

  body_ = &body;
  std::vector<Tensor> results = body.definition.body(inputs);
  if (body.definition.is_train && !body.minimizer) {
    throw InvalidArgument(
        "[job] a function of type \"train\" did not minimize anything; call an optimizer's "
        "minimize, or make it {.type = \"predict\"}");
  }
  return results;
}

// In consistent view, the whole result on the first device; in mirrored view, the result of this
// device.
Tensor RankJob::as_result(const Tensor& output, View view) {
  if (!output.defined()) {
    throw InvalidArgument(
        "[job] the function returned an undefined blob; return only blobs that have values");
  }
  if (view == View::kMirrored) {
    if (output.is_global()) {
      throw InvalidArgument(str("[job] the function returned the global blob ", output.meta(),
                                " in mirrored view, where every device returns a blob of its own; "
                                "return its to_local()"));
    }
    return output.detach();
  }
  if (!output.is_global()) {
    throw InvalidArgument(str("[job] the function returned the local blob ", output.meta(),
                              " in consistent view, where results are global; compute it from the "
                              "arguments or variables, or return its to_global()"));
  }
  return output.detach().to_global({.placement = Placement("cpu", {0}), .sbp = sbp::broadcast});
}

Tensor RankJob::variable(std::string_view name, const Shape& shape, const VariableOptions& options,
                         Site site) {
  const bool is_mirrored = body_->definition.view == View::kMirrored;
  if (is_mirrored && !(options.distribute == sbp::broadcast)) {
    throw InvalidArgument(
        str("[job] variable ", name, " cannot be distributed as ", options.distribute,
            " in mirrored view, where every device has its own model; use the consistent view"),
        site);
  }
  if (options.distribute.is_partial() ||
      (options.distribute.is_split() && options.distribute.dim() >= shape.size())) {
    throw InvalidArgument(str("[job] variable ", name, " ", shape, " cannot be distributed as ",
                              options.distribute, "; split one of its axes, or broadcast it"),
                          site);
  }
  const NdSbp nd_sbp = options.distribute;
  auto found = variables_.find(name);
  if (found == variables_.end()) {
    const graph::SuspendTracing outside;
    const NoGradGuard no_grad;
    Tensor tensor = empty(shape, {.dtype = options.dtype,
                                  .placement = is_mirrored ? devices_ : body_->placement,
                                  .sbp = nd_sbp});
    (options.initializer ? options.initializer : xavier_uniform())(tensor);
    if (is_mirrored) tensor = tensor.to_local().clone();
    tensor.requires_grad_(options.trainable);
    found = variables_.emplace(name, Variable{tensor, options.trainable}).first;
  }
  const Variable& variable = found->second;
  const TensorMeta& has = variable.tensor.meta();
  const bool has_requested_layout = is_mirrored ? !variable.tensor.is_global()
                                                : variable.tensor.is_global() &&
                                                      has.placement == body_->placement &&
                                                      has.nd_sbp == nd_sbp;
  if (!(has.shape == shape) || has.dtype != options.dtype || !has_requested_layout ||
      variable.trainable != options.trainable) {
    throw InvalidArgument(
        str("[job] variable ", name, " already exists as ", has, "; received a request for ", shape,
            ' ', options.dtype, ' ', nd_sbp, " on ", body_->placement, "; use another name"),
        site);
  }
  note_use(variable.tensor);
  return variable.tensor;
}

void RankJob::note_use(const Tensor& variable) {
  const auto is_it = [&](const Tensor& other) { return other.is_same(variable); };
  if (variable.requires_grad() && std::none_of(body_->used.begin(), body_->used.end(), is_it))
    body_->used.push_back(variable);
}

std::vector<std::string> RankJob::names_of(const std::vector<Tensor>& tensors) const {
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors) {
    const auto found = std::find_if(variables_.begin(), variables_.end(), [&](const auto& entry) {
      return entry.second.tensor.is_same(tensor);
    });
    FLOW_ASSERT(found != variables_.end());
    names.push_back(found->first);
  }
  return names;
}

Tensor RankJob::in_scope(const TensorArg& x) const {
  const Tensor& tensor = x.tensor();
  if (!tensor.is_global() || tensor.placement() == body_->placement) return tensor;
  return tensor.to_global(
      {.placement = body_->placement, .sbp = input_sbp(tensor.shape(), body_->placement)},
      x.site());
}

Placement RankJob::enter(const Placement& placement, Site site) {
  if (body_->definition.view == View::kMirrored) {
    throw InvalidArgument(
        "[job] placement() cannot be used in mirrored view, where every device runs the whole "
        "function; use the consistent view",
        site);
  }
  for (const int64_t rank : placement.ranks()) {
    if (!devices_.contains(rank)) {
      throw InvalidArgument(
          str("[job] placement() names a device that does not exist; received device ", rank,
              " of ", devices_.num_ranks(), "; set more devices with device_num"),
          site);
    }
  }
  return std::exchange(body_->placement, placement);
}

void RankJob::leave(const Placement& outer) {
  if (body_ != nullptr) body_->placement = outer;
}

std::string RankJob::unique_name(const std::string& kind) {
  return str(kind, ++body_->num_unnamed[kind]);
}

void RankJob::minimize(const TensorArg& loss, const Minimizer& minimizer) {
  if (!body_->definition.is_train) {
    throw InvalidArgument(
        "[job] minimize() was called in a function of type \"predict\"; make it {.type = "
        "\"train\"}",
        loss.site());
  }
  if (body_->minimizer) {
    throw InvalidArgument(
        "[job] minimize() was called twice in one function; add the losses and minimize their sum",
        loss.site());
  }
  body_->minimizer = minimizer;
  if (body_->only_declares) {
    for (const Tensor& variable : body_->used)
      variable.set_grad(zeros_like(variable));
    return;
  }
  mean(loss).backward(loss.site());
  if (body_->definition.view == View::kMirrored) average_gradients();
}

// Averages gradients over the devices. This is the gradient of the mean over all devices' losses,
// because each device has the same number of elements.
void RankJob::average_gradients() const {
  const NoGradGuard no_grad;
  const auto num_devices = static_cast<double>(devices_.num_ranks());
  for (const Tensor& variable : body_->used) {
    if (!variable.grad().defined()) continue;
    const Tensor sum = variable.grad()
                           .to_global({.placement = devices_, .sbp = sbp::partial_sum})
                           .to_global({.sbp = sbp::broadcast});
    variable.set_grad(div(sum.to_local(), num_devices));
  }
}

}  // namespace flow::job
