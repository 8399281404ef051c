#include "nn/tensor_reads.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "autograd/tensor_autograd.h"
#include "core/strided_twin.h"

namespace flow::nn {

namespace {

// A tensor handle is one pointer.
const TensorImpl* impl_at(const std::byte* member) {
  const TensorImpl* impl = nullptr;
  std::memcpy(&impl, member, sizeof impl);
  return impl;
}

}  // namespace

TensorReads::TensorReads(const std::vector<graph::CapturedHandle>& handles,
                         std::span<const std::byte> members) {
  std::unordered_set<const TensorImpl*> impls;
  size_t first = 0;
  for (const graph::CapturedHandle& handle : handles) {
    const bool is_first = reads_.empty() || handles[first].capture != handle.capture;
    if (is_first) first = reads_.size();
    reads_.push_back(
        {handle.tensor, handle.tensor.impl().tracks_grad(), hooks_of(handle.tensor), first});
    impls.insert(&handle.tensor.impl());
  }
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
  for (size_t i = 0; i + sizeof(Tensor) <= members.size(); i += alignof(Tensor)) {
    const TensorImpl* impl = impl_at(&members[i]);
    if (impls.contains(impl)) members_.push_back({&members[i], impl});
  }
  num_memories_ = num_memories();
}

TensorReads::Hooks TensorReads::hooks_of(const Tensor& tensor) {
  const autograd::TensorAutograd* slot = autograd::find_autograd(tensor.impl());
  if (slot == nullptr || slot->hooks.empty()) return {0, -1};
  return {slot->hooks.size(), slot->hooks.back().id};
}

TensorReads::Place TensorReads::place_of(const Tensor& tensor) {
  return {tensor.impl().storage.get(), tensor.impl().offset};
}

size_t TensorReads::num_memories() const {
  std::unordered_set<const Storage*> memories;
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].first == i) memories.insert(memory_of(reads_[i].tensor.impl()));
  }
  return memories.size();
}

bool TensorReads::share_as_traced() const {
  const bool is_known = std::equal(
      reads_.begin(), reads_.end(), checked_.begin(), checked_.end(),
      [](const Read& read, const Place& place) { return place_of(read.tensor) == place; });
  if (is_known) return true;
  for (const Read& read : reads_) {
    const TensorImpl &impl = read.tensor.impl(), &first = reads_[read.first].tensor.impl();
    if (!share_memory(impl, first) || impl.offset != first.offset) return false;
  }
  if (num_memories() != num_memories_) return false;
  checked_.clear();
  for (const Read& read : reads_)
    checked_.push_back(place_of(read.tensor));
  return true;
}

bool TensorReads::fits() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return impl_at(member.at) == member.impl; }) &&
         std::all_of(reads_.begin(), reads_.end(),
                     [](const Read& read) {
                       return read.tensor.impl().tracks_grad() == read.tracks_grad &&
                              hooks_of(read.tensor) == read.hooks;
                     }) &&
         share_as_traced();
}

}  // namespace flow::nn
