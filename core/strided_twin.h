// Strided twins of blocked tensors. A tensor in a blocked layout of a library keeps that layout. If
// a call needs its values strided, its storage gets a strided twin, which is made once. A view of
// the tensor is a view of its twin. So no call changes what another call sees. Only a write makes a
// blocked tensor strided permanently: the twin becomes the memory of the tensor.
#pragma once

#include "core/storage.h"
#include "core/tensor.h"
#include "core/tensor_impl.h"

namespace flow {

// Returns the strided form of the memory of a blocked tensor. Requires: a blocked meta and storage.
const Ref<Storage>& strided_twin(const TensorImpl& tensor);

// Returns the tensor itself if it is strided, otherwise a handle on its twin, without history.
Tensor strided_form(const Tensor& tensor);

// Prepares the memory of a tensor for a write. A blocked tensor becomes strided. If the memory is a
// twin, the tensor that it is a twin of becomes strided at its next use. Alters no values. Returns
// whether the meta of `tensor` has changed.
bool make_writable(TensorImpl& tensor);

// Makes the twin the memory of the tensor if the twin has been written, because the blocked memory
// is then out of date. Returns whether the meta of `tensor` has changed.
bool follow_written_twin(TensorImpl& tensor);

// Returns what two tensors have in common if a write to one is a write to the other: their storage
// or, for a twin, the storage of the blocked tensor. Null without storage.
inline const Storage* memory_of(const TensorImpl& tensor) {
  const Storage* storage = tensor.storage.get();
  return storage != nullptr && storage->twin_of() != nullptr ? storage->twin_of() : storage;
}

inline bool share_memory(const TensorImpl& a, const TensorImpl& b) {
  return memory_of(a) == memory_of(b);
}

}  // namespace flow
