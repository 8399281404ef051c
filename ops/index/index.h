// Reads and writes elements by position: x[i], slices, masks and tensors of indices.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct NoneType {};

struct EllipsisType {};

// In an index, inserts a new dim of size 1; as the bound of a Slice, means "not given".
inline constexpr NoneType None;
// Stands for as many full slices as an index needs to cover all dims.
inline constexpr EllipsisType Ellipsis;

// The range start:end:step, as in Python. Negative positions count from the end. Requires: step >
// 0.
class Slice {
 public:
  struct Bound {
    Bound(NoneType /*none*/) {}  // NOLINT(google-explicit-constructor): a bound is None or a number

    template <std::integral T>
    Bound(T position)  // NOLINT(google-explicit-constructor)
        : value(static_cast<int64_t>(position)) {}

    std::optional<int64_t> value;
  };

  // NOLINTNEXTLINE(google-explicit-constructor)
  Slice(Bound first = None, Bound last = None, int64_t step_size = 1)
      : start(first.value), end(last.value), step(step_size) {}

  std::optional<int64_t> start;
  std::optional<int64_t> end;
  int64_t step;
};

// One entry of an index: a number, a Slice, None, Ellipsis, or a tensor of integer positions or a
// bool mask. operator[] cannot have default arguments, so the entry records the place of the call.
class IndexArg {
 public:
  enum class Kind : uint8_t { kNumber, kSlice, kNone, kEllipsis, kTensor };

  template <std::integral T>

  requires(!std::same_as<T, bool>)

      IndexArg(T index, Site where = Site::here())  // NOLINT(google-explicit-constructor)
      : kind(Kind::kNumber), number(static_cast<int64_t>(index)), site(where) {}

  IndexArg(Tensor indices, Site where = Site::here())  // NOLINT(google-explicit-constructor)
      : kind(Kind::kTensor), tensor(std::move(indices)), site(where) {}

  IndexArg(const Slice& range, Site where = Site::here())  // NOLINT(google-explicit-constructor)
      : kind(Kind::kSlice), slice(range), site(where) {}

  IndexArg(NoneType /*none*/, Site where = Site::here())  // NOLINT(google-explicit-constructor)
      : kind(Kind::kNone), site(where) {}

  IndexArg(EllipsisType /*dots*/, Site where = Site::here())  // NOLINT(google-explicit-constructor)
      : kind(Kind::kEllipsis), site(where) {}

  Kind kind;
  int64_t number = 0;
  Slice slice;
  Tensor tensor;
  Site site;
};

// The indices of consecutive dims: {0, flow::Slice(1, 3)}, or a vector of tensors.
class IndexList {
 public:
  IndexList(std::initializer_list<IndexArg> indices) : indices_(indices) {}

  IndexList(const IndexArg& index) : indices_{index} {}  // NOLINT(google-explicit-constructor)

  explicit IndexList(std::vector<IndexArg> indices) : indices_(std::move(indices)) {}

  // NOLINTNEXTLINE(google-explicit-constructor)
  IndexList(const std::vector<Tensor>& tensors, Site where = Site::here());

  const std::vector<IndexArg>& indices() const { return indices_; }

 private:
  std::vector<IndexArg> indices_;
};

// Returns x[indices]. With only numbers, slices, None and Ellipsis, the result is a view. Integer
// tensors are broadcast together and select elements one by one; a bool tensor stands for the
// positions of its true elements, one index tensor per dim. If all tensors are next to each other
// in the index, the selected dims take the place of the first one; otherwise they come first (as in
// PyTorch, where a scalar tensor counts as a number).
//   index(x (5, 3, 4), {rows (2), flow::Slice(), cols (2)}): (2, 3)
Tensor index(const TensorArg& x, const IndexList& indices);

// Assigns x[indices] = values, where values broadcast to the shape of x[indices]. If an element is
// named twice, the last value remains. The form without underscore returns a changed copy and
// leaves x unchanged.
Tensor index_put(const TensorArg& x, const IndexList& indices, const TensorArg& values,
                 const IndexPutOptions& options = {});
const Tensor& index_put_(const Tensor& x, const IndexList& indices, const TensorArg& values,
                         const IndexPutOptions& options = {});
const Tensor& index_put_(const Tensor& x, const IndexList& indices, const Scalar& value,
                         Site site = Site::here());

// Returns the slices of x along `dim` at the positions in `index`, a vector or scalar of integers.
Tensor index_select(const TensorArg& x, int64_t dim, const TensorArg& index);

// Returns the elements of x at which mask (bool, broadcast with x) is true, as a vector.
Tensor masked_select(const TensorArg& x, const TensorArg& mask);

// Returns the positions of the nonzero elements in row-major order: (count, x.dim()) int64.
Tensor nonzero(const TensorArg& x);

// Returns an int64 tensor (…, num_classes) with a 1 at each index and zeros elsewhere. num_classes
// = -1 stands for the largest index + 1.
Tensor one_hot(const TensorArg& indices, int64_t num_classes = -1);

}  // namespace flow
