// Writes through views. A view of a tensor shares its memory, so a recorded write to the view is
// one to the base too: the base's history becomes "replace this part", and other views of the base
// get their history anew from it when they are next used.
#pragma once

#include "autograd/node.h"
#include "autograd/op_node.h"
#include "autograd/saved_tensor.h"
#include "autograd/tensor_autograd.h"

namespace flow::autograd {

// Notes that the output of `call`, a view op, is a view of its input.
void track_view(const Call& call, const Decision& decision, const Tensor& output);

// Brings the history of a tracked view up to date with its base's.
void refresh_view(TensorImpl& view);

// The view that `steps` make of `tensor`, recorded when grad mode is on.
Tensor apply_steps(const Tensor& tensor, const ViewStep* steps);

// The history of a base after a write to a view of it. Edge 0 leads to the base's history before,
// the others to the further inputs of the write.
class ViewWriteNode final : public Node {
 public:
  // `write` is the node of the written view; null when the new value has no gradient.
  ViewWriteNode(const Block& block, const NodeScope& scope, Ref<OpNode> write, const char* op,
                const Tensor& base, Ref<ViewStep> steps);

  const char* name() const override { return op_; }

  void apply(const Tensor* dy, Tensor* dx) override;
  void free_saved() override;

  // The written view with its history, for a rule that saved its output.
  Tensor written_view(const Tensor& saved);

 private:
  Ref<OpNode> write_;
  const char* op_;
  MetaPtr base_meta_;
  int64_t base_offset_;
  Ref<ViewStep> steps_;
};

// Gives base and view their new history after the recorded write `call` to `view`. `write`: the
// node of the write, whose edge 0 is the view's old history; null when nothing flows through it.
void rebase_history(const Call& call, TensorImpl& view, Ref<OpNode> write);

}  // namespace flow::autograd
