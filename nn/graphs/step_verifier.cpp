#include "nn/graphs/step_verifier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "autograd/autocast.h"
#include "boxing/comm/communicator.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "core/env.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "graph/compile.h"

namespace flow::nn {

namespace {

// The size of values that would be 0 without rounding, such as the gradient of a key's bias.
constexpr double kLeastSize = 1e-3;

constexpr int64_t kNoNode = std::numeric_limits<int64_t>::max();

// The calls of the traced step have their casts and layouts already.
class PlainCalls {
 public:
  PlainCalls()
      : forbids_boxing_(std::exchange(thread_state().forbids_implicit_boxing, false)),
        generator_(generator_state()) {}

  ~PlainCalls() {
    thread_state().forbids_implicit_boxing = forbids_boxing_;
    set_generator_state(generator_);
  }

  PlainCalls(const PlainCalls&) = delete;
  PlainCalls& operator=(const PlainCalls&) = delete;

 private:
  NoGradGuard no_grad_;
  AutocastGuard no_autocast_{bfloat16, {.enabled = false}};
  bool forbids_boxing_;
  Generator::State generator_;
};

// The tensor in the layout that a value has in the traced step.
Tensor in_layout(const Tensor& tensor, const graph::Value& value) {
  if (!value.placement.defined() || tensor.sbp() == value.nd_sbp) return tensor;
  return tensor.to_global({.placement = value.placement, .sbp = value.nd_sbp});
}

// The values of this rank's part. Partial values are added up first, because ranks may share them
// out differently.
std::vector<double> local_values(const Tensor& tensor) {
  Tensor whole = tensor;
  if (whole.is_global() && whole.sbp().has_partial()) {
    whole = whole.to_global({.sbp = NdSbp::broadcast(whole.sbp().size())});
  }
  if (!whole.meta().is_held) return {};
  const Tensor local = whole.is_global() ? whole.to_local() : whole;
  return local.to(DType::kFloat64).to_vector<double>();
}

// The steps that this rank has compared with others.
struct VerifiedSteps {
  std::set<const boxing::RunningStep*> steps;
};

// How far values may be apart, in units of the largest value of the tensor.
double tolerance_of(DType dtype) {
  if (dtype == DType::kFloat64) return 1e-9;
  if (dtype == DType::kFloat32) return 1e-3;
  return is_floating(dtype) ? 5e-2 : 0;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values)
    largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  return largest;
}

bool is_close(double a, double b, double limit) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= limit;
}

std::string describe(const graph::Node& node) {
  return str(node.op->name, " at ", node.file, ':', node.line,
             node.module.empty() ? "" : str(" in module ", node.module));
}

}  // namespace

StepVerifier::StepVerifier(const graph::Graph& traced, std::span<const graph::Pass> passes,
                           const graph::CompiledStep& plan, std::span<const Tensor> inputs)
    : traced_(traced),
      passes_(passes),
      plan_(plan),
      generator_(generator_state()),
      values_(traced.values.size()) {
  const PlainCalls plain;
  for (const Tensor& input : inputs)
    inputs_.push_back(input.clone());
  for (const Tensor& capture : plan.captures())
    captures_.push_back(capture.clone());
}

bool StepVerifier::is_skipped(const graph::Node& node) const {
  return node.guard >= 0 && !values_[traced_.outputs[static_cast<size_t>(node.guard)]].item<bool>();
}

void StepVerifier::run_node(const graph::Node& node) {
  std::vector<Tensor> inputs, written;
  for (const graph::ValueId id : node.inputs)
    inputs.push_back(id == graph::kNoValue ? Tensor() : values_[id]);
  for (uint32_t left = node.op->mutates; left != 0; left &= left - 1)
    written.push_back(inputs[static_cast<size_t>(std::countr_zero(left))]);
  if (is_skipped(node)) {  // what it would compute is not used, what it would write stays
    for (size_t i = 0; i < written.size(); ++i)
      values_[node.outputs[i]] = written[i];
    return;
  }
  for (uint32_t left = node.op->mutates; left != 0; left &= left - 1) {
    Tensor& target = inputs[static_cast<size_t>(std::countr_zero(left))];
    target = target.clone();
  }
  std::vector<Tensor> outputs(node.outputs.size());
  if (node.op->has_effect) {
    outputs[0] = inputs[0];  // the run had the effect
  } else {
    if (node.draw >= 0) {
      set_generator_state(
          {generator_.seed, generator_.next_stream + static_cast<uint64_t>(node.draw)});
    }
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : inputs)
      pointers.push_back(&input);
    Call call{*node.op, pointers, node.raw_attrs(), Site::here(node.file.c_str(), node.line)};
    dispatch(call, outputs.data());
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    values_[node.outputs[i]] = in_layout(outputs[i], traced_.value(node.outputs[i]));
}

void StepVerifier::run_eagerly() {
  for (size_t i = 0; i < inputs_.size(); ++i)
    values_[traced_.inputs[i]] = inputs_[i];
  for (size_t i = 0; i < captures_.size(); ++i) {
    const graph::ValueId id = traced_.captures[i].initial;
    values_[id] = in_layout(captures_[i], traced_.value(id));
  }
  for (const graph::Node& node : traced_.nodes)
    run_node(node);
}

