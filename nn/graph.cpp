#include "nn/graph.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "autograd/backward_rules.h"
#include "autograd/grad_mode.h"
#include "boxing/layout.h"
#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/passes/value_map.h"
#include "graph/plan.h"
#include "graph/plan_file.h"
#include "nn/called_modules.h"
#include "nn/clip_grad.h"
#include "nn/file.h"
#include "nn/graph_timeline.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/optim/traced_scaler.h"
#include "nn/optim/traced_step.h"
#include "nn/plan_cache.h"
#include "nn/zero.h"
#include "pipeline/batch_statistics.h"
#include "pipeline/build.h"
#include "pipeline/report.h"
#include "pipeline/timeline_recorder.h"

namespace flow::nn {

GraphConfig& GraphConfig::enable_amp(DType dtype) {
  if (dtype == float16) return enable_amp(dtype, {});
  if (dtype != bfloat16) {
    throw Unsupported(str("[graph] mixed precision is bfloat16 or float16; received ", dtype));
  }
  amp_ = dtype;
  scaler_ = nullptr;
  return *this;
}

GraphConfig& GraphConfig::enable_amp(DType dtype, const optim::GradScalerOptions& scaling) {
  auto scaler = std::make_shared<optim::GradScaler>(scaling);
  if (dtype != float16) enable_amp(dtype);
  amp_ = dtype;
  scaler_ = std::move(scaler);
  return *this;
}

GraphConfig& GraphConfig::set_grad_scaler(optim::GradScaler& scaler) {
  scaler_ = std::shared_ptr<optim::GradScaler>(std::shared_ptr<void>(), &scaler);
  return *this;
}

GraphConfig& GraphConfig::enable_zero(ZeroOptions options) {
  if (options.stage < 0 || options.stage > 3) {
    throw InvalidArgument(
        str("[graph] ZeRO has stages 1 to 3; received ", options.stage, "; 0 is for none"));
  }
  zero_ = options;
  return *this;
}

GraphConfig& GraphConfig::set_passes(graph::PassSet passes) {
  passes_ = passes;
  return *this;
}

GraphConfig& GraphConfig::require_exact(bool on) {
  is_exact_ = on;
  return *this;
}

GraphConfig& GraphConfig::set_micro_batches(int64_t count) {
  if (count < 1) throw InvalidArgument(str("[graph] ", count, " micro-batches; give at least 1"));
  micro_batches_ = count;
  return *this;
}

GraphConfig& GraphConfig::set_schedule(const pipeline::ScheduleRule& schedule) {
  schedule_ = schedule;
  return *this;
}

GraphConfig& GraphConfig::set_plan_cache(std::string folder) {
  plan_cache_ = std::move(folder);
  return *this;
}

GraphConfig& GraphConfig::enable_recompute() {
  recomputes_ = true;
  return *this;
}

GraphConfig& GraphConfig::set_timeline(const std::string& path, const TimelineOptions& options) {
  timeline_ = std::make_shared<GraphTimeline>(path, options);
  return *this;
}

namespace {

// What a compiled graph was made for.
struct Signature {
  std::vector<MetaPtr> inputs;
  std::vector<size_t> sizes;  // of vectors among the arguments
  bool grad_enabled = true;
  bool is_autocast = false;
  DType autocast = DType::kFloat32;
  // The graph's configuration.
  std::optional<DType> amp = {};
  const optim::GradScaler* scaler = nullptr;
  ZeroOptions zero = {};
  int64_t micro_batches = 1;
  pipeline::ScheduleRule schedule = {};
  bool recomputes = false;
  bool is_exact = false;
  graph::PassSet passes = graph::PassSet::kAll;
  friend bool operator==(const Signature&, const Signature&) = default;
};

// Inputs are handed to a plan with plain row-major parts.
MetaPtr plain_meta(const Tensor& tensor) {
  const MetaPtr meta = tensor.meta_ptr();
  if (meta->is_contiguous) return meta;
  const MetaPtr strided = meta->blocked == nullptr ? meta : with_blocked(meta, nullptr);
  return with_strides(strided, contiguous_strides(strided->local_shape));
}

Signature signature_of(const internal::TensorReader& arguments) {
  Signature signature;
  signature.sizes = arguments.sizes;
  signature.grad_enabled = is_grad_enabled();
  signature.is_autocast = is_autocast_enabled();
  if (signature.is_autocast) signature.autocast = autocast_dtype();
  for (const Tensor& tensor : arguments.tensors) {
    if (!tensor.defined()) {
      throw InvalidArgument("[graph] an argument is an undefined tensor; leave it out of build()");
    }
    signature.inputs.push_back(plain_meta(tensor));
  }
  return signature;
}

// How a step is cut into micro-batches; the last inputs, from `num_arguments` on, are no batches.
struct Cutting {
  int64_t micro_batches = 1;
  pipeline::ScheduleRule rule = {};
  size_t num_arguments = 0;

