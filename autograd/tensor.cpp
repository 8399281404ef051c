// The autograd methods of Tensor.
#include "core/tensor.h"

#include <algorithm>

#include "autograd/engine.h"
#include "autograd/tensor_autograd.h"
#include "core/calls/substitution.h"
#include "core/error.h"
#include "core/traced.h"

namespace flow {

using autograd::find_autograd;
using autograd::make_autograd;
using autograd::Node;

namespace {

// The node through which the gradient of `tensor` passes. Throws if the tensor tracks no gradient.
Ref<Node> node_of(const Tensor& tensor, const char* method, uint32_t* output) {
  const autograd::Edge edge = autograd::current_edge_of(tensor);
  if (!edge.node) {
    throw InvalidArgument(str("[", method, "] the tensor, ", tensor.meta(),
                              ", does not require grad; call requires_grad_() first"));
  }
  *output = edge.index;
  return edge.node;
}

}  // namespace

const Tensor& AutogradMethods::requires_grad_(bool requires_grad, Site site) const {
  TensorImpl& impl = self().impl();
  if (requires_grad == impl.tracks_grad()) return self();
  if (requires_grad) {
    if (!is_floating(self().dtype())) {
      throw InvalidArgument(str("[requires_grad_] only floating tensors have gradients; received ",
                                self().meta(), "; cast it first"),
                            site);
    }
    impl.requires_grad = true;
    autograd::TensorAutograd& slot = make_autograd(impl);
    if (!slot.listed) slot.listed = std::make_unique<autograd::ListedLeaf>(impl);
    if (slot.base != nullptr) {
      slot.base = nullptr;  // it becomes a leaf
      impl.is_untracked_view = true;
    }
    autograd::leaf_node(impl);  // before several threads use the leaf at once
    return self();
  }
  if (!self().is_leaf()) {
    throw InvalidArgument(
        "[requires_grad_] the tensor is the result of a recorded op; only leaves can stop "
        "requiring grad: use detach()",
        site);
  }
  // First, because another thread of the rank may be looking at the leaves.
  if (autograd::TensorAutograd* slot = autograd::find_autograd(impl)) slot->listed.reset();
  impl.requires_grad = false;
  return self();
}

Tensor AutogradMethods::grad() const {
  const autograd::TensorAutograd* slot = find_autograd(self().impl());
  return slot == nullptr ? Tensor() : slot->gradient;
}

void AutogradMethods::set_grad(const Tensor& grad) const {
  if (!grad.defined()) {
    if (autograd::TensorAutograd* slot = find_autograd(self().impl())) slot->gradient = {};
    return;
  }
  const TensorMeta& given = grad.meta();
  if (!(given.shape == self().shape()) || given.dtype != self().dtype() ||
      given.device != self().device() || given.placement != self().placement()) {
    throw InvalidArgument(str("[set_grad] the gradient is ", given, ", the tensor is ",
                              self().meta(),
                              "; pass one with the tensor's shape, dtype, placement and device"));
  }
  if (self().is_same(grad)) {
    throw InvalidArgument("[set_grad] a tensor cannot be its own gradient; clone() it");
  }
  make_autograd(self().impl()).gradient = grad;
}

void AutogradMethods::retain_grad() const {
  uint32_t output = 0;
  const Ref<Node> node = node_of(self(), "retain_grad", &output);
  if (node->is_leaf()) return;
  autograd::TensorAutograd& slot = make_autograd(self().impl());
  if (slot.retained_node != nullptr) return;
  node->make_hooks().retained.push_back({output, &slot});
  slot.retained_node = node.get();
}

int64_t AutogradMethods::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  uint32_t output = 0;
  const Ref<Node> node = node_of(self(), "register_hook", &output);
  const int64_t id = autograd::id_of_new_hook("register_hook", hook == nullptr);
  node->make_hooks().before.push_back({id, output, std::move(hook)});
  make_autograd(self().impl()).hooks.push_back({id, node});
  return id;
}

void AutogradMethods::remove_hook(int64_t handle) const {
  autograd::TensorAutograd* slot = find_autograd(self().impl());
  if (slot == nullptr) return;
  for (const auto& place : slot->hooks) {
    if (place.id == handle) place.node->remove_hook(handle);
  }
  std::erase_if(slot->hooks, [&](const auto& place) { return place.id == handle; });
}

Tensor AutogradMethods::detach() const {
  return alias_of(Substitution::of(self()));
}

void AutogradMethods::set_data(const Tensor& other) const {
  TensorImpl& impl = self().impl();
  const TensorImpl& source = other.impl();
  if (!self().is_leaf()) {
    throw InvalidArgument(
        "[set_data] the tensor is the result of a recorded op; call set_data() on leaves only");
  }
  if (impl.requires_grad && !is_floating(source.meta->dtype)) {
    throw InvalidArgument(str("[set_data] the tensor requires grad, so it needs floating data; ",
                              "received ", *source.meta));
  }
  impl.meta = source.meta;
  impl.storage = source.storage;
  impl.offset = source.offset;
  impl.trace = source.trace;
  impl.is_untracked_view = false;
  impl.is_linked_view = false;
  if (autograd::TensorAutograd* slot = find_autograd(impl)) {
    slot->base = nullptr;
    slot->base_owner = nullptr;
    slot->steps = nullptr;
  }
}

void AutogradMethods::backward(Site site) const {
  flow::backward({self()}, {}, {}, site);
}

void AutogradMethods::backward(const BackwardOptions& options, Site site) const {
  flow::backward({self()}, {}, options, site);
}

void AutogradMethods::backward(const TensorArg& gradient, const BackwardOptions& options) const {
  flow::backward({self()}, {gradient.tensor()}, options, gradient.site());
}

void AutogradMethods::backward(const TensorArg& gradient) const {
  flow::backward({self()}, {gradient.tensor()}, {}, gradient.site());
}

}  // namespace flow
