#include "nn/graph.h"

#include <algorithm>
#include <set>

#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/backward_rules.h"
#include "boxing/layout.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/default_dtype.h"
#include "core/env.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/strided_twin.h"
#include "core/traced.h"
#include "core/view_link.h"
#include "eager/runtime.h"
#include "graph/compile.h"
#include "graph/passes/fuse_elementwise.h"
#include "graph/passes/overlap_redistributions.h"
#include "graph/passes/settle_stages.h"
#include "graph/passes/shard_captures.h"
#include "graph/trace/tracer.h"
#include "nn/clip_grad.h"
#include "nn/compiled_graph_state.h"
#include "nn/graphs/call_turns.h"
#include "nn/graphs/graph_timeline.h"
#include "nn/graphs/kept_plans.h"
#include "nn/graphs/plan_cache.h"
#include "nn/graphs/step_verifier.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/zero.h"
#include "pipeline/order.h"

namespace flow::nn {

namespace {

// The meta with which an input is passed to a plan: local parts are plain and row-major.
MetaPtr plain_meta(const Tensor& tensor) {
  const MetaPtr meta = tensor.meta_ptr();
  if (meta->is_contiguous) return meta;
  const MetaPtr strided = meta->blocked == nullptr ? meta : with_blocked(meta, nullptr);
  return with_strides(strided, contiguous_strides(strided->local_shape));
}

GraphSignature signature_of(const internal::TensorReader& arguments) {
  GraphSignature signature;
  signature.arguments = arguments.type;
  signature.sizes = arguments.sizes;
  signature.default_dtype = default_dtype();
  signature.grad_enabled = is_grad_enabled();
  signature.default_placement = thread_state().default_placement;
  signature.default_sbp = thread_state().default_sbp;
  signature.forbids_implicit_boxing = thread_state().forbids_implicit_boxing;
  signature.is_autocast = is_autocast_enabled();
  if (signature.is_autocast) signature.autocast = autocast_dtype();
  for (const Tensor& tensor : arguments.tensors) {
    if (!tensor.defined()) {
      throw InvalidArgument(
          "[graph] an argument is an undefined tensor; pass a tensor with values or remove the "
          "parameter from build()");
    }
    if (tensor.impl().trace != nullptr) throw_traced("graph", tensor, Site::none());
    signature.inputs.push_back(plain_meta(tensor));
  }
  return signature;
}

// Removes the gradients of parameters during a trace and restores them afterwards.
class GradsAside {
 public:
  explicit GradsAside(const std::vector<Tensor>& parameters) {
    for (const Tensor& parameter : parameters) {
      grads_.emplace_back(parameter, parameter.grad());
      parameter.set_grad(Tensor());
    }
  }

  // Backwards: of a parameter that two optimizers have, the first gradient is the one it had.
  ~GradsAside() {
    for (auto entry = grads_.rbegin(); entry != grads_.rend(); ++entry)
      entry->first.set_grad(entry->second);
  }

  GradsAside(const GradsAside&) = delete;
  GradsAside& operator=(const GradsAside&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> grads_;
};

// Counts steps of optimizers, and takes that back unless the run ends well.
class CountedSteps {
 public:
  CountedSteps() = default;

  ~CountedSteps() {
    for (optim::TracedStep* step : counted_)
      step->take_back();
  }

  CountedSteps(const CountedSteps&) = delete;
  CountedSteps& operator=(const CountedSteps&) = delete;

  void begin(optim::TracedStep& step) {
    step.begin_run();
    counted_.push_back(&step);
  }

  void keep() { counted_.clear(); }

