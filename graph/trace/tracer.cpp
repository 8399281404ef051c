#include "graph/trace/tracer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/recompute_region.h"
#include "boxing/redistribute.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/grad_mode.h"
#include "core/kernel_call.h"
#include "core/op.h"
#include "core/strided_twin.h"
#include "core/view_link.h"
#include "graph/ir/memory_roots.h"
#include "graph/ir/place.h"
#include "graph/passes/dead_nodes.h"
#include "ops/creation/copy_op.h"

namespace flow::graph {

// The stand-in of a tensor in the trace: the SSA value of its current version.
struct Trace::TracedValue final : SitedTraceSlot {
  uint64_t trace = 0;  // the number of the trace
  ValueId value = kNoValue;
  bool is_input = false;
};

namespace {

bool is_traced(const Tensor& tensor) {
  return tensor.defined() && tensor.impl().trace != nullptr;
}

bool makes_value(const Node& node, ValueId id) {
  return std::find(node.outputs.begin(), node.outputs.end(), id) != node.outputs.end();
}

}  // namespace

Tensor Trace::make_traced(MetaPtr meta, ValueId value) {
  Tensor tensor = Tensor::make(meta, nullptr);
  auto slot = std::make_shared<TracedValue>();
  slot->trace = number_;
  slot->made_at = site_;
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

namespace {
uint64_t next_trace_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}
}  // namespace

Trace::Trace()
    : number_(next_trace_number()),
      outer_(std::exchange(thread_state().interpreter, this)),
      outer_trace_(std::exchange(thread_state().trace, this)),
      outer_phase_(std::exchange(thread_state().phase, Phase::kForward)),
      outer_region_(std::exchange(autograd::active_region, nullptr)),
      draws_from_(generator_state()) {
  autograd::drop_cached_casts();
}

Trace::~Trace() {
  if (is_active_) restore();
}

void Trace::OutsideTensor::restore_grad() const {
  if (tensor.is_leaf() && is_traced(tensor.grad())) tensor.set_grad(grad);
}

void Trace::restore() {
  is_active_ = false;
  thread_state().interpreter = outer_;
  thread_state().trace = outer_trace_;
  thread_state().phase = outer_phase_;
  autograd::active_region = outer_region_;
  set_generator_state(draws_from_);
  autograd::drop_cached_casts();
  for (const CapturedTensor& capture : captures_) {
    capture.restore_grad();
    for (const OutsideTensor& other : capture.others)
      other.restore_grad();
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
  Tensor input = make_traced(meta, value);
  static_cast<TracedValue&>(*input.impl().trace).is_input = true;
  return input;
}

std::shared_ptr<Trace::TracedValue> Trace::value_of(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  if (impl.trace != nullptr) {
    auto slot = std::dynamic_pointer_cast<TracedValue>(impl.trace);
    if (!slot || slot->trace != number_) {
      const Site made_at = slot ? slot->made_at : Site::none();
      const std::string made =
          made_at.is_known() ? str(", made at ", made_at.file(), ":", made_at.line(), ",") : "";
      throw InvalidArgument(
          str("[trace] a value of another or an ended trace", made,
              " is used; a traced tensor is valid as long as its trace: return what you need from "
              "the step"),
          site_.is_known() ? site_ : made_at);
    }
    return slot;
  }
  if (find_view_link(impl) != nullptr) {
    throw Unsupported(
        str("[trace] an outside tensor, ", *impl.meta,
            ", is a view that shares no memory with the tensor it shows, because of the layout; "
            "make the view within the step, or clone() it outside"),
        site_);
  }
  // Ranks outside a placement hold no storage, so there the handle itself identifies a capture.
  std::vector<size_t>& same_storage = captures_of_[memory_of(impl)];
  for (const size_t i : same_storage) {
    CapturedTensor& capture = captures_[i];
    const TensorImpl& known = capture.tensor.impl();
    if (&known == &impl) return capture.value;
    if (!impl.storage || known.meta != impl.meta || known.offset != impl.offset) continue;
    const auto is_it = [&](const OutsideTensor& other) { return other.tensor.is_same(tensor); };
    if (std::none_of(capture.others.begin(), capture.others.end(), is_it)) {
      capture.others.emplace_back(tensor);
      // Of a parameter and its aliases, the parameter is the capture.
      if (impl.requires_grad && !known.requires_grad) {
        std::swap(static_cast<OutsideTensor&>(capture), capture.others.back());
      }
    }
    return capture.value;
  }
  auto slot = std::make_shared<TracedValue>();
  slot->trace = number_;
  // Programs see captures in row-major order; a strided one is copied at each run (CompiledStep).
  slot->value = add_value(Value::of(*impl.meta));
  graph_.captures.push_back({slot->value, slot->value});
  same_storage.push_back(captures_.size());
  captures_.push_back({OutsideTensor(tensor), slot});
  return slot;
}

std::shared_ptr<TraceSlot> Trace::slot_of(const Tensor& tensor) {
  return value_of(tensor);
}

void Trace::check_overlap(size_t written, size_t other) const {
  const ValueId last = captures_[written].value->value, shared = captures_[other].value->value;
  const auto makes = [&](const Node& node) { return makes_value(node, last); };
  const auto reads = [&](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), shared) != node.inputs.end();
  };
  const auto writer = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), makes);
  if (writer == graph_.nodes.end()) return;
  const bool is_written_too = graph_.captures[other].initial != shared;
  // Only of a single write is it known that it is the first one.
  const bool is_first = captures_[written].value->version == 1;
  const auto late =
      std::find_if(is_first ? writer + 1 : graph_.nodes.begin(), graph_.nodes.end(), reads);
  if (!is_written_too && late == graph_.nodes.end()) return;
  const Node& user = late == graph_.nodes.end() ? *writer : *late;
  throw_at<Unsupported>(user, str("[trace] ", writer->op->name, " at ", writer->file, ":",
                                  writer->line, " writes to ", captures_[written].tensor.meta(),
                                  " from outside the step, and ", user.op->name, " at ", user.file,
                                  ":", user.line, " uses ", captures_[other].tensor.meta(),
                                  ", which shows the same memory; make this view in the step"));
}

