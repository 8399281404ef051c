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

namespace {

// The position of a dim of one of `num_dims` dims.
int64_t position_of(int64_t dim, int64_t num_dims, const char* method, Site site) {
  const int64_t position = dim < 0 ? dim + num_dims : dim;
  if (position >= 0 && position < num_dims) return position;
  throw InvalidArgument(
      str("[", method, "] dim ", dim, " is out of range for a tensor of ", num_dims, " dims",
          num_dims == 0 ? str() : str("; use a dim in [", -num_dims, ", ", num_dims - 1, "]")),
      site);
}

}  // namespace

int64_t Tensor::size(int64_t dim, Site site) const {
  return shape()[position_of(dim, this->dim(), "size", site)];
}

int64_t Tensor::stride(int64_t dim, Site site) const {
  return strides()[position_of(dim, strides().size(), "stride", site)];
}

int64_t Tensor::storage_offset() const {
  return impl().offset;
}

void Tensor::make_strided() const {
  make_writable(impl());
}

namespace internal {
void check_data_type(const Tensor& tensor, DType wanted, Site site) {
  if (tensor.dtype() != wanted) {
    throw InvalidArgument(str("[data] the tensor holds ", tensor.dtype(), "; asked for ", wanted,
                              "; use the matching C++ type or cast first"),
                          site);
  }
  if (tensor.impl().trace != nullptr || thread_state().trace != nullptr) {
    throw_traced("data", tensor, site);
  }
  if (has_view_links() && is_outdated_view(tensor)) {
    throw InvalidArgument(
        str("[data] the tensor ", tensor.meta(),
            " is a view with memory of its own, and the tensor it shows was written since; call "
            "clone() and read the data of the result"),
        site);
  }
  tensor.make_strided();
}
}  // namespace internal

}  // namespace flow
