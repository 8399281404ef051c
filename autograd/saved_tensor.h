// A tensor kept for backward: an alias of its data that notices writes, without its history, so
// that a node may save its own outputs. Inside recompute(), a number instead that stands for it.
#pragma once

#include "autograd/node.h"

namespace flow::autograd {

class RecomputeRegion;

class SavedTensor {
 public:
  SavedTensor();
  SavedTensor(SavedTensor&&) noexcept;
  SavedTensor& operator=(SavedTensor&&) noexcept;
  ~SavedTensor();
  // An undefined tensor is saved as such.
  explicit SavedTensor(const Tensor& tensor);

  // Marks a value that the recorded call itself wrote over.
  void set_overwritten() { is_overwritten_ = true; }

  // The value as the output `index` of `history` (no node: without history). Throws InvalidArgument
  // when it was written to since; `owner` and `what` ("input 0") are for the message.
  Tensor unpack(const Node& owner, const char* kind, int position, Node* history,
                uint32_t index) const;

  // Frees the value.
  void reset();

 private:
  [[noreturn]] void throw_overwritten(const Node& owner, const char* kind, int position,
                                      uint32_t version) const;

  MetaPtr meta_ = nullptr;
  Ref<Storage> storage_;
  int64_t offset_ = 0;  // or the number in the region
  uint32_t version_ = 0;
  bool is_overwritten_ = false;
  Ref<TensorImpl> traced_;  // instead of the storage where the value exists only in a trace
  Ref<RecomputeRegion> region_;
};

}  // namespace flow::autograd
