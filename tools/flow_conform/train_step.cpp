#include "tools/flow_conform/train_step.h"

#include <algorithm>
#include <cmath>

#include "autograd/autocast.h"
#include "autograd/recompute.h"
#include "core/allocator.h"
#include "nn/clip_grad.h"
#include "ops/cross_entropy.h"

namespace flow::conform {

namespace {

// The mean over all targets.
Tensor mean_loss(const Tensor& logits, const Tensor& targets) {
  return cross_entropy(logits.reshape({-1, logits.size(-1)}), targets.flatten());
}

// One norm for each placement that parameters lie on.
std::vector<Tensor> norms_of_gradients(const nn::ModuleBase& model) {
  std::vector<std::pair<Placement, std::vector<Tensor>>> groups;
  for (const Tensor& param : model.parameters()) {
    const Placement placement = param.is_global() ? param.placement() : Placement();
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& known) { return known.first == placement; });
    if (group == groups.end()) {
      groups.push_back({placement, {param}});
    } else {
      group->second.push_back(param);
    }
  }
  std::vector<Tensor> norms;
  for (const auto& [placement, params] : groups)
    norms.push_back(nn::utils::clip_grad_norm_(params, INFINITY));
  return norms;
}

double joined(const std::vector<Tensor>& norms) {
  double sum = 0;
  for (const Tensor& norm : norms)
    sum = std::hypot(sum, norm.item<double>());
  return sum;
}

// Parameters that have a gradient, by name.
nn::NamedTensors trained(const nn::ModuleBase& model) {
  nn::NamedTensors params = model.named_parameters();
  std::erase_if(params, [](const auto& param) { return !param.second.grad().defined(); });
  return params;
}

}  // namespace

EagerStep::EagerStep(nn::AnyModule model, optim::Optimizer& optimizer, const TrainLayout& layout)
    : model_(std::move(model)),
      optimizer_(optimizer),
      is_mixed_precision_(layout.is_mixed_precision()) {
  if (layout.has_replicas()) replicas_.emplace(model_);
}

Tensor EagerStep::loss_of(const Tensor& inputs, const Tensor& targets) {
  const AutocastGuard autocast(bfloat16, {.enabled = is_mixed_precision_});
  return mean_loss(replicas_ ? (*replicas_)(inputs) : model_(inputs), targets);
}

StepResult EagerStep::run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) {
  optimizer_.zero_grad();
  StepResult result{.loss = loss_of(inputs, targets), .gradients = {}};
  result.loss.backward();
  if (wants_gradients) {
    for (const auto& [name, param] : trained(model_))
      result.gradients[name] = param.grad().detach().clone();
  }
  result.grad_norm = joined(norms_of_gradients(model_));
  optimizer_.step();
  return result;
}

class GraphStep::TrainGraph : public nn::Graph<TrainGraph> {
 public:
  TrainGraph(GraphStep& step, bool wants_gradients)
      : model_(step.model_), wants_gradients_(wants_gradients) {
    add_optimizer(step.optimizer_);
    config().enable_zero({.stage = step.layout_.zero_stage()});
    if (step.layout_.is_mixed_precision()) config().enable_amp(bfloat16);
    if (step.options_.micro_batches > 0) config().set_micro_batches(step.options_.micro_batches);
  }

  StepTensors build(const Tensor& inputs, const Tensor& targets) {
    StepTensors tensors{mean_loss(model_(inputs), targets), {}, {}};
    tensors.loss.backward();
    if (wants_gradients_) {
      names_.clear();
      for (const auto& [name, param] : trained(model_)) {
        names_.push_back(name);
        tensors.gradients.push_back(param.grad().detach().clone());
      }
    }
    tensors.norms = norms_of_gradients(model_);
    return tensors;
  }

  // Of the gradients.
  const std::vector<std::string>& names() const { return names_; }

 private:
  nn::AnyModule model_;
  bool wants_gradients_;
  std::vector<std::string> names_;
};

GraphStep::GraphStep(nn::AnyModule model, optim::Optimizer& optimizer, const TrainLayout& layout,
                     const GraphStepOptions& options)
    : model_(std::move(model)), optimizer_(optimizer), layout_(layout), options_(options) {}

GraphStep::~GraphStep() = default;

StepResult GraphStep::run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) {
  // Gradients as results take memory: other steps do without.
  if (wants_gradients) {
    TrainGraph once(*this, true);
    return run_watched(once, inputs, targets);
  }
  if (graph_ == nullptr) graph_ = std::make_unique<TrainGraph>(*this, false);
  return run_watched(*graph_, inputs, targets);
}

StepResult GraphStep::run_watched(TrainGraph& graph, const Tensor& inputs, const Tensor& targets) {
  const nn::CompiledGraph& compiled = graph.compile(inputs, targets);
  if (&compiled != watched_) {
    memory_ = {.stated_peak_bytes = stated_peak_bytes(compiled, options_.other_bytes)};
    watched_ = &compiled;
  }
  reset_peak_memory_stats();
  const StepTensors tensors = graph(inputs, targets);
  memory_.measured_peak_bytes = std::max(memory_.measured_peak_bytes,
                                         memory_stats().peak_bytes_in_use - options_.other_bytes);
  StepResult result{.loss = tensors.loss, .grad_norm = joined(tensors.norms), .gradients = {}};
  for (size_t i = 0; i < tensors.gradients.size(); ++i)
    result.gradients[graph.names()[i]] = tensors.gradients[i];
  return result;
}

}  // namespace flow::conform
