// What autograd keeps beside a tensor: its gradient, hooks, and, for a view, how it was made.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "autograd/node.h"
#include "core/dispatch.h"

namespace flow::autograd {

// Stands for a leaf in the backward graph: what arrives here is summed up in the leaf's gradient.
// Lives as long as the leaf or a graph that uses it.
class LeafNode final : public Node {
 public:
  LeafNode(const Block& block, TensorImpl& leaf) : Node(block, NodeScope()), leaf_(&leaf) {
    outputs()[0].meta = leaf.meta;
  }

  const char* name() const override { return "leaf"; }

  bool is_leaf() const override { return true; }

  // Nothing lies behind a leaf; the engine calls accumulate() instead.
  void apply(const Tensor* /*dy*/, Tensor* /*dx*/) override {}

  void free_saved() override {}

  // Null once the last handle is gone: the gradient has no reader then.
  TensorImpl* leaf() const { return leaf_; }

  void forget() { leaf_ = nullptr; }

  void remove_hook(int64_t id) override;

  // Run with the leaf after each accumulation.
  struct AccumulateHook {
    int64_t id;
    std::function<void(const Tensor&)> function;
  };

  std::vector<AccumulateHook> accumulate_hooks;

 private:
  TensorImpl* leaf_;
};

// One view op between a base and a view of it; the steps before it lie in `previous`.
struct ViewStep final : RefCounted<ViewStep> {
  const OpDef* op;
  Ref<ViewStep> previous;
  std::vector<std::byte> attrs;
  Site site;

  ViewStep(const Call& call, Ref<ViewStep> before);

  // Long chains do not recurse.
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
  // Made at the first use of a leaf.
  Ref<LeafNode> leaf_node;
  // The node that keeps this tensor's gradient (retain_grad); null for none.
  Node* retained_node = nullptr;
  // Where hooks were registered: in-place ops move a tensor to another node, its hooks stay.
  std::vector<HookPlace> hooks;

  // Of a tracked view: the owner of AutogradSlot::base, the ops that lead from it to here, and the
  // history of the base when this view's own was made (kept alive by that history).
  Ref<TensorImpl> base_owner;
  Ref<ViewStep> steps;
  const GradNode* base_history = nullptr;
};

// Null when the tensor has none.
inline TensorAutograd* find_autograd(const TensorImpl& impl) {
  return static_cast<TensorAutograd*>(impl.autograd.get());
}

TensorAutograd& make_autograd(TensorImpl& impl);

// The node of a leaf that requires grad.
const Ref<LeafNode>& leaf_node(TensorImpl& leaf);

// Where the gradient of `tensor` goes, after bringing a view's history up to date; no node when the
// tensor tracks none. The edge's meta is the tensor's.
Edge edge_of(const Tensor& tensor);

// Moves the tensor to another place in the graph: it is output `index` of `node` from now on.
void set_history(TensorImpl& impl, const Ref<Node>& node, uint32_t index);

// Makes a tensor a leaf without history.
void clear_history(TensorImpl& impl);

}  // namespace flow::autograd
