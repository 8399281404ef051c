#include "core/tensor.h"

#include "core/context.h"
#include "core/error.h"

namespace flow {

void Tensor::throw_undefined() {
  throw InvalidArgument(
      "[tensor] an undefined tensor was used; give it a value first (flow::zeros, an op, …)");
}

int64_t Tensor::size(int64_t dim) const {
  return shape()[normalize_dim(dim, this->dim(), "size")];
}

int64_t Tensor::stride(int64_t dim) const {
  return strides()[normalize_dim(dim, strides().size(), "stride")];
}

int64_t Tensor::storage_offset() const {
  return impl().offset;
}

void Tensor::make_strided() const {
  TensorImpl& self = impl();
  const BlockedLayout* blocked = self.meta->blocked;
  if (blocked == nullptr) return;
  const MetaPtr plain = with_blocked(self.meta, nullptr);
  if (self.storage) {
    Ref<Storage> target =
        Storage::allocate(thread_state().context->allocator(), plain->local_bytes());
    blocked->to_strided(*blocked, self.data(), target->data());
    self.storage = std::move(target);
    self.offset = 0;
  }
  self.meta = plain;
}

namespace internal {
void check_data_type(const Tensor& tensor, DType wanted) {
  if (tensor.dtype() != wanted) {
    throw InvalidArgument(str("[data] the tensor holds ", tensor.dtype(), "; asked for ", wanted,
                              "; use the matching C++ type or cast first"));
  }
  tensor.make_strided();
}
}  // namespace internal

}  // namespace flow
