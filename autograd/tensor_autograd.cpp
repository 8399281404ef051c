#include "autograd/tensor_autograd.h"

#include <algorithm>

#include "autograd/view.h"
#include "core/error.h"
#include "core/strided_twin.h"
#include "core/view_link.h"

namespace flow::autograd {

ViewStep::ViewStep(const Call& call, Ref<ViewStep> before)
    : op(&call.op), previous(std::move(before)), attrs(call.copy_attrs()), site(call.site) {}

void ViewStep::destroy(ViewStep* step) noexcept {
  Ref<ViewStep> next = std::move(step->previous);
  delete step;
  while (next && next->use_count() == 1) {
    Ref<ViewStep> after = std::move(next->previous);
    next = std::move(after);
  }
}

void LeafNode::remove_hook(int64_t id) {
  Node::remove_hook(id);
  std::erase_if(accumulate_hooks, [&](const AccumulateHook& hook) { return hook.id == id; });
}

TensorAutograd::~TensorAutograd() {
  if (leaf_node) leaf_node->forget();
  if (retained_node == nullptr) return;
  std::erase_if(retained_node->hooks()->retained,
                [&](const NodeHooks::Retained& retained) { return retained.slot == this; });
}

TensorAutograd& make_autograd(TensorImpl& impl) {
  if (impl.autograd == nullptr) impl.autograd = std::make_unique<TensorAutograd>();
  return *find_autograd(impl);
}

bool shares_memory(const TensorImpl& a, const TensorImpl& b) {
  return a.storage ? share_memory(a, b) : a.trace != nullptr && a.trace == b.trace;
}

const Ref<LeafNode>& leaf_node(TensorImpl& leaf) {
  TensorAutograd& slot = make_autograd(leaf);
  if (!slot.leaf_node) slot.leaf_node = make_node<LeafNode>(0, 1, 0, leaf);
  return slot.leaf_node;
}

namespace {

// The history of an output of a custom function says nothing of later writes to the input whose
// memory it shares.
void check_shown_input(const TensorImpl& output) {
  const TensorAutograd* slot = find_autograd(output);
  if (slot == nullptr || !slot->shown_input || !output.grad_fn) return;
  const Tensor input(slot->shown_input);
  current_edge_of(input);
  const GradNode* history = input.impl().grad_fn.get();
  if (history == nullptr || history == slot->shown_history) return;
  throw InvalidArgument(str("[", output.grad_fn->name(), "] the result shares memory with an ",
                            "input, ", *input.impl().meta, ", that was written in place ",
                            "afterwards, so it has no gradient; clone() the input in forward"));
}

}  // namespace

Edge edge_of(const Tensor& tensor) {
  TensorImpl& impl = tensor.impl();
  if (impl.autograd != nullptr && impl.autograd->base != nullptr) refresh_view(impl);
  if (impl.is_untracked_view) [[unlikely]]
    check_shown_input(impl);
  if (impl.grad_fn) {
    return {Ref<Node>(static_cast<Node*>(impl.grad_fn.get())), impl.output_index, impl.meta};
  }
  if (impl.requires_grad) return {leaf_node(impl), 0, impl.meta};
  return {nullptr, 0, impl.meta};
}

Edge current_edge_of(const Tensor& tensor) {
  if (has_view_links()) flow::refresh_view(tensor);
  return edge_of(tensor);
}

void set_history(TensorImpl& impl, const Ref<Node>& node, uint32_t index) {
  TensorAutograd* slot = find_autograd(impl);
  if (slot != nullptr && slot->retained_node != nullptr) {
    std::erase_if(slot->retained_node->hooks()->retained,
                  [&](const NodeHooks::Retained& retained) { return retained.slot == slot; });
    node->make_hooks().retained.push_back({index, slot});
    slot->retained_node = node.get();
  }
  impl.requires_grad = true;
  impl.output_index = index;
  impl.grad_fn = node;
}

void clear_history(TensorImpl& impl) {
  impl.requires_grad = false;
  impl.output_index = 0;
  impl.grad_fn = nullptr;
}

}  // namespace flow::autograd
