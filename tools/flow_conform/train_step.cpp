#include "tools/flow_conform/train_step.h"

#include <algorithm>
#include <cmath>

#include "autograd/autocast.h"
#include "autograd/recompute.h"
#include "boxing/ranks/run_ranks.h"
#include "core/allocator.h"
#include "core/context.h"
#include "graph/run/compiled_step.h"
#include "nn/clip_grad.h"
#include "ops/loss/cross_entropy.h"

namespace flow::conform {

Tensor mean_loss(const Tensor& logits, const Tensor& targets) {
  return cross_entropy(logits.reshape({-1, logits.size(-1)}), targets.flatten());
}

namespace {

// The parameters that have a gradient, by name.
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
  result.grad_norm = nn::utils::clip_grad_norm_(model_.parameters(), INFINITY).item<double>();
  optimizer_.step();
  return result;
}

class GraphStep::TrainGraph : public nn::Graph<TrainGraph> {
 public:
  TrainGraph(GraphStep& step, bool wants_gradients)
      : model_(step.model_), replicas_(step.replicas_), wants_gradients_(wants_gradients) {
    add_optimizer(step.optimizer_);
    config().enable_zero({.stage = step.layout_.zero_stage()});
    if (step.layout_.is_mixed_precision()) config().enable_amp(bfloat16);
    config().set_micro_batches(step.options_.pipelining.micro_batches);
    // The graph of the first step runs once.
    if (!step.options_.timeline.empty() && !wants_gradients)
      config().set_timeline(step.options_.timeline);
    if (step.layout_.num_stages() > 1) config().set_schedule(step.options_.pipelining.rule);
  }

  StepTensors build(const Tensor& inputs, const Tensor& targets) {
    const Tensor logits = replicas_ ? (*replicas_)(inputs) : model_(inputs);
    StepTensors tensors{.loss = mean_loss(logits, targets), .norm = {}, .gradients = {}};
    tensors.loss.backward();
    tensors.norm = nn::utils::clip_grad_norm_(
        model_.parameters(), INFINITY);  // infinity: computes the norm without clipping
    if (wants_gradients_) {
      names_.clear();
      for (const auto& [name, param] : trained(model_)) {
        names_.push_back(name);
        tensors.gradients.push_back(param.grad().detach());
      }
    }
    return tensors;
  }

  // Of the gradients.
  const std::vector<std::string>& names() const { return names_; }

 private:
  nn::AnyModule model_;
  Replicas replicas_;
  bool wants_gradients_;
  std::vector<std::string> names_;
};

GraphStep::GraphStep(nn::AnyModule model, optim::Optimizer& optimizer, const TrainLayout& layout,
                     const GraphStepOptions& options)
    : model_(std::move(model)), optimizer_(optimizer), layout_(layout), options_(options) {
  if (layout.has_replicas()) replicas_.emplace(model_);
}

GraphStep::~GraphStep() = default;

StepResult GraphStep::run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) {
  // Gradients that are results take memory, so other steps do not return them.
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
    record_ = {.stated_peak_bytes = stated_peak_bytes(compiled, options_.other_bytes),
               .predicted_bubble = predicted_bubble(compiled, options_.pipelining)};
    watched_ = &compiled;
  }
  reset_peak_memory_stats();
  if (layout_.num_stages() > 1)
    env::barrier();  // the time of a pipeline starts on all ranks together
  const StepTensors tensors = graph(inputs, targets);
  record_.measured_peak_bytes = std::max(record_.measured_peak_bytes,
                                         memory_stats().peak_bytes_in_use - options_.other_bytes);
  record_.runs.push_back(compiled.plan().last_run());
  StepResult result{
      .loss = tensors.loss, .grad_norm = tensors.norm.item<double>(), .gradients = {}};
  for (size_t i = 0; i < tensors.gradients.size(); ++i)
    result.gradients[graph.names()[i]] = tensors.gradients[i];
  return result;
}

}  // namespace flow::conform