  pipeline::MicroBatchPlan plan(const graph::Graph& graph) const {
    return pipeline::plan_micro_batches(graph, micro_batches, graph.inputs.size() - num_arguments);
  }

  static int64_t num_stages(const graph::Graph& graph) {
    int64_t num_stages = 1;
    for (const graph::Node& node : graph.nodes)
      num_stages = std::max(num_stages, node.stage + 1);
    return num_stages;
  }

  pipeline::Schedule schedule(const graph::Graph& graph) const {
    return pipeline::make_schedule(rule, num_stages(graph), micro_batches);
  }

  // One micro-batch of one stage is the plain step.
  bool is_needed(const graph::Graph& graph) const {
    return micro_batches > 1 || num_stages(graph) > 1;
  }

  // What a timeline of it says beside events.
  pipeline::TimelineFile timeline_frame(const graph::Graph& graph) const {
    if (!is_needed(graph)) return {};
    return pipeline::timeline_frame(graph, plan(graph), schedule(graph), to_string(rule));
  }

  graph::Lowering lowering(const graph::Graph& step) const {
    if (!is_needed(step)) return {};
    return {.name = str(micro_batches, " micro-batches of ", num_arguments, " inputs, ",
                        pipeline::to_string(rule), " ", rule.table),
            .make = [cutting = *this](const graph::Graph& graph, int64_t rank) {
              return pipeline::build_program(graph, cutting.plan(graph), cutting.schedule(graph),
                                             rank, kernel_table());
            }};
  }
};

// A module that build() called, and its mode then.
struct CalledModule {
  ModuleBase module;
  bool is_training;
};

// Takes the gradients of parameters away for a trace and puts them back.
class GradsAside {
 public:
  explicit GradsAside(const std::vector<Tensor>& parameters) {
    for (const Tensor& parameter : parameters) {
      grads_.emplace_back(parameter, parameter.grad());
      parameter.set_grad(Tensor());
    }
  }

  ~GradsAside() {
    for (const auto& [parameter, grad] : grads_)
      parameter.set_grad(grad);
  }

  GradsAside(const GradsAside&) = delete;
  GradsAside& operator=(const GradsAside&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> grads_;
};

// Scalars lie whole on every rank, so that reading one waits for nobody.
Tensor replicated_scalar(const Tensor& output) {
  if (!output.defined()) {
    throw InvalidArgument("[graph] build() returned an undefined tensor; return values only");
  }
  if (!output.is_global() || output.dim() != 0) return output;
  const NoGradGuard no_grad;
  return output.to_global({.placement = boxing::all_ranks(output.device()), .sbp = sbp::broadcast});
}

}  // namespace

namespace {

// The position, among the inputs of a node that writes in place, of what `output` was before; the
// first where the call, not the op, is one in place.
size_t written_input(const graph::Node& node, graph::ValueId output) {
  if (node.op->mutates == 0) return 0;
  size_t input = 0;
  for (const graph::ValueId id : node.outputs) {
    while ((node.op->mutates >> input & 1) == 0)
      ++input;
    if (id == output) break;
    ++input;
  }
  return input;
}

}  // namespace

struct CompiledGraph::State {
  Signature signature;
  std::unique_ptr<graph::Plan> plan;
  std::vector<CalledModule> modules;
  std::optional<optim::TracedScaler> scaler;
  std::vector<optim::TracedStep> steps;  // by optimizer of the graph
  // By optimizer: which of the plan's first outputs says whether it steps, -1: it always does.
  std::vector<int64_t> guards;
  size_t num_guards = 0;
  Cutting cutting;

  // Whether its modules are in the modes they had.
  bool has_modes() const {
    return std::all_of(modules.begin(), modules.end(), [](const CalledModule& called) {
      return called.module.is_training() == called.is_training;
    });
  }

  // Whether the tensors it reads and writes are still the model's and the optimizers'.
  bool fits() const {
    return std::all_of(steps.begin(), steps.end(),
                       [](const optim::TracedStep& step) { return step.fits(); }) &&
           plan->fits();
  }

