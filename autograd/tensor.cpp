// The autograd methods of Tensor.
#include "core/tensor.h"

#include <algorithm>

#include "autograd/engine.h"
#include "autograd/tensor_autograd.h"
#include "core/error.h"

namespace flow {

using autograd::find_autograd;
using autograd::make_autograd;
using autograd::Node;

namespace {

// The node through which the gradient of `tensor` passes; none when it tracks no gradient.
Ref<Node> node_of(const Tensor& tensor, const char* method, uint32_t* output) {
  const autograd::Edge edge = autograd::edge_of(tensor);
  if (!edge.node) {
    throw InvalidArgument(str("[", method, "] the tensor, ", tensor.meta(),
                              ", does not require grad; call requires_grad_() first"));
  }
  *output = edge.index;
  return edge.node;
}

}  // namespace

const Tensor& Tensor::requires_grad_(bool requires_grad) const {
  TensorImpl& self = impl();
  if (requires_grad == self.tracks_grad()) return *this;
  if (requires_grad) {
    if (!is_floating(dtype())) {
      throw InvalidArgument(str("[requires_grad_] only floating tensors have gradients; received ",
                                meta(), "; cast it first"));
    }
    self.requires_grad = true;
    if (self.autograd != nullptr && self.autograd->base != nullptr) {
      self.autograd->base = nullptr;  // a leaf of its own from now on
      self.is_untracked_view = true;
    }
    return *this;
  }
  if (!is_leaf()) {
    throw InvalidArgument(
        "[requires_grad_] the tensor is the result of a recorded op; only leaves can stop "
        "requiring grad: use detach()");
  }
  self.requires_grad = false;
  return *this;
}

Tensor Tensor::grad() const {
  const autograd::TensorAutograd* slot = find_autograd(impl());
  return slot == nullptr ? Tensor() : slot->gradient;
}

void Tensor::set_grad(const Tensor& grad) const {
  if (!grad.defined()) {
    if (autograd::TensorAutograd* slot = find_autograd(impl())) slot->gradient = {};
    return;
  }
  const TensorMeta& given = grad.meta();
  if (!(given.shape == shape()) || given.dtype != dtype() || given.device != device() ||
      given.placement != placement()) {
    throw InvalidArgument(str("[set_grad] the gradient is ", given, ", the tensor is ", meta(),
                              "; give one of its shape, dtype and placement"));
  }
  if (is_same(grad)) {
    throw InvalidArgument("[set_grad] a tensor cannot be its own gradient; clone() it");
  }
  make_autograd(impl()).gradient = grad;
}

void Tensor::retain_grad() const {
  uint32_t output = 0;
  const Ref<Node> node = node_of(*this, "retain_grad", &output);
  if (node->is_leaf()) return;
  autograd::TensorAutograd& slot = make_autograd(impl());
  if (slot.retained_node != nullptr) return;
  node->make_hooks().retained.push_back({output, &slot});
  slot.retained_node = node.get();
}

int64_t Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  uint32_t output = 0;
  const Ref<Node> node = node_of(*this, "register_hook", &output);
  const int64_t id = autograd::next_hook_id();
  node->make_hooks().before.push_back({id, output, std::move(hook)});
  make_autograd(impl()).hooks.push_back({id, node});
  return id;
}

void Tensor::remove_hook(int64_t handle) const {
  autograd::TensorAutograd* slot = find_autograd(impl());
  if (slot == nullptr) return;
  for (const auto& place : slot->hooks) {
    if (place.id == handle) place.node->remove_hook(handle);
  }
  std::erase_if(slot->hooks, [&](const auto& place) { return place.id == handle; });
}

Tensor Tensor::detach() const {
  return Tensor(impl().alias());
}

void Tensor::set_data(const Tensor& other) const {
  TensorImpl& self = impl();
  const TensorImpl& source = other.impl();
  if (!is_leaf()) {
    throw InvalidArgument(
        "[set_data] the tensor is the result of a recorded op; only leaves take other data");
  }
  if (self.requires_grad && !is_floating(source.meta->dtype)) {
    throw InvalidArgument(str("[set_data] the tensor requires grad, so it needs floating data; ",
                              "received ", *source.meta));
  }
  self.meta = source.meta;
  self.storage = source.storage;
  self.offset = source.offset;
  self.trace = source.trace;
  self.is_untracked_view = false;
  if (autograd::TensorAutograd* slot = find_autograd(self)) {
    slot->base = nullptr;
    slot->base_owner = nullptr;
    slot->steps = nullptr;
  }
}

void Tensor::backward(Site site) const {
  flow::backward({*this}, {}, {}, site);
}

void Tensor::backward(const TensorArg& gradient) const {
  flow::backward({*this}, {gradient.tensor()}, {}, gradient.site());
}

}  // namespace flow
