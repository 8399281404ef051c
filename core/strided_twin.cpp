#include "core/strided_twin.h"

#include "core/context.h"

namespace flow {

namespace {

bool is_blocked(const TensorImpl& tensor) {
  return tensor.meta->blocked != nullptr;
}

void take_twin(TensorImpl& tensor) {
  if (tensor.storage) {
    tensor.storage = Ref<Storage>(strided_twin(tensor));
    tensor.offset = 0;
  }
  tensor.meta = with_blocked(tensor.meta, nullptr);
}

}  // namespace

const Ref<Storage>& strided_twin(const TensorImpl& tensor) {
  Storage& blocked = *tensor.storage;
  if (blocked.twin()) return blocked.twin();
  const MetaPtr plain = with_blocked(tensor.meta, nullptr);
  Ref<Storage> twin = Storage::allocate(thread_state().context->allocator(), plain->local_bytes());
  const BlockedLayout& layout = *tensor.meta->blocked;
  layout.to_strided(layout, tensor.data(), twin->data());
  blocked.set_twin(std::move(twin));
  return blocked.twin();
}

Tensor strided_form(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  if (!is_blocked(impl)) return tensor;
  return Tensor::make(with_blocked(impl.meta, nullptr),
                      impl.storage ? strided_twin(impl) : Ref<Storage>());
}

bool make_writable(TensorImpl& tensor) {
  if (is_blocked(tensor)) {
    const Ref<Storage> blocked = tensor.storage;
    take_twin(tensor);
    if (blocked) blocked->set_outdated();
    return true;
  }
  if (tensor.storage && tensor.storage->twin_of() != nullptr) [[unlikely]]
    tensor.storage->twin_of()->set_outdated();
  return false;
}

bool follow_written_twin(TensorImpl& tensor) {
  if (!is_blocked(tensor) || !tensor.storage || !tensor.storage->is_outdated()) return false;
  take_twin(tensor);
  return true;
}

}  // namespace flow