std::string StepVerifier::difference(const Tensor& compiled, graph::ValueId value,
                                     double slack) const {
  if (!values_[value].defined()) return {};  // of a node that was skipped
  const Tensor eager = compiled.is_global()
                           ? in_layout(values_[value], graph::Value::of(compiled.meta()))
                           : values_[value];
  const std::vector<double> a = local_values(compiled), b = local_values(eager);
  if (a.size() != b.size()) return str(a.size(), " elements instead of ", b.size());
  const double tolerance = tolerance_of(traced_.value(value).dtype);
  const double limit = is_exact_ ? 0 : tolerance * std::max(largest_of(b), kLeastSize) + slack;
  for (size_t i = 0; i < a.size(); ++i) {
    if (is_close(a[i], b[i], limit)) continue;
    return str("element ", i, " of rank ", env::rank(), " is ", a[i], " in the compiled step and ",
               b[i], " in eager mode");
  }
  return {};
}

double StepVerifier::largest_change(const graph::Capture& capture) const {
  std::vector<double> before = local_values(values_[capture.initial]);
  const std::vector<double> after = local_values(values_[capture.final_value]);
  for (size_t i = 0; i < before.size(); ++i)
    before[i] -= after[i];
  return largest_of(before);
}

std::string StepVerifier::difference_of_results(std::span<const Tensor> outputs) const {
  std::string all;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string found = difference(outputs[i], traced_.outputs[i]);
    if (all.empty() && !found.empty()) all = str("output ", i, ": ", found);
  }
  for (size_t i = 0; i < captures_.size(); ++i) {
    const graph::Capture& capture = traced_.captures[i];
    if (capture.initial == capture.final_value) continue;
    // Adam makes an update of full size of a gradient that is only rounding.
    const double slack = is_exact_ ? 0 : 2 * largest_change(capture);
    const std::string found = difference(plan_.captures()[i], capture.final_value, slack);
    if (all.empty() && !found.empty()) all = str("written tensor ", i, ": ", found);
  }
  return all;
}

bool StepVerifier::is_wanted(const graph::CompiledStep& plan) {
  if (!env_flag("FLOW_GRAPH_VERIFY")) return false;
  if (!plan.concerns_others()) return true;
  VerifiedSteps& verified = thread_state().context->slot<VerifiedSteps>();
  return verified.steps.insert(&plan.running_step()).second;
}

int64_t StepVerifier::least_on_ranks(int64_t number) const {
  if (!plan_.concerns_others()) return number;
  int64_t least = number;
  boxing::communicator_for(*thread_state().context, plan_.ranks())
      .all_reduce(&number, &least, 1, DType::kInt64, boxing::ReduceOp::kMin,
                  {.op = "verify a step"});
  return least;
}

std::string StepVerifier::first_difference() const {
  std::set<graph::ValueId> overwritten;
  for (const graph::Node& node : traced_.nodes) {
    for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 32); ++i) {
      if ((node.op->mutates >> i & 1) != 0) overwritten.insert(node.inputs[i]);
    }
  }
  graph::Graph all = traced_;
  std::vector<const graph::Node*> makers;  // of the added outputs
  for (const graph::Node& node : traced_.nodes) {
    for (const graph::ValueId id : node.outputs) {
      if (node.op->mutates != 0 || overwritten.contains(id)) continue;
      all.outputs.push_back(id);
      makers.push_back(&node);
    }
  }
  const std::vector<graph::ValueId> ids = all.outputs;
  std::vector<Tensor> captures;  // copies, because views of the others are compared
  for (const Tensor& capture : captures_)
    captures.push_back(capture.clone());
  std::shared_ptr<const graph::CompiledArtifact> artifact;
  try {
    artifact = graph::compile_once(std::move(all), passes_);
  } catch (const Unsupported&) {  // micro-batches cannot return every value
    return {};
  }
  graph::CompiledStep step(captures, std::move(artifact));
  set_generator_state(generator_);
  const std::vector<Tensor> outputs = step.run(inputs_);
  int64_t first = kNoNode;
  std::string text;
  for (size_t i = traced_.outputs.size(); i < ids.size(); ++i) {
    const std::string found = difference(outputs[i], ids[i]);  // collective
    if (first != kNoNode || found.empty()) continue;
    first = static_cast<int64_t>(i - traced_.outputs.size());
    text = found;
  }
  const int64_t least = least_on_ranks(first);
  if (least == kNoNode) return {};
  // A rank with local tensors may have more ops.
  if (static_cast<size_t>(least) >= makers.size())
    return "the first op that differs is on another rank";
  return str("the first op that differs is ", describe(*makers[static_cast<size_t>(least)]),
             first == least ? str(": ", text) : ", on another rank");
}

void StepVerifier::check(std::span<const Tensor> outputs, bool is_exact) {
  const PlainCalls plain;
  is_exact_ = is_exact;
  run_eagerly();
  const std::string own = difference_of_results(outputs);
  if (least_on_ranks(own.empty() ? 1 : 0) == 1) return;
  const std::string first = first_difference();
  throw InternalError(str("[graph] FLOW_GRAPH_VERIFY: a compiled step differs from eager mode; ",
                          own.empty() ? "results of another rank differ" : own, "; ",
                          first.empty() ? "no op can be named" : first,
                          "; config().set_passes(nn::exact) shows whether a pass is the reason"));
}

}  // namespace flow::nn