  // What build() writes before a step that may be left out would be lost with it.
  void check_guarded_writes() const {
    const graph::Graph& step = plan->graph();
    const std::vector<int64_t> makers = graph::makers_of(step);
    for (const graph::Capture& capture : step.captures) {
      const graph::Node* writer = nullptr;
      for (graph::ValueId id = capture.final_value; id != capture.initial;) {
        const int64_t maker = makers[static_cast<size_t>(id)];
        const bool was_guarded = writer != nullptr && writer->guard >= 0;
        writer = maker < 0 ? nullptr : &step.nodes[static_cast<size_t>(maker)];
        if (writer == nullptr || (writer->guard < 0 && !was_guarded)) break;
        if (writer->guard < 0) {
          throw Unsupported(str("[graph] ", writer->op->name, " at ", writer->file, ":",
                                writer->line, " writes to a tensor that an optimizer writes too, ",
                                "whose step a GradScaler may leave out; write to it outside the "
                                "graph"));
        }
        id = writer->inputs[written_input(*writer, id)];
      }
    }
  }

  // Captured tensors that the step writes belong to modules it calls or to its optimizers.
  void check_writes() const {
    std::vector<Tensor> owned;
    for (const CalledModule& called : modules) {
      for (auto& [name, tensor] : called.module.named_parameters())
        owned.push_back(tensor);
      for (auto& [name, tensor] : called.module.named_buffers())
        owned.push_back(tensor);
    }
    const graph::Graph& step = plan->graph();
    for (size_t i = 0; i < step.captures.size(); ++i) {
      const graph::Capture& capture = step.captures[i];
      const Tensor& tensor = plan->captures()[i];
      if (capture.initial == capture.final_value) continue;
      const auto is_it = [&](const Tensor& other) { return other.is_same(tensor); };
      if (std::any_of(owned.begin(), owned.end(), is_it)) continue;
      if (std::any_of(steps.begin(), steps.end(),
                      [&](const optim::TracedStep& s) { return s.owns(tensor); })) {
        continue;
      }
      for (const graph::Node& node : step.nodes) {
        if (std::find(node.outputs.begin(), node.outputs.end(), capture.final_value) ==
            node.outputs.end()) {
          continue;
        }
        throw InvalidArgument(str("[graph] ", node.op->name, " at ", node.file, ":", node.line,
                                  " writes to ", tensor.meta(),
                                  " from outside the graph, which is no parameter or buffer of a "
                                  "module that build() calls; return the new value instead"));
      }
    }
  }
};

CompiledGraph::CompiledGraph() : state_(std::make_unique<State>()) {}

CompiledGraph::~CompiledGraph() = default;

const graph::Plan& CompiledGraph::plan() const {
  return *state_->plan;
}

std::string CompiledGraph::summary() const {
  const Cutting& cutting = state_->cutting;
  const graph::Graph& step = state_->plan->graph();
  if (!cutting.is_needed(step)) return state_->plan->summary();
  return state_->plan->summary() + pipeline::describe(step, cutting.plan(step),
                                                      cutting.schedule(step),
                                                      to_string(cutting.rule));
}

void CompiledGraph::save(const std::string& path) const {
  const graph::CompiledStep& step = state_->plan->step();
  const std::string bytes = graph::to_bytes(step, step.origin);
  OutputFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

void CompiledGraph::write_predicted_timeline(const std::string& path) const {
  const pipeline::TimelineFile frame = state_->cutting.timeline_frame(state_->plan->graph());
  if (frame.schedule.actions.empty()) {
    throw InvalidArgument(
        "[graph] a predicted timeline of a graph of one stage and one micro-batch, which has no "
        "schedule; set config().set_micro_batches()");
  }
  pipeline::write_timeline(path, pipeline::simulated_timeline(frame.schedule, frame.schedule_name,
                                                              frame.costs, {}, frame.ranks));
}

GraphBase::GraphBase() = default;

GraphBase::~GraphBase() = default;

void GraphBase::add_optimizer(optim::Optimizer& optimizer, const GraphOptimizerOptions& options) {
  if (options.lr_scheduler != nullptr && &options.lr_scheduler->optimizer() != &optimizer) {
    throw InvalidArgument(
        "[graph] the schedule given to add_optimizer belongs to another optimizer; give the one "
        "made for this optimizer");
  }
  optimizers_.push_back({&optimizer, options});
  compiled_.clear();
}

CompiledGraph& GraphBase::compiled_for(const internal::TensorReader& arguments,
                                       const Build& build) {
  Signature signature = signature_of(arguments);
  signature.amp = config_.amp_;
  signature.scaler = config_.scaler_.get();
  signature.zero = config_.zero_;
  signature.micro_batches = config_.micro_batches_;
  signature.schedule = config_.schedule_;
  signature.recomputes = config_.recomputes_;
  signature.is_exact = config_.is_exact_;
  signature.passes = config_.passes_;
  const auto found = std::find_if(compiled_.begin(), compiled_.end(), [&](const auto& compiled) {
    return compiled->state_->signature == signature && compiled->state_->has_modes();
  });
  if (found != compiled_.end()) {
    if ((*found)->state_->fits()) return **found;
    found->reset();  // its memory goes before the new one's comes
    compiled_.erase(found);
  }
  CompiledGraph& compiled = *compiled_.emplace_back(compile_for(arguments, build));
  compiled.state_->signature = std::move(signature);
  return compiled;
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
                                                      const Build& build) {
  if (dynamic_cast<graph::Trace*>(thread_state().interpreter) != nullptr) {
    throw Unsupported("[graph] a graph is called while another is traced; call its build()");
  }
  std::unique_ptr<CompiledGraph> compiled(new CompiledGraph());
  CompiledGraph::State& state = *compiled->state_;
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
      for (const ModuleBase& module : called.modules())
        state.modules.push_back({module, module.is_training()});
    }
    std::vector<Tensor> results;  // those that guard steps first
    for (const OptimizerEntry& entry : optimizers_) {
      const Tensor is_finite = is_scaled ? state.scaler->unscale(*entry.optimizer) : Tensor();
      state.guards.push_back(is_finite.defined() ? static_cast<int64_t>(results.size()) : -1);
      if (is_finite.defined()) results.push_back(replicated_scalar(is_finite));
      if (entry.options.clip_grad_norm) {
        utils::clip_grad_norm_(entry.optimizer->parameters(), *entry.options.clip_grad_norm);
      }
    }
    state.num_guards = results.size();
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      trace.set_guard(state.guards[i]);
      state.steps.emplace_back(*optimizers_[i].optimizer, trace);
    }
    trace.set_guard(-1);
    for (const Tensor& output : outputs)
      results.push_back(replicated_scalar(output));
    traced = trace.finish(results);
    state.cutting = {config_.micro_batches_, config_.schedule_, arguments.tensors.size()};
    stand_ins.cut(traced, config_.zero_.once_per_step, state.cutting.is_needed(traced.graph));
  }
  const graph::Lowering lowering = state.cutting.lowering(traced.graph);
  if (config_.is_exact_ && lowering.make) {
    pipeline::require_exact(traced.graph, state.cutting.plan(traced.graph));
  }
  state.plan = std::make_unique<graph::Plan>(
      std::move(traced), config_.passes_, lowering,
      plan_cache(config_.plan_cache_.value_or(env_string("FLOW_PLAN_CACHE", ""))));
  state.check_guarded_writes();
  state.check_writes();
  return compiled;
}

