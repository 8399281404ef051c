// Methods of Tensor for views, rearranged copies and tensors of its kind.
#include <vector>

#include "core/tensor.h"
#include "ops/creation/creation.h"
#include "ops/shape/arrange.h"
#include "ops/shape/concat.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

Tensor Tensor::view_as(const TensorArg& other) const {
  return flow::view_as(TensorArg(*this, other.site()), other);
}

Tensor Tensor::reshape_as(const TensorArg& other) const {
  return flow::reshape_as(TensorArg(*this, other.site()), other);
}

Tensor Tensor::expand_as(const TensorArg& other) const {
  return flow::expand_as(TensorArg(*this, other.site()), other);
}

Tensor Tensor::broadcast_to(const flow::Shape& shape, Site site) const {
  return flow::broadcast_to(TensorArg(*this, site), shape);
}

Tensor Tensor::unflatten(int64_t dim, const flow::Shape& sizes, Site site) const {
  return flow::unflatten(TensorArg(*this, site), dim, sizes);
}

Tensor Tensor::squeeze(const std::vector<int64_t>& dims, Site site) const {
  return flow::squeeze(TensorArg(*this, site), dims);
}

Tensor Tensor::swapaxes(int64_t axis0, int64_t axis1, Site site) const {
  return flow::swapaxes(TensorArg(*this, site), axis0, axis1);
}

Tensor Tensor::swapdims(int64_t dim0, int64_t dim1, Site site) const {
  return flow::swapdims(TensorArg(*this, site), dim0, dim1);
}

Tensor Tensor::movedim(const Ints& source, const Ints& destination, Site site) const {
  return flow::movedim(TensorArg(*this, site), source, destination);
}

Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2, Site site) const {
  return flow::diagonal(TensorArg(*this, site), offset, dim1, dim2);
}

Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step, Site site) const {
  return flow::slice(TensorArg(*this, site), dim, start, end, step);
}

std::vector<Tensor> Tensor::unbind(int64_t dim, Site site) const {
  return flow::unbind(TensorArg(*this, site), dim);
}

std::vector<Tensor> Tensor::split(int64_t split_size, int64_t dim, Site site) const {
  return flow::split(TensorArg(*this, site), split_size, dim);
}

std::vector<Tensor> Tensor::split(const std::vector<int64_t>& sizes, int64_t dim, Site site) const {
  return flow::split(TensorArg(*this, site), sizes, dim);
}

std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim, Site site) const {
  return flow::chunk(TensorArg(*this, site), chunks, dim);
}

std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim, Site site) const {
  return flow::tensor_split(TensorArg(*this, site), sections, dim);
}

std::vector<Tensor> Tensor::tensor_split(const std::vector<int64_t>& indices, int64_t dim,
                                         Site site) const {
  return flow::tensor_split(TensorArg(*this, site), indices, dim);
}

Tensor Tensor::repeat(const Ints& repeats, Site site) const {
  return flow::repeat(TensorArg(*this, site), repeats);
}

Tensor Tensor::tile(const Ints& repeats, Site site) const {
  return flow::tile(TensorArg(*this, site), repeats);
}

Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim, Site site) const {
  return flow::repeat_interleave(TensorArg(*this, site), repeats, dim);
}

Tensor Tensor::flip(const Ints& dims, Site site) const {
  return flow::flip(TensorArg(*this, site), dims);
}

Tensor Tensor::fliplr(Site site) const {
  return flow::fliplr(TensorArg(*this, site));
}

Tensor Tensor::flipud(Site site) const {
  return flow::flipud(TensorArg(*this, site));
}

Tensor Tensor::rot90(int64_t k, const Ints& dims, Site site) const {
  return flow::rot90(TensorArg(*this, site), k, dims);
}

Tensor Tensor::roll(const Ints& shifts, const Ints& dims, Site site) const {
  return flow::roll(TensorArg(*this, site), shifts, dims);
}

Tensor Tensor::tril(int64_t diagonal, Site site) const {
  return flow::tril(TensorArg(*this, site), diagonal);
}

Tensor Tensor::triu(int64_t diagonal, Site site) const {
  return flow::triu(TensorArg(*this, site), diagonal);
}

Tensor Tensor::diag(int64_t diagonal, Site site) const {
  return flow::diag(TensorArg(*this, site), diagonal);
}

Tensor Tensor::diag_embed(int64_t offset, int64_t dim1, int64_t dim2, Site site) const {
  return flow::diag_embed(TensorArg(*this, site), offset, dim1, dim2);
}

Tensor Tensor::type_as(const TensorArg& other) const {
  return to(other->dtype(), other.site());
}

Tensor Tensor::new_empty(const flow::Shape& shape, const TensorOptions& options, Site site) const {
  return flow::new_empty(TensorArg(*this, site), shape, options);
}

Tensor Tensor::new_zeros(const flow::Shape& shape, const TensorOptions& options, Site site) const {
  return flow::new_zeros(TensorArg(*this, site), shape, options);
}

Tensor Tensor::new_ones(const flow::Shape& shape, const TensorOptions& options, Site site) const {
  return flow::new_ones(TensorArg(*this, site), shape, options);
}

Tensor Tensor::new_full(const flow::Shape& shape, const Scalar& value, const TensorOptions& options,
                        Site site) const {
  return flow::new_full(TensorArg(*this, site), shape, value, options);
}

}  // namespace flow
