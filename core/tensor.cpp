#include "core/tensor.h"

#include "core/error.h"
#include "core/strided_twin.h"
#include "core/traced.h"
#include "core/view_link.h"

namespace flow {

void Tensor::throw_undefined(Site site) {
  throw InvalidArgument(
      "[tensor] an undefined tensor was used; give it a value first (flow::zeros, an op, …)", site);
}

void TensorArg::throw_undefined() const {
  Tensor::throw_undefined(site());
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
  make_writable(impl());
}

namespace internal {
void check_data_type(const Tensor& tensor, DType wanted) {
  if (tensor.dtype() != wanted) {
    throw InvalidArgument(str("[data] the tensor holds ", tensor.dtype(), "; asked for ", wanted,
                              "; use the matching C++ type or cast first"));
  }
  if (tensor.impl().trace != nullptr || thread_state().trace != nullptr) {
    throw_traced("data", tensor, Site::none());
  }
  if (has_view_links() && is_outdated_view(tensor)) {
    throw InvalidArgument(
        str("[data] the tensor ", tensor.meta(),
            " is a view with memory of its own, and the tensor it shows was written since; call "
            "clone() and read the data of the result"));
  }
  tensor.make_strided();
}
}  // namespace internal

}  // namespace flow