std::vector<Tensor> GraphBase::run(CompiledGraph& compiled, const std::vector<Tensor>& arguments) {
  const NoGradGuard no_grad;
  CompiledGraph::State& state = *compiled.state_;
  std::vector<Tensor> inputs;
  for (const Tensor& argument : arguments) {
    argument.make_strided();
    inputs.push_back(argument.contiguous());
  }
  if (state.scaler) {
    state.scaler->begin_run();
    const std::vector<Tensor> numbers = state.scaler->inputs();
    inputs.insert(inputs.end(), numbers.begin(), numbers.end());
  }
  for (optim::TracedStep& step : state.steps) {
    step.begin_run();
    const std::vector<Tensor> rates = step.inputs();
    inputs.insert(inputs.end(), rates.begin(), rates.end());
  }
  GraphTimeline* timeline = config_.timeline_.get();
  const bool is_timed = timeline != nullptr && timeline->begin_run(*state.plan);
  std::vector<Tensor> outputs = state.plan->run(inputs);
  if (is_timed) {
    timeline->end_run(*state.plan,
                      [&] { return state.cutting.timeline_frame(state.plan->graph()); });
  }
  if (state.scaler) {
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      const int64_t guard = state.guards[i];
      const bool is_finite = guard < 0 || outputs[static_cast<size_t>(guard)].item<bool>();
      if (!is_finite) state.steps[i].take_back();
      state.scaler->found(*optimizers_[i].optimizer, is_finite);
    }
    state.scaler->end_run();
    outputs.erase(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(state.num_guards));
  }
  for (const OptimizerEntry& entry : optimizers_) {
    if (entry.options.lr_scheduler != nullptr) entry.options.lr_scheduler->step();
  }
  return outputs;
}

}  // namespace flow::nn
