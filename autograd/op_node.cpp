#include "autograd/op_node.h"

#include <cstring>
#include <new>

#include "autograd/view.h"
#include "core/error.h"

namespace flow::autograd {

namespace {

// The context that an op's gradient rule gets while its node runs.
class NodeGradContext final : public GradContext {
 public:
  NodeGradContext(const OpNode& node, const Tensor* dy, Tensor* dx)
      : node_(node), dy_(dy), dx_(dx) {}

  const Tensor& dy(int i) const override {
    check_index("output", i, node_.outputs().size());
    return dy_[i];
  }

  Tensor input(int i) const override { return node_.saved_input(i); }

  Tensor output(int i) const override { return node_.saved_output(i); }

  MetaPtr input_meta(int i) const override { return edge(i).meta; }

  MetaPtr output_meta(int i) const override {
    check_index("output", i, node_.outputs().size());
    return node_.outputs()[static_cast<size_t>(i)].meta;
  }

  int num_inputs() const override { return static_cast<int>(node_.edges().size()); }

  bool needs(int i) const override {
    return i >= 0 && i < num_inputs() && node_.needs(static_cast<size_t>(i));
  }

  void set(int i, Tensor dx) override {
    if (edge(i).node) dx_[i] = std::move(dx);
  }

  const RandomStream& random() const override { return node_.random(); }

  const char* op_name() const override { return node_.name(); }

 protected:
  const void* raw_attrs() const override { return node_.attrs(); }

 private:
  void check_index(const char* kind, int i, size_t count) const {
    if (i >= 0 && static_cast<size_t>(i) < count) return;
    throw InvalidArgument(str("[", node_.name(), "] the op's gradient rule asks for ", kind, " ", i,
                              ", and the call has ", count, " ", kind, "s"));
  }

  const Edge& edge(int i) const {
    check_index("input", i, node_.edges().size());
    return node_.edges()[static_cast<size_t>(i)];
  }

  const OpNode& node_;
  const Tensor* dy_;
  Tensor* dx_;
};

size_t attrs_size(const OpDef& op) {
  return op.attrs != nullptr ? op.attrs->size : 0;
}

// True if the call has overwritten input i through any alias.
bool is_overwritten(const Call& call, const Tensor& input) {
  if (!input.defined()) return false;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const Tensor& written = call.input(static_cast<size_t>(std::countr_zero(left)));
    if (shares_memory(written.impl(), input.impl())) return true;
  }
  return false;
}

}  // namespace

// The memory behind the node holds the saved tensors, the random stream of a random op, and the
// attrs.
Ref<OpNode> OpNode::make(const Call& call, const Tensor* outputs, size_t num_outputs) {
  const uint32_t num_saved =
      static_cast<uint32_t>(std::popcount(saved_mask(call.op.saved_inputs, call.inputs.size())) +
                            std::popcount(saved_mask(call.op.saved_outputs, num_outputs)));
  const size_t extra = internal::aligned(num_saved * sizeof(SavedTensor)) +
                       (call.op.is_random ? internal::aligned(sizeof(RandomStream)) : 0) +
                       attrs_size(call.op);
  return make_node<OpNode>(call.inputs.size(), num_outputs, extra, call, outputs);
}

OpNode::OpNode(const Block& block, const Call& call, const Tensor* outputs)
    : Node(block, NodeScope::current(call.site)),
      op_(call.op),
      saved_(reinterpret_cast<SavedTensor*>(block.extra)) {
  const uint32_t inputs_mask = saved_mask(op_.saved_inputs, block.num_edges);
  const uint32_t outputs_mask = saved_mask(op_.saved_outputs, block.num_outputs);
  num_saved_inputs_ = static_cast<uint32_t>(std::popcount(inputs_mask));
  num_saved_outputs_ = static_cast<uint32_t>(std::popcount(outputs_mask));
  std::byte* next = block.extra + internal::aligned(num_saved() * sizeof(SavedTensor));
  if (op_.is_random) {
    random_ = new (next) RandomStream(call.random);
    next += internal::aligned(sizeof(RandomStream));
  }
  attrs_ = next;
  if (op_.attrs != nullptr) std::memcpy(next, call.attrs, op_.attrs->size);

  const std::span<Edge> node_edges = edges();
  for (size_t i = 0; i < node_edges.size(); ++i) {
    if (call.inputs[i]->defined()) node_edges[i].meta = call.inputs[i]->meta_ptr();
  }
  SavedTensor* saved = saved_;
  for (uint32_t left = inputs_mask; left != 0; left &= left - 1) {
    const Tensor& input = call.input(static_cast<size_t>(std::countr_zero(left)));
    new (saved) SavedTensor(input);
    if (call.mutates != 0 && is_overwritten(call, input)) saved->set_overwritten();
    ++saved;
  }
  for (uint32_t left = outputs_mask; left != 0; left &= left - 1)
    new (saved++) SavedTensor(outputs[std::countr_zero(left)]);
  for (size_t i = 0; i < this->outputs().size(); ++i) {
    if (outputs[i].defined()) this->outputs()[i].meta = outputs[i].meta_ptr();
  }
}

OpNode::~OpNode() {
  for (size_t i = 0; i < num_saved(); ++i)
    saved_[i].~SavedTensor();
}

void OpNode::apply(const Tensor* dy, Tensor* dx) {
  NodeGradContext ctx(*this, dy, dx);
  op_.grad(ctx);
}

void OpNode::free_saved() {
  if (num_saved() == 0) return;
  is_released_ = true;
  for (size_t i = 0; i < num_saved(); ++i)
    saved_[i].reset();
}

const RandomStream& OpNode::random() const {
  if (random_ == nullptr) {
    throw InvalidArgument(str("[", op_.name,
                              "] the op's gradient rule asks for random numbers, and "
                              "the op draws none; set is_random"));
  }
  return *random_;
}

const SavedTensor& OpNode::saved(uint32_t mask, size_t first, const char* kind, int i) const {
  if (i < 0 || i >= 32 || ((mask >> i) & 1) == 0) {
    throw InvalidArgument(str("[", op_.name, "] the op's gradient rule reads ", kind, " ", i,
                              ", which the op does not save; set bit ", i, " of saved_", kind,
                              "s"));
  }
  return saved_[first + static_cast<size_t>(std::popcount(mask & ((uint32_t{1} << i) - 1)))];
}

Tensor OpNode::saved_input(int i) const {
  const uint32_t mask = saved_mask(op_.saved_inputs, edges().size());
  const SavedTensor& value = saved(mask, 0, "input", i);
  const Edge& edge = edges()[static_cast<size_t>(i)];
  Node* history = thread_state().grad_enabled ? edge.node.get() : nullptr;
  return value.unpack(*this, "input", i, history, edge.index);
}

Tensor OpNode::saved_output(int i) const {
  const uint32_t mask = saved_mask(op_.saved_outputs, outputs().size());
  const SavedTensor& value = saved(mask, num_saved_inputs_, "output", i);
  const bool is_recording = thread_state().grad_enabled;
  if (is_recording && view_write_ != nullptr) {
    return view_write_->written_view(value.unpack(*this, "output", i, nullptr, 0));
  }
  Node* history = is_recording ? const_cast<OpNode*>(this) : nullptr;
  return value.unpack(*this, "output", i, history, static_cast<uint32_t>(i));
}

}  // namespace flow::autograd