std::vector<size_t> Trace::overlapping_captures() const {
  const auto are_strided_apart = [](const TensorImpl& a, const TensorImpl& b) {
    if (a.meta->blocked != nullptr || b.meta->blocked != nullptr) return false;
    return are_apart(*a.meta, a.offset, *b.meta, b.offset);
  };
  std::vector<size_t> copied;
  for (const auto& [memory, same_memory] : captures_of_) {
    if (memory == nullptr) continue;
    for (const size_t written : same_memory) {
      const CapturedTensor& capture = captures_[written];
      if (capture.value->value == graph_.captures[written].initial) continue;
      for (const size_t other : same_memory) {
        if (other == written) continue;
        if (are_strided_apart(capture.tensor.impl(), captures_[other].tensor.impl())) continue;
        check_overlap(written, other);
        copied.push_back(other);
      }
    }
  }
  std::sort(copied.begin(), copied.end());
  copied.erase(std::unique(copied.begin(), copied.end()), copied.end());
  return copied;
}

void Trace::set_guard(int64_t output) {
  if (output == guard_) return;
  finish_guarded_writes();
  guard_ = output;
  before_guard_.clear();
  for (const CapturedTensor& capture : captures_)
    before_guard_.push_back(capture.value->value);
}

// An op whose form in place makes a new value makes none if it is skipped.
void Trace::finish_guarded_writes() {
  if (guard_ < 0) return;
  const IdMap<ValueId, ValueId> root = memory_roots(graph_);
  for (size_t i = 0; i < captures_.size(); ++i) {
    TracedValue& slot = *captures_[i].value;
    const ValueId before = i < before_guard_.size() ? before_guard_[i] : graph_.captures[i].initial;
    if (root[slot.value] == root[before]) continue;
    const auto maker =
        std::find_if(graph_.nodes.rbegin(), graph_.nodes.rend(),
                     [&](const Node& node) { return makes_value(node, slot.value); });
    Node copy = *maker;
    copy.op = &ops::kCopy;
    copy.attrs.clear();
    copy.inputs = {before, slot.value};
    copy.outputs = {add_value(Value(graph_.value(before)))};
    slot.value = copy.outputs[0];
    ++slot.version;
    graph_.nodes.push_back(std::move(copy));
  }
}

