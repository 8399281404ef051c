// Strided twins of blocked tensors. A tensor in a library's blocked layout keeps that layout. Where
// a call needs its values strided, its storage gets a strided twin, which is made once; a view of
// the tensor is a view of its twin. So no call changes what another call sees. Only a write makes a
// blocked tensor strided for good: the tensor takes its twin as its memory.
#pragma once

#include "core/storage.h"
#include "core/tensor.h"
#include "core/tensor_impl.h"

namespace flow {

// The strided form of the memory of a blocked tensor. Requires: a blocked meta and storage.
const Ref<Storage>& strided_twin(const TensorImpl& tensor);

// The tensor itself where it is strided, else a handle without history on its twin.
Tensor strided_form(const Tensor& tensor);

// Before the memory of a tensor is written: a blocked tensor becomes strided, and where the memory
// is a twin, the tensor that it is a twin of becomes strided at its next use. Alters no values.
// Returns whether the meta of `tensor` has changed.
bool make_writable(TensorImpl& tensor);

// Takes the twin as memory where it was written since: then the blocked memory is out of date.
// Returns whether the meta of `tensor` has changed.
bool follow_written_twin(TensorImpl& tensor);

// What tensors have in common of which a write to one is a write to the other: their storage, for a
// twin that of the blocked tensor. Null without storage.
inline const Storage* memory_of(const TensorImpl& tensor) {
  const Storage* storage = tensor.storage.get();
  return storage != nullptr && storage->twin_of() != nullptr ? storage->twin_of() : storage;
}

inline bool share_memory(const TensorImpl& a, const TensorImpl& b) {
  return memory_of(a) == memory_of(b);
}

}  // namespace flow