 private:
  std::vector<optim::TracedStep*> counted_;
};

// Scalars are replicated on every rank, so reading one does not wait for other ranks.
Tensor replicated_scalar(const Tensor& output) {
  if (!output.defined()) {
    throw InvalidArgument(
        "[graph] build() returned an undefined tensor; return only tensors that have values");
  }
  if (!output.is_global() || output.dim() != 0) return output;
  const NoGradGuard no_grad;
  const SiteScope scope(line_that_made(output));
  return output.to_global({.placement = boxing::all_ranks(output.device()), .sbp = sbp::broadcast});
}

// What the list of passes depends on besides the traced step.
struct StepPasses {
  graph::PassSet set = graph::PassSet::kAll;
  std::set<std::string> disabled = {};             // names of passes
  std::vector<graph::ShardedCapture> shards = {};  // the parameters that ZeRO stage 3 shards
  bool gathers_once = false;                       // ZeroOptions::once_per_step
  graph::OverlapOptions overlap = {};
  pipeline::MicroBatching batching = {};
};

// ZeRO: parameters are shards of the ranks, gathered where the step uses them.
graph::Pass zero_pass(const StepPasses& step) {
  const auto run = [shards = step.shards, once = step.gathers_once,
                    batching = step.batching](graph::UnloweredStep& unlowered) {
    graph::Graph& graph = unlowered.graph;
    return graph::shard_captures(graph, shards,
                                 {.once = once, .by_phase = batching.is_needed(graph)});
  };
  std::string settings = step.gathers_once ? "once" : "at each use";
  for (const graph::ShardedCapture& shard : step.shards)
    settings += str(", ", shard.capture, " as ", shard.sbp);
  return {"shard_captures", true, run, settings};
}

// Of a step in micro-batches, only nodes that run in each of them are fused.
int64_t fuse(graph::Graph& graph, const pipeline::MicroBatching& batching) {
  return batching.is_needed(graph) ? graph::fuse_elementwise(graph, batching.cut(graph))
                                   : graph::fuse_elementwise(graph);
}

// Passes that change nothing in steps of several micro-batches or stages: updates come after all
// actions there, and what writes over a part of a batch copies the part first.
bool is_for_whole_batches(const graph::Pass& pass) {
  return pass.name == "move_updates" || pass.name == "fuse_activation_grad" ||
         pass.name == "save_slopes" || pass.name == "overwrite_inputs";
}

// All passes of the step, in the order in which they run.
std::vector<graph::Pass> list_passes(const StepPasses& step) {
  std::vector<graph::Pass> passes = graph::optimizing_passes(step.set);
  for (graph::Pass& pass : passes) {
    if (pass.name == "fuse_elementwise") {
      pass.run = [batching = step.batching](graph::UnloweredStep& unlowered) {
        return fuse(unlowered.graph, batching);
      };
    } else if (is_for_whole_batches(pass)) {
      pass.run = [run = pass.run, batching = step.batching](graph::UnloweredStep& unlowered) {
        return batching.is_needed(unlowered.graph) ? 0 : run(unlowered);
      };
    }
  }
  std::erase_if(passes, [&](const graph::Pass& pass) { return step.disabled.contains(pass.name); });
  const auto first =
      passes.insert(passes.begin(), graph::graph_pass("settle_stages", true, graph::settle_stages));
  if (!step.shards.empty()) passes.insert(first + 1, zero_pass(step));
  passes.push_back(graph::overlap_pass(step.overlap));
  passes.push_back(pipeline::micro_batching_pass(step.batching));
  return passes;
}

}  // namespace

GraphBase::Turn::Turn(GraphBase& graph) : turns_(*graph.turns_) {
  turns_.begin();
}

GraphBase::Turn::~Turn() {
  turns_.end();
}

GraphBase::GraphBase()
    : plans_(std::make_unique<KeptPlans>()), turns_(std::make_unique<CallTurns>()) {}

GraphBase::~GraphBase() = default;

void GraphBase::add_optimizer(optim::Optimizer& optimizer, const GraphOptimizerOptions& options,
                              Site site) {
  if (options.lr_scheduler != nullptr && &options.lr_scheduler->optimizer() != &optimizer) {
    throw InvalidArgument(
        "[graph] the lr_scheduler given to add_optimizer belongs to another optimizer; give the "
        "one made for this optimizer",
        site);
  }
  optimizers_.push_back({&optimizer, options, site});
  plans_->clear();
}

void GraphBase::check_gradients() const {
  if (!is_grad_enabled()) return;
  for (const OptimizerEntry& entry : optimizers_) {
    const std::vector<Tensor> parameters = entry.optimizer->parameters();
    const auto has_gradient = [](const Tensor& parameter) { return parameter.grad().defined(); };
    if (std::any_of(parameters.begin(), parameters.end(), has_gradient)) continue;
    throw InvalidArgument(
        "[graph] build() gave no parameter of the optimizer of this add_optimizer() a gradient, so "
        "a step would train nothing; call backward() in build() on a loss that was computed from "
        "these parameters, or use a graph without an optimizer for evaluation",
        user_site(entry.site));
  }
}

CompiledGraph& GraphBase::compiled_for(const internal::TensorReader& arguments, const Build& build,
                                       std::span<const std::byte> members) {
  if (const auto* trace = static_cast<const graph::Trace*>(thread_state().trace)) {
    const Site site = trace->last_site();
    const std::string after =
        site.is_known() ? str(", after the op at ", site.file(), ":", site.line()) : "";
    throw Unsupported(str("[graph] a graph was called in build() of another graph", after,
                          "; call its build() instead"),
                      site);
  }
  refuse_anomaly_in_graph(Site::none());
  GraphSignature signature = signature_of(arguments);
  signature.amp = config_.amp_;
  signature.scaler = config_.scaler_;
  signature.zero = config_.zero_;
  signature.micro_batches = config_.micro_batches_;
  signature.schedule = config_.schedule_;
  signature.recomputes = config_.recomputes_;
  signature.is_exact = config_.is_exact_;
  signature.passes = config_.passes_;
  signature.overlap = config_.overlap_;
  signature.disabled_passes = config_.disabled_passes_;
  CompiledGraph* found = plans_->use([&](const CompiledGraph& plan) {
    return plan.state_->signature == signature && plan.state_->modules.has_modes();
  });
  if (found != nullptr && !found->state_->fits()) {
    plans_->remove_last();  // free its memory before allocating that of the new one
    found = nullptr;
  }
  if (found == nullptr) {
    found = &plans_->add(compile_for(arguments, build, members));
    found->state_->signature = std::move(signature);
  }
  plans_->keep_at_most(config_.max_plans_);  // before the new plan allocates its memory in a run
  return *found;
}

const CompiledGraph& GraphBase::last_plan(const char* function) const {
  const CompiledGraph* plan = plans_->last();
  if (plan != nullptr) return *plan;
  throw InvalidArgument(
      str("[graph] ", function, "() needs a plan; call the graph or its compile() first"));
}

std::string GraphBase::summary() const {
  return last_plan("summary").summary();
}

std::string GraphBase::explain() const {
  return last_plan("explain").explain();
}

void GraphBase::dump(const std::string& folder) const {
  last_plan("dump").dump(folder);
}

autograd::BackwardRules GraphBase::backward_rules(const ZeroParameters& zero,
                                                  optim::TracedScaler* scaler) const {
  autograd::BackwardRules rules;
  if (scaler != nullptr) {
    rules.scale_seed = [scaler](const Tensor& output, const Tensor& seed) {
      return scaler->scaled(output, seed);
    };
  }
  if (config_.zero_.stage >= 2) {
    rules.lay_out = [this, &zero](const Tensor& leaf, const Tensor& gradient) {
      return zero.gradient_in_parts(leaf, gradient, !config_.zero_.once_per_step);
    };
  }
  return rules;
}

std::unique_ptr<CompiledGraph> GraphBase::compile_for(const internal::TensorReader& arguments,
                                                      const Build& build,
                                                      std::span<const std::byte> members) {
  std::unique_ptr<CompiledGraph> compiled(new CompiledGraph());
  CompiledGraph::State& state = *compiled->state_;
  state.kept = plans_.get();
  std::vector<Tensor> parameters;
  ZeroParameters zero;
  for (const OptimizerEntry& entry : optimizers_) {
    if (config_.zero_.stage > 0) entry.optimizer->shard_state();
    zero.add(*entry.optimizer, config_.zero_.stage);
    const std::vector<Tensor> own = entry.optimizer->parameters();
    parameters.insert(parameters.end(), own.begin(), own.end());
  }
  const GradsAside grads_aside(parameters);
  graph::TracedStep traced;
  StepPasses step{.set = config_.passes_,
                  .disabled = config_.disabled_passes_,
                  .gathers_once = config_.zero_.once_per_step,
                  .overlap = config_.overlap_};
  {
    const ZeroParameters::StandIns stand_ins(zero);
    graph::Trace trace;
    const bool is_scaled =
        config_.scaler_ != nullptr && config_.scaler_->is_enabled() && !optimizers_.empty();
    if (is_scaled) state.scaler.emplace(*config_.scaler_, trace);
    const autograd::BackwardRulesGuard rules(
        backward_rules(zero, is_scaled ? &*state.scaler : nullptr));
    std::vector<Tensor> inputs, outputs;
    for (const Tensor& argument : arguments.tensors)
      inputs.push_back(trace.add_input(argument));
    {
      CalledModules called(config_.recomputes_);
      std::optional<AutocastGuard> autocast;
      if (config_.amp_) autocast.emplace(*config_.amp_);
      outputs = build(inputs, compiled->result_);
      state.modules = called.take();
    }
    check_gradients();
    std::vector<Tensor> results;  // the outputs that guard optimizer steps come first
    for (const OptimizerEntry& entry : optimizers_) {
      const SiteScope scope(entry.site);
      const Tensor is_finite = is_scaled ? state.scaler->unscale(*entry.optimizer) : Tensor();
      state.guards.push_back(is_finite.defined() ? static_cast<int64_t>(results.size()) : -1);
      if (is_finite.defined()) results.push_back(replicated_scalar(is_finite));
      if (entry.options.clip_grad_norm) {
        utils::clip_grad_norm_(entry.optimizer->parameters(), *entry.options.clip_grad_norm);
      }
    }
    state.num_guards = results.size();
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      const SiteScope scope(optimizers_[i].site);
      trace.set_guard(state.guards[i]);
      state.steps.emplace_back(*optimizers_[i].optimizer, trace);
    }
    trace.set_guard(-1);
    for (const Tensor& output : outputs)
      results.push_back(replicated_scalar(output));
    traced = trace.finish(results);
    step.shards = stand_ins.replace_in(traced);
  }
  step.batching = state.batching = {
      .micro_batches = config_.micro_batches_,
      .rule = config_.schedule_,
      .num_arguments = arguments.tensors.size(),
      .requires_exact = config_.is_exact_,
      .receives_early = config_.overlap_.enabled && config_.overlap_.receives_early};
  state.traced = traced.graph;
  state.passes = list_passes(step);
  std::shared_ptr<const graph::CompiledArtifact> artifact = graph::compile_once(
      std::move(traced.graph), state.passes,
      plan_cache(config_.plan_cache_.value_or(env_string("FLOW_PLAN_CACHE", ""))));
  state.tensors = TensorReads(traced.handles, members);
  state.plan = std::make_shared<graph::CompiledStep>(
      std::move(traced.captures), std::move(artifact), traced.copied, plans_->arena());
  state.check_guarded_writes();
  state.check_writes();
  return compiled;
}

std::vector<Tensor> GraphBase::run(CompiledGraph& compiled, const std::vector<Tensor>& arguments) {
  const NoGradGuard no_grad;
  CompiledGraph::State& state = *compiled.state_;
  // Before anything is counted, because both may throw.
  state.plan->agree();
  if (has_view_links()) std::for_each(arguments.begin(), arguments.end(), refresh_view);
  std::vector<Tensor> inputs;
  for (const Tensor& argument : arguments) {
    const Tensor input = strided_form(argument).contiguous();
    // The step may write a captured tensor before it has read an argument in the same memory.
    inputs.push_back(state.plan->writes(input) ? input.clone() : input);
  }
  if (state.scaler) {
    state.scaler->begin_run();
    const std::vector<Tensor> numbers = state.scaler->inputs();
    inputs.insert(inputs.end(), numbers.begin(), numbers.end());
  }
  CountedSteps counted;
  for (optim::TracedStep& step : state.steps) {
    counted.begin(step);
    const std::vector<Tensor> rates = step.inputs();
    inputs.insert(inputs.end(), rates.begin(), rates.end());
  }
  GraphTimeline* timeline = config_.timeline_.get();
  const bool is_timed = timeline != nullptr && timeline->begin_run(state.plan);
  state.plan->use_cuda_graphs(config_.cuda_graphs_);
  std::optional<StepVerifier> verifier = state.verifier_of_first_run(inputs);
  std::vector<Tensor> outputs = state.plan->run(inputs);
  counted.keep();
  if (verifier) {
    verifier->check(outputs, config_.passes_ == graph::PassSet::kExact &&
                                 !state.batching.is_needed(state.plan->graph()));
  }
  if (state.scaler) {
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      if (!state.steps[i].updates()) continue;
      const int64_t guard = state.guards[i];
      const bool is_finite = guard < 0 || outputs[static_cast<size_t>(guard)].item<bool>();
      if (!is_finite) state.steps[i].take_back();
      state.scaler->found(*optimizers_[i].optimizer, is_finite);
    }
    state.scaler->end_run();
    outputs.erase(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(state.num_guards));
  }
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    optim::lr_scheduler::LRScheduler* schedule = optimizers_[i].options.lr_scheduler;
    if (schedule != nullptr && state.steps[i].updates()) schedule->step();
  }
  // Last, because the rank that writes may throw after a step that all ranks count.
  if (is_timed) timeline->end_run(state.plan, [&] { return state.timeline_frame(); });
  return outputs;
}

}  // namespace flow::nn
