#include "graph/trace/tracer.h"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "autograd/autocast.h"
#include "boxing/redistribute.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/grad_mode.h"
#include "core/kernel_call.h"
#include "core/strided_twin.h"
#include "ops/shape/diagonal_op.h"
#include "ops/shape/slice.h"
#include "ops/shape/slice_op.h"
#include "ops/shape/view.h"
#include "ops/shape/view_op.h"

namespace flow::graph {

// The stand-in of a tensor in the trace: the SSA value of its current version.
struct Trace::TracedValue final : TraceSlot {
  const Trace* owner = nullptr;
  MetaPtr meta = nullptr;
  ValueId value = kNoValue;
  // True if a call that recorded gradients has written the tensor.
  bool is_recorded = false;
  // For a view: its base, whether gradients flowed into the base when the view was made, the base's
  // version when `value` was made, and the node that made it. The base is no handle, since a handle
  // that changes its shape in place becomes a view of itself.
  std::shared_ptr<TracedValue> base;
  bool shows_recorded = false;
  uint32_t base_version = 0;
  Node view;
};

namespace {

bool is_traced(const Tensor& tensor) {
  return tensor.defined() && tensor.impl().trace != nullptr;
}

std::vector<int64_t> inverse_permutation(const Shape& dims) {
  std::vector<int64_t> inverse(static_cast<size_t>(dims.size()));
  for (int64_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<size_t>(dims[i])] = i;
  return inverse;
}

// `base` with `part` in the place that `view` shows.
Tensor put_back(const Tensor& base, const Tensor& part, const Node& view, Site site) {
  const auto attrs = [&]<class Attrs>(std::type_identity<Attrs>) -> const Attrs& {
    return *static_cast<const Attrs*>(view.raw_attrs());
  };
  if (view.op == &ops::kReshape) return reshape(TensorArg(part, site), base.shape());
  if (view.op == &ops::kPermute) {
    const Shape& dims = attrs(std::type_identity<ops::PermuteAttrs>()).dims;
    return permute(TensorArg(part, site), inverse_permutation(dims));
  }
  if (view.op == &ops::kSlice) {
    return dispatch(ops::kSliceScatter, {&base, &part},
                    attrs(std::type_identity<ops::SliceAttrs>()), site);
  }
  if (view.op == &ops::kSelect) {
    const auto& place = attrs(std::type_identity<ops::SelectAttrs>());
    return select_scatter(TensorArg(base, site), part, place.dim, place.index);
  }
  if (view.op == &ops::kDiagonal) {
    return dispatch(ops::kDiagonalScatter, {&base, &part},
                    attrs(std::type_identity<ops::DiagonalAttrs>()), site);
  }
  throw Unsupported(str("[trace] writing through a view made by ", view.op->name,
                        " cannot be traced; use the form without underscore"),
                    site);
}

}  // namespace

Tensor Trace::make_traced(MetaPtr meta, ValueId value) {
  Tensor tensor = Tensor::make(meta, nullptr);
  auto slot = std::make_shared<TracedValue>();
  slot->owner = this;
  slot->meta = meta;
  slot->value = value;
  tensor.impl().trace = std::move(slot);
  return tensor;
}

StageGuard::StageGuard(int64_t stage) : outer_(std::exchange(thread_state().stage, stage)) {}

StageGuard::~StageGuard() {
  thread_state().stage = outer_;
}

SuspendTracing::SuspendTracing()
    : interpreter_(thread_state().interpreter), trace_(thread_state().trace) {
  if (trace_ == nullptr) return;
  const auto& trace = static_cast<const Trace&>(*trace_);
  thread_state().interpreter = trace.outer_;
  thread_state().trace = trace.outer_trace_;
}

SuspendTracing::~SuspendTracing() {
  thread_state().interpreter = interpreter_;
  thread_state().trace = trace_;
}

TransientGuard::TransientGuard() : trace_(static_cast<Trace*>(thread_state().trace)) {
  if (trace_ != nullptr) outer_ = std::exchange(trace_->is_transient_, true);
}

TransientGuard::~TransientGuard() {
  if (trace_ != nullptr) trace_->is_transient_ = outer_;
}

Trace::Trace()
    : outer_(std::exchange(thread_state().interpreter, this)),
      outer_trace_(std::exchange(thread_state().trace, this)),
      draws_from_(generator_state()) {
  autograd::drop_cached_casts();
}

Trace::~Trace() {
  if (is_active_) restore();
}

void Trace::restore() {
  is_active_ = false;
  thread_state().interpreter = outer_;
  thread_state().trace = outer_trace_;
  set_generator_state(draws_from_);
  autograd::drop_cached_casts();
  for (const CapturedTensor& capture : captures_) {
    if (capture.tensor.is_leaf() && is_traced(capture.tensor.grad())) {
      capture.tensor.set_grad(capture.grad);
    }
  }
}

ValueId Trace::add_value(const Value& value) {
  return graph_.add_value(value);
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
          "[trace] a value of another or an ended trace is used; a traced tensor is valid as long "
          "as its trace: return what you need from the step");
    }
    refresh(*slot);
    return slot;
  }
  // Ranks outside a placement hold no storage, so there the handle itself identifies a capture.
  std::vector<size_t>& same_storage = captures_of_[memory_of(impl)];
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
  slot->meta = impl.meta;
  slot->value = add_value(Value::of(*impl.meta));
  graph_.captures.push_back({slot->value, slot->value});
  same_storage.push_back(captures_.size());
  captures_.push_back({tensor, slot, tensor.requires_grad() ? tensor.grad() : Tensor()});
  return slot;
}

