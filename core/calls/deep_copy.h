// Handles of tensors that become handles of copies while a module is cloned.
#pragma once

#include <utility>
#include <vector>

#include "core/ref.h"
#include "core/tensor_impl.h"

namespace flow {

// While an object lives, a copy of a handle of the first tensor of a pair, made by this thread, is
// a handle of the second one. Copies of all other handles are as usual. Objects do not nest.
class DeepCopy {
 public:
  using Pairs = std::vector<std::pair<Ref<TensorImpl>, Ref<TensorImpl>>>;

  explicit DeepCopy(Pairs pairs);
  ~DeepCopy();
  DeepCopy(const DeepCopy&) = delete;
  DeepCopy& operator=(const DeepCopy&) = delete;

  static bool is_active() { return current_ != nullptr; }

  // What a copy of the handle refers to. Requires: is_active().
  static const Ref<TensorImpl>& of(const Ref<TensorImpl>& tensor) noexcept;

 private:
  Pairs pairs_;  // sorted by the address of the first tensor
  inline static constinit thread_local const DeepCopy* current_ = nullptr;
};

}  // namespace flow
