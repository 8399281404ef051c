// The node of a recorded op. Its saved tensors and attrs are stored behind the node in the same
// block.
#pragma once

#include <bit>

#include "autograd/node.h"
#include "autograd/saved_tensor.h"
#include "core/dispatch.h"

namespace flow::autograd {

class ViewWriteNode;

class OpNode final : public Node {
 public:
  // Saves the values that the op's rule needs. Sets the metas of the edges, but not their nodes.
  static Ref<OpNode> make(const Call& call, const Tensor* outputs, size_t num_outputs);

  OpNode(const Block& block, const Call& call, const Tensor* outputs);
  ~OpNode() override;

  const char* name() const override { return op_.name; }

  void apply(const Tensor* dy, Tensor* dx) override;
  void free_saved() override;

  const OpDef& op() const { return op_; }

  const void* attrs() const { return attrs_; }

  const RandomStream& random() const;
  Tensor saved_input(int i) const;
  Tensor saved_output(int i) const;

  // Marks the node as the write inside `view_write`: its output has that node's history.
  void set_view_write(ViewWriteNode* view_write) { view_write_ = view_write; }

  using Node::number;

 private:
  // The bits of the call's tensors that are saved; bits beyond the number of tensors are cleared.
  static uint32_t saved_mask(uint32_t mask, size_t count) {
    return count >= 32 ? mask : mask & ((uint32_t{1} << count) - 1);
  }

  const SavedTensor& saved(uint32_t mask, size_t first, const char* kind, int i) const;

  size_t num_saved() const { return num_saved_inputs_ + num_saved_outputs_; }

  const OpDef& op_;
  SavedTensor* saved_;
  const std::byte* attrs_;
  const RandomStream* random_ = nullptr;
  ViewWriteNode* view_write_ = nullptr;
  uint32_t num_saved_inputs_;
  uint32_t num_saved_outputs_;
};

}  // namespace flow::autograd
