// A tensor kept for backward: an alias of its data that detects later writes. It does not keep the
// tensor's history, so a node may save its own outputs. Inside recompute() it stores an index in
// the region instead.
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
  // An undefined tensor is saved as undefined.
  explicit SavedTensor(const Tensor& tensor);

  // Marks a value that the recorded call itself has overwritten.
  void set_overwritten() { is_overwritten_ = true; }

  // Returns the value as output `index` of `history`, or without history if that is null. Throws
  // InvalidArgument if the value was written in place afterwards; `owner`, `kind` and `position`
  // ("input", 0) name it in the message.
  Tensor unpack(const Node& owner, const char* kind, int position, Node* history,
                uint32_t index) const;

  // Frees the value.
  void reset();

 private:
  [[noreturn]] void throw_overwritten(const Node& owner, const char* kind, int position,
                                      uint32_t version) const;

  MetaPtr meta_ = nullptr;
  Ref<Storage> storage_;
  int64_t offset_ = 0;  // or the index in the region
  uint32_t version_ = 0;
  bool is_overwritten_ = false;
  Ref<TensorImpl> traced_;  // instead of the storage, if the value exists only in a trace
  Ref<RecomputeRegion> region_;
};

}  // namespace flow::autograd