void Trace::refresh(TracedValue& slot) {
  if (slot.base == nullptr) return;
  refresh(*slot.base);
  if (slot.base->version == slot.base_version) return;
  slot.view.inputs[0] = slot.base->value;
  slot.view.outputs[0] = slot.value = add_value(Value::of(*slot.meta));
  graph_.nodes.push_back(slot.view);
  slot.base_version = slot.base->version;
  ++slot.version;
}

void Trace::write(TracedValue& slot, ValueId value, Site site) {
  slot.value = value;
  ++slot.version;
  if (slot.base == nullptr) return;
  const Tensor base = make_traced(slot.base->meta, slot.base->value);
  Tensor whole = put_back(base, make_traced(slot.meta, value), slot.view, site);
  if (base.is_global()) whole = boxing::redistribute(whole, base.placement(), base.sbp(), site);
  write(*slot.base, value_of(whole)->value, site);
  slot.base_version = slot.base->version;
}

// As in eager mode, an op makes a view if the strides allow it, else a copy.
bool Trace::make_view(const Call& call, const std::vector<const Tensor*>& inputs, MetaPtr meta,
                      ValueId value, Tensor& output) {
  if (call.op.view == nullptr) return false;
  const auto view = bind_view(call.op, inputs[0]->meta_ptr(), meta, call.attrs);
  if (!view) return false;
  output = make_traced(view->meta, value);
  return true;
}

void Trace::redistribute_inputs(const Call& call, const Decision& decision,
                                std::vector<const Tensor*>& inputs, std::vector<Tensor>& owned) {
  const NoGradGuard not_the_users;
  owned.resize(inputs.size());
  for (size_t i = 0; i < decision.inputs.size(); ++i) {
    const auto& layout = decision.inputs[i];
    if (!layout.placement.defined()) continue;
    owned[i] = boxing::redistribute(*inputs[i], layout.placement, layout.nd_sbp, call.site);
    inputs[i] = &owned[i];
  }
}

// Draws are counted from the start of the step; a recomputed draw keeps its number.
int64_t Trace::draw_of(const RandomStream& random, Site site) const {
  if (random.seed != draws_from_.seed || random.stream < draws_from_.next_stream) {
    throw InvalidArgument("[trace] the generator was set within the step; set it outside", site);
  }
  return static_cast<int64_t>(random.stream - draws_from_.next_stream);
}

// Autograd follows writes through views by the memory that they share. Traced values have no
// memory, so such a write is refused while gradients are recorded.
void Trace::follow_recorded_writes(const Call& call, Site site) {
  bool is_recorded = false;
  bool is_through_view = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.input(i).defined()) continue;
    is_recorded |= call.input(i).impl().tracks_grad();
    if ((call.mutates >> i & 1) == 0) continue;
    for (auto slot = value_of(call.input(i)); slot->base != nullptr; slot = slot->base) {
      is_through_view = true;
      is_recorded |= slot->shows_recorded || slot->base->is_recorded;
    }
  }
  if (is_recorded && is_through_view) {
    throw Unsupported(str("[", call.op.name,
                          "_] writing through a view where gradients are recorded cannot be "
                          "traced; use the form without underscore, or NoGradGuard"),
                      site);
  }
  if (!is_recorded) return;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if ((call.mutates >> i & 1) != 0) value_of(call.input(i))->is_recorded = true;
  }
}

void Trace::run(const Call& call, const Decision& decision, Tensor* outputs) {
  const ThreadState& state = thread_state();
  if (call.op.has_data_dependent_shape) {
    throw Unsupported(str("[", call.op.name,
                          "] an op whose shape depends on data cannot be traced; call it outside "
                          "the step and pass its result in"),
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
  node.is_transient = is_transient_;
  node.guard = guard_;
  const Site site = user_site(call.site);
  if (call.op.is_random) node.draw = draw_of(call.random, site);
  node.file = site.file();
  node.line = site.line();
  if (state.module_path != nullptr) node.module = *state.module_path;

  if (call.mutates != 0 && state.grad_enabled) follow_recorded_writes(call, site);
  for (size_t i = 0; i < decision.outputs.size(); ++i)
    node.outputs.push_back(add_value(Value::of(*decision.outputs[i])));
  graph_.nodes.push_back(node);
  if (call.mutates != 0) {
    const NoGradGuard not_the_users;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      write(*value_of(outputs[i]), node.outputs[i], site);
    return;
  }
  if (make_view(call, inputs, decision.outputs[0], node.outputs[0], outputs[0])) {
    auto& view = static_cast<TracedValue&>(*outputs[0].impl().trace);
    view.base = value_of(*inputs[0]);
    view.shows_recorded = inputs[0]->impl().tracks_grad();
    view.base_version = view.base->version;
    view.view = std::move(node);
    return;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    outputs[i] = make_traced(decision.outputs[i], node.outputs[i]);
}

TracedStep Trace::finish(const std::vector<Tensor>& outputs) {
  FLOW_ASSERT(is_active_, "a trace is finished once");
  for (const Tensor& output : outputs)
    graph_.outputs.push_back(value_of(output)->value);
  TracedStep step;
  for (size_t i = 0; i < captures_.size(); ++i) {
    graph_.captures[i].final_value = captures_[i].value->value;
    step.captures.push_back(captures_[i].tensor);
  }
  graph_.num_draws = static_cast<int64_t>(generator_state().next_stream - draws_from_.next_stream);
  restore();
  step.graph = std::move(graph_);
  eliminate_dead_nodes(step.graph);
  verify(step.graph);
  return step;
}

}  // namespace flow::graph
