#include "graph/tracer.h"

#include <bit>
#include <cstring>
#include <utility>

#include "boxing/redistribute.h"
#include "core/context.h"

namespace flow::graph {

// What stands for a tensor in the trace: the SSA value of its current version.
struct Trace::TracedValue final : TraceSlot {
  const Trace* owner = nullptr;
  ValueId value = kNoValue;
  // Of a view: what it shows, and that tensor's version when the view was made.
  std::shared_ptr<const TracedValue> base;
  uint32_t base_version = 0;
};

namespace {
bool is_traced(const Tensor& tensor) {
  return tensor.defined() && tensor.impl().trace != nullptr;
}
}  // namespace

Tensor Trace::make_traced(MetaPtr meta, ValueId value) {
  Tensor tensor = Tensor::make(meta, nullptr);
  auto slot = std::make_shared<TracedValue>();
  slot->owner = this;
  slot->value = value;
  tensor.impl().trace = std::move(slot);
  return tensor;
}

StageGuard::StageGuard(int64_t stage) : outer_(std::exchange(thread_state().stage, stage)) {}

StageGuard::~StageGuard() {
  thread_state().stage = outer_;
}

Trace::Trace() : outer_(std::exchange(thread_state().interpreter, this)) {}

Trace::~Trace() {
  if (is_active_) restore();
}

void Trace::restore() {
  is_active_ = false;
  thread_state().interpreter = outer_;
  for (const CapturedTensor& capture : captures_) {
    if (capture.tensor.is_leaf() && is_traced(capture.tensor.grad())) {
      capture.tensor.set_grad(capture.grad);
    }
  }
}

ValueId Trace::add_value(const Value& value) {
  graph_.values.push_back(value);
  return static_cast<ValueId>(graph_.values.size() - 1);
}

Tensor Trace::add_input(const Tensor& example) {
  const MetaPtr meta =
      with_strides(example.meta_ptr(), contiguous_strides(example.meta().local_shape));
  const ValueId value = add_value(Value::of(*meta));
  graph_.inputs.push_back(value);
  return make_traced(meta, value);
}

std::shared_ptr<Trace::TracedValue> Trace::value_of(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  if (impl.trace != nullptr) {
    auto slot = std::dynamic_pointer_cast<TracedValue>(impl.trace);
    if (!slot || slot->owner != this) {
      throw InvalidArgument(
          "[trace] a value of another or an ended trace is used; a traced tensor lives as long as "
          "its trace: return what you need from the step");
    }
    if (slot->base != nullptr && slot->base->version != slot->base_version) {
      throw Unsupported(
          "[trace] a view is read after the tensor it shows was written in place; take the view "
          "again after the write");
    }
    return slot;
  }
  // Ranks outside a placement hold no storage: the handle itself tells captures apart.
  std::vector<size_t>& same_storage = captures_of_[impl.storage.get()];
  for (const size_t i : same_storage) {
    const TensorImpl& known = captures_[i].tensor.impl();
    const bool same_part = known.meta == impl.meta && known.offset == impl.offset;
    if (impl.storage ? same_part : &known == &impl) return captures_[i].value;
    if (impl.storage) {
      throw Unsupported(
          "[trace] two overlapping views of one outside tensor are used; pass one of them as an "
          "input of the step");
    }
  }
  auto slot = std::make_shared<TracedValue>();
  slot->owner = this;
  slot->value = add_value(Value::of(*impl.meta));
  graph_.captures.push_back({slot->value, slot->value});
  same_storage.push_back(captures_.size());
  captures_.push_back({tensor, slot, tensor.requires_grad() ? tensor.grad() : Tensor()});
  return slot;
}

void Trace::redistribute_inputs(const Call& call, const Decision& decision,
                                std::vector<const Tensor*>& inputs, std::vector<Tensor>& owned) {
  ThreadState& state = thread_state();
  const bool grad_enabled = std::exchange(state.grad_enabled, false);
  owned.resize(inputs.size());
  for (size_t i = 0; i < decision.inputs.size(); ++i) {
    const auto& layout = decision.inputs[i];
    if (!layout.placement.defined()) continue;
    owned[i] = boxing::redistribute(*inputs[i], layout.placement, layout.nd_sbp, call.site);
    inputs[i] = &owned[i];
  }
  state.grad_enabled = grad_enabled;
}

void Trace::run(const Call& call, const Decision& decision, Tensor* outputs) {
  const ThreadState& state = thread_state();
  if (call.op.is_random || call.op.has_data_dependent_shape) {
    const char* why =
        call.op.is_random ? "draws random numbers" : "has a shape that depends on data";
    throw Unsupported(str("[", call.op.name, "] an op that ", why,
                          " cannot be traced; call it outside and pass its result in"),
                      user_site(call.site));
  }
  std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
  std::vector<Tensor> owned;
  if (decision.redistributes) redistribute_inputs(call, decision, inputs, owned);

  Node node;
  node.op = &call.op;
  if (call.op.attrs != nullptr) {
    node.attrs.resize(call.op.attrs->size);
    std::memcpy(node.attrs.data(), call.attrs, call.op.attrs->size);
  }
  for (const Tensor* input : inputs) {
    node.inputs.push_back(input->defined() ? value_of(*input)->value : kNoValue);
  }
  node.stage = state.stage;
  node.phase = state.phase;
  const Site site = user_site(call.site);
  node.file = site.file();
  node.line = site.line();

  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const auto written = value_of(call.input(static_cast<size_t>(std::countr_zero(left))));
    if (written->base != nullptr) {
      throw Unsupported(str("[", call.op.name,
                            "_] writing through a view cannot be traced; use the form without "
                            "underscore"),
                        site);
    }
  }
  for (size_t i = 0; i < decision.outputs.size(); ++i) {
    const ValueId value = add_value(Value::of(*decision.outputs[i]));
    node.outputs.push_back(value);
    if (call.mutates != 0) {
      const auto written = value_of(outputs[i]);
      written->value = value;
      ++written->version;
      continue;
    }
    outputs[i] = make_traced(decision.outputs[i], value);
    if (call.op.view != nullptr) {
      const auto view = value_of(outputs[i]);
      view->base = value_of(*inputs[0]);
      view->base_version = view->base->version;
    }
  }
  graph_.nodes.push_back(std::move(node));
}

