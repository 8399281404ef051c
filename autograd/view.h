// Writes through views. A view of a tensor shares its memory, so a recorded write to the view is
// also a write to the base. The base's history becomes "replace this part", and other views of the
// base get a new history from it when they are next used.
#pragma once

#include "autograd/node.h"
#include "autograd/op_node.h"
#include "autograd/saved_tensor.h"
#include "autograd/tensor_autograd.h"

namespace flow::autograd {

// Records that the output of `call`, a view op, is a view of its input.
void track_view(const Call& call, const Decision& decision, const Tensor& output);

// Updates the history of a tracked view to that of its base.
void refresh_view(TensorImpl& view);

// Applies the view ops of `steps` to `tensor`; they are recorded if grad mode is on.
Tensor apply_steps(const Tensor& tensor, const ViewStep* steps);

// The history of a base after a write to a view of it. Edge 0 leads to the base's previous history,
// the other edges to the other inputs of the write.
class ViewWriteNode final : public Node {
 public:
  // `write` is the node of the write; null if the new value has no gradient.
  ViewWriteNode(const Block& block, const NodeScope& scope, Ref<OpNode> write, const char* op,
                const Tensor& base, Ref<ViewStep> steps);

  const char* name() const override { return op_; }

  void apply(const Tensor* dy, Tensor* dx) override;
  void free_saved() override;

  // Returns the written view with its history, for a rule that saved its output.
  Tensor written_view(const Tensor& saved);

 private:
  Ref<OpNode> write_;
  const char* op_;
  MetaPtr base_meta_;
  int64_t base_offset_;
  Ref<ViewStep> steps_;
};

// Gives base and view their new history after the recorded write `call` to `view`. `write` is the
// node of the write, whose edge 0 is the view's old history; null if no gradient flows through it.
void rebase_history(const Call& call, TensorImpl& view, Ref<OpNode> write);

}  // namespace flow::autograd
