// Methods that give views, rearranged copies and tensors like this one. They are defined in
// ops/shape and ops/creation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/methods/method_family.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/site.h"
#include "core/tensor_options.h"

namespace flow {

class Tensor;
class TensorArg;

class ShapeMethods : public MethodFamily<ShapeMethods> {
 public:
  // ---- views of the same elements
  Tensor reshape(const Shape& shape, Site site = Site::here()) const;
  Tensor view(const Shape& shape, Site site = Site::here()) const;
  Tensor view_as(const TensorArg& other) const;
  Tensor reshape_as(const TensorArg& other) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1, Site site = Site::here()) const;
  Tensor unflatten(int64_t dim, const Shape& sizes, Site site = Site::here()) const;
  Tensor squeeze(Site site = Site::here()) const;
  Tensor squeeze(int64_t dim, Site site = Site::here()) const;
  Tensor squeeze(const std::vector<int64_t>& dims, Site site = Site::here()) const;
  Tensor unsqueeze(int64_t dim, Site site = Site::here()) const;
  Tensor transpose(int64_t dim0, int64_t dim1, Site site = Site::here()) const;
  Tensor t(Site site = Site::here()) const;
  // NOLINTBEGIN(readability-identifier-naming): PyTorch's names
  // T() is t(). mT() transposes each matrix of a stack: transpose(-2, -1). H() and mH() are the
  // same for real numbers; H() takes one matrix.
  Tensor T(Site site = Site::here()) const;
  Tensor mT(Site site = Site::here()) const;
  Tensor H(Site site = Site::here()) const;
  Tensor mH(Site site = Site::here()) const;
  // NOLINTEND(readability-identifier-naming)
  Tensor swapaxes(int64_t axis0, int64_t axis1, Site site = Site::here()) const;
  Tensor swapdims(int64_t dim0, int64_t dim1, Site site = Site::here()) const;
  Tensor permute(const Ints& dims, Site site = Site::here()) const;
  Tensor movedim(const Ints& source, const Ints& destination, Site site = Site::here()) const;
  Tensor expand(const Shape& shape, Site site = Site::here()) const;
  Tensor expand_as(const TensorArg& other) const;
  Tensor broadcast_to(const Shape& shape, Site site = Site::here()) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length, Site site = Site::here()) const;
  Tensor select(int64_t dim, int64_t index, Site site = Site::here()) const;
  Tensor slice(int64_t dim, std::optional<int64_t> start = std::nullopt,
               std::optional<int64_t> end = std::nullopt, int64_t step = 1,
               Site site = Site::here()) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1,
                  Site site = Site::here()) const;
  std::vector<Tensor> unbind(int64_t dim = 0, Site site = Site::here()) const;
  std::vector<Tensor> split(const Sections& sections, int64_t dim = 0,
                            Site site = Site::here()) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0, Site site = Site::here()) const;
  std::vector<Tensor> tensor_split(const Sections& sections, int64_t dim = 0,
                                   Site site = Site::here()) const;
  std::vector<Tensor> dsplit(const Sections& sections, Site site = Site::here()) const;
  std::vector<Tensor> vsplit(const Sections& sections, Site site = Site::here()) const;
  std::vector<Tensor> hsplit(const Sections& sections, Site site = Site::here()) const;

  // ---- rearranged copies
  Tensor repeat(const Ints& repeats, Site site = Site::here()) const;
  Tensor tile(const Ints& repeats, Site site = Site::here()) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = std::nullopt,
                           Site site = Site::here()) const;
  Tensor flip(const Ints& dims, Site site = Site::here()) const;
  Tensor fliplr(Site site = Site::here()) const;
  Tensor flipud(Site site = Site::here()) const;
  Tensor rot90(int64_t k = 1, const Ints& dims = {0, 1}, Site site = Site::here()) const;
  Tensor roll(const Ints& shifts, const Ints& dims = {}, Site site = Site::here()) const;
  Tensor tril(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor triu(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor diag(int64_t diagonal = 0, Site site = Site::here()) const;
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1,
                    Site site = Site::here()) const;
  // Windows of `size` elements along `dim`, one every `step`. Each window becomes the new last dim.
  // The result is a copy.
  Tensor unfold(int64_t dim, int64_t size, int64_t step, Site site = Site::here()) const;

  // ---- others of this dtype and layout
  // With the dtype of other.
  Tensor type_as(const TensorArg& other) const;
  Tensor new_empty(const Shape& shape, const TensorOptions& options = {},
                   Site site = Site::here()) const;
  Tensor new_zeros(const Shape& shape, const TensorOptions& options = {},
                   Site site = Site::here()) const;
  Tensor new_ones(const Shape& shape, const TensorOptions& options = {},
                  Site site = Site::here()) const;
  Tensor new_full(const Shape& shape, const Scalar& value, const TensorOptions& options = {},
                  Site site = Site::here()) const;
};

}  // namespace flow