namespace {

// Nodes traced outside any stage take the largest of their inputs' stages; those without a staged
// input (a constant, the seed of backward) that of their first user, 0 where there is none.
void settle_stages(Graph& graph) {
  std::vector<int64_t> stage_of(graph.values.size(), -1);
  for (Node& node : graph.nodes) {
    int64_t largest = -1;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) largest = std::max(largest, stage_of[static_cast<size_t>(input)]);
    }
    if (node.stage < 0) node.stage = largest;
    for (const ValueId output : node.outputs)
      stage_of[static_cast<size_t>(output)] = node.stage;
  }
  std::vector<int64_t> first_user(graph.values.size(), -1);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const ValueId output : node->outputs) {
      if (node->stage < 0) node->stage = first_user[static_cast<size_t>(output)];
    }
    node->stage = std::max<int64_t>(node->stage, 0);
    for (const ValueId input : node->inputs) {
      if (input != kNoValue) first_user[static_cast<size_t>(input)] = node->stage;
    }
  }
}

}  // namespace

TracedStep Trace::finish(const std::vector<Tensor>& outputs) {
  FLOW_ASSERT(is_active_, "a trace is finished once");
  for (const Tensor& output : outputs)
    graph_.outputs.push_back(value_of(output)->value);
  TracedStep step;
  for (size_t i = 0; i < captures_.size(); ++i) {
    graph_.captures[i].final_value = captures_[i].value->value;
    step.captures.push_back(captures_[i].tensor);
  }
  restore();
  step.graph = std::move(graph_);
  settle_stages(step.graph);
  eliminate_dead_nodes(step.graph);
  verify(step.graph);
  return step;
}

}  // namespace flow::graph
