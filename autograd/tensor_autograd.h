// The data that autograd stores with a tensor: its gradient, its hooks and, for a view, how it was
// made.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "autograd/leaves.h"
#include "autograd/node.h"
#include "core/dispatch.h"

namespace flow::autograd {

// Represents a leaf in the backward graph: gradients that arrive here are added to the leaf's
// gradient. Lives as long as the leaf, or a graph that uses it.
class LeafNode final : public Node {
 public:
  LeafNode(const Block& block, TensorImpl& leaf) : Node(block, NodeScope()), leaf_(&leaf) {
    outputs()[0].meta = leaf.meta;
  }

  const char* name() const override { return "leaf"; }

  bool is_leaf() const override { return true; }

  // A leaf has no inputs; the engine calls accumulate() instead.
  void apply(const Tensor* /*dy*/, Tensor* /*dx*/) override {}

  void free_saved() override {}

  // Null once the last handle is destroyed: nobody can read the gradient then.
  TensorImpl* leaf() const { return leaf_; }

  void forget() { leaf_ = nullptr; }

  void remove_hook(int64_t id) override;

  // Called with the leaf after each accumulation.
  struct AccumulateHook {
    int64_t id;
    std::function<void(const Tensor&)> function;
  };

  std::vector<AccumulateHook> accumulate_hooks;

 private:
  TensorImpl* leaf_;
};

// One view op between a base and a view of it; `previous` is the step before it.
struct ViewStep final : RefCounted<ViewStep> {
  const OpDef* op;
  Ref<ViewStep> previous;
  std::vector<std::byte> attrs;
  Site site;

  ViewStep(const Call& call, Ref<ViewStep> before);

  // Destroys a long chain without recursion.
  static void destroy(ViewStep* step) noexcept;
};

struct TensorAutograd final : AutogradSlot {
  struct HookPlace {
    int64_t id;
    Ref<Node> node;
  };

  TensorAutograd() = default;
  ~TensorAutograd() override;
  TensorAutograd(const TensorAutograd&) = delete;
  TensorAutograd& operator=(const TensorAutograd&) = delete;

  Tensor gradient;
  // Set once the user has asked for gradients of the tensor.
  std::unique_ptr<ListedLeaf> listed;
  // Of a parameter: the module that registered it, and how its initial values were drawn
  // (nn/init.cpp).
  std::weak_ptr<const void> owner;
  std::shared_ptr<void> initial_draw;
  // Created when the leaf is first used.
  Ref<LeafNode> leaf_node;
  // The node that stores this tensor's gradient (retain_grad); null if there is none.
  Node* retained_node = nullptr;
  // The nodes where hooks were registered: an in-place op moves the tensor to another node, but its
  // hooks stay.
  std::vector<HookPlace> hooks;

  // Of an untracked view: whether its memory is that of a tensor that tracked gradients.
  bool shows_recorded = false;

  // For a tracked view: the owner of AutogradSlot::base, the ops that lead from the base to this
  // view, and the history of the base when this view's history was made (which keeps it alive).
  Ref<TensorImpl> base_owner;
  Ref<ViewStep> steps;
  const GradNode* base_history = nullptr;

  // For an output of a custom function that shares memory with an input: the input, and its history
  // when the function returned.
  Ref<TensorImpl> shown_input;
  const GradNode* shown_history = nullptr;
};

// True if two tensors share memory, or in a trace are the same value.
bool shares_memory(const TensorImpl& a, const TensorImpl& b);

// Null if the tensor has no autograd data.
inline TensorAutograd* find_autograd(const TensorImpl& impl) {
  return static_cast<TensorAutograd*>(impl.autograd.get());
}

inline bool shows_recorded(const TensorImpl& impl) {
  const TensorAutograd* slot = find_autograd(impl);
  return slot != nullptr && slot->shows_recorded;
}

TensorAutograd& make_autograd(TensorImpl& impl);

// The node of a leaf that requires grad.
const Ref<LeafNode>& leaf_node(TensorImpl& leaf);

// The destination of the gradient of `tensor`, after the history of a view has been updated. The
// edge has no node if the tensor tracks no gradient. The edge's meta is the tensor's.
Edge edge_of(const Tensor& tensor);

// The same for a tensor that the user names. Dispatch has brought the inputs of a call up to date
// with their bases (core/view_link.h), and nobody has done so for this one.
Edge current_edge_of(const Tensor& tensor);

// Makes the tensor output `index` of `node`.
void set_history(TensorImpl& impl, const Ref<Node>& node, uint32_t index);

// Makes a tensor a leaf without history.
void clear_history(TensorImpl& impl);

}  // namespace flow::autograd