void Trace::write(const Call& call, const Tensor& written, ValueId value) {
  TracedValue& slot = *value_of(written);
  if (slot.is_input) {
    throw Unsupported(str("[", in_place_name(call.op), "] an input of the step, ", written.meta(),
                          ", is written in place, which would change the caller's tensor; use the "
                          "form without underscore, or clone() the input first"),
                      user_site(call.site));
  }
  slot.value = value;
  ++slot.version;
}

void Trace::replace(const Tensor& target, const Tensor& value) {
  TracedValue& slot = *value_of(target);
  slot.value = value_of(value)->value;
  ++slot.version;
}

uint32_t Trace::version_of(const Tensor& tensor) {
  return value_of(tensor)->version;
}

// As in eager mode, an op makes a view if the strides allow it or if the view is linked, else a
// copy. All views of a trace are linked.
bool Trace::make_view(const Call& call, const Decision& decision,
                      const std::vector<const Tensor*>& inputs, ValueId value, Tensor& output) {
  if (call.op.view == nullptr) return false;
  MetaPtr meta = decision.outputs[0];
  if (!decision.links_view) {
    const auto view = bind_view(call.op, inputs[0]->meta_ptr(), meta, call.attrs);
    if (!view) return false;
    meta = view->meta;
  }
  output = make_traced(meta, value);
  link_view(call, output);
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
int64_t Trace::draw_of(uint64_t seed, uint64_t stream, Site site) const {
  if (seed != draws_from_.seed || stream < draws_from_.next_stream) {
    throw InvalidArgument("[trace] the generator was set within the step; set it outside", site);
  }
  return static_cast<int64_t>(stream - draws_from_.next_stream);
}

void Trace::run(const Call& call, const Decision& decision, Tensor* outputs) {
  const ThreadState& state = thread_state();
  site_ = user_site(call.site);
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
  node.attrs = call.copy_attrs();
  for (const Tensor* input : inputs) {
    node.inputs.push_back(input->defined() ? value_of(*input)->value : kNoValue);
  }
  node.stage = state.stage;
  node.phase = state.phase;
  node.is_transient = is_transient_;
  node.guard = guard_;
  const Site site = user_site(call.site);
  if (call.op.is_random) node.draw = draw_of(call.random.seed, call.random.stream, site);
  node.file = site.file();
  node.line = site.line();
  if (state.module_path != nullptr) node.module = *state.module_path;

  for (size_t i = 0; i < decision.outputs.size(); ++i)
    node.outputs.push_back(add_value(Value::of(*decision.outputs[i])));
  graph_.nodes.push_back(node);
  if (call.mutates != 0) {
    for (size_t i = 0; i < node.outputs.size(); ++i)
      write(call, outputs[i], node.outputs[i]);
    return;
  }
  if (make_view(call, decision, inputs, node.outputs[0], outputs[0])) return;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    outputs[i] = make_traced(decision.outputs[i], node.outputs[i]);
}

TracedStep Trace::finish(const std::vector<Tensor>& outputs) {
  FLOW_ASSERT(is_active_, "a trace is finished once");
  for (const Tensor& output : outputs) {
    refresh_view(output);
    graph_.outputs.push_back(value_of(output)->value);
  }
  TracedStep step;
  for (size_t i = 0; i < captures_.size(); ++i) {
    graph_.captures[i].final_value = captures_[i].value->value;
    step.captures.push_back(captures_[i].tensor);
    step.handles.push_back({captures_[i].tensor, i});
    for (const OutsideTensor& other : captures_[i].others) {
      // Nobody else refers to an alias that an op has made for itself.
      if (other.tensor.impl().use_count() > 1) step.handles.push_back({other.tensor, i});
    }
  }
  step.copied = overlapping_captures();
  const Generator::State draws_to = generator_state();
  graph_.num_draws = draw_of(draws_to.seed, draws_to.next_stream, site_);
  restore();
  step.graph = std::move(graph_);
  eliminate_dead_nodes(step.graph);
  verify(step.graph);
  return step;
}

}  // namespace flow::graph
