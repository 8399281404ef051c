// Picking and writing elements by position: x[i], slices, masks and tensors of indices.
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

// A new dim of size 1 in an index; "not given" as the bound of a Slice.
inline constexpr NoneType None;
// As many full slices as complete an index.
inline constexpr EllipsisType Ellipsis;

// start:end:step, as in Python; negative positions count from the end. step > 0.
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

// One index: a number, a Slice, None, Ellipsis, or a tensor (integers: positions; bool: a mask).
// operator[] takes no default arguments, so the index carries the place of the call.
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

// x[indices]. Numbers, slices, None and Ellipsis alone give a view. Tensors of integers are
// broadcast together and pick elements one by one; a bool tensor stands for the positions of its
// true elements, dim by dim. The picked dims stand where the first tensor stood if all tensors
// stood side by side, else in front (as in PyTorch).
//   index(x (5, 3, 4), {rows (2), flow::Slice(), cols (2)}): (2, 3)
Tensor index(const TensorArg& x, const IndexList& indices);

// x[indices] = values, which broadcast to the shape of x[indices]. Where an element is named twice,
// the last value stays. The form without underscore leaves x and gives a changed copy.
Tensor index_put(const TensorArg& x, const IndexList& indices, const TensorArg& values,
                 const IndexPutOptions& options = {});
const Tensor& index_put_(const Tensor& x, const IndexList& indices, const TensorArg& values,
                         const IndexPutOptions& options = {});
const Tensor& index_put_(const Tensor& x, const IndexList& indices, const Scalar& value,
                         Site site = Site::here());

// x's slices along `dim` at the positions in `index`, a vector (or scalar) of integers.
Tensor index_select(const TensorArg& x, int64_t dim, const TensorArg& index);

// The elements of x where mask (bool, broadcast with x) is true: a vector.
Tensor masked_select(const TensorArg& x, const TensorArg& mask);

// The positions of the elements that are not zero: (count, x.dim()) int64, in row-major order.
Tensor nonzero(const TensorArg& x);

// (…, num_classes) int64 with a 1 at each index; num_classes -1 stands for the largest index + 1.
Tensor one_hot(const TensorArg& indices, int64_t num_classes = -1);

}  // namespace flow
