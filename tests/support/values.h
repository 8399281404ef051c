// Tensors with guarded memory, and their elements as doubles.
#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor.h"

namespace flow::contract {

// The elements of a tensor's local part in row-major order. Doubles hold all values of the samples
// exactly (integers are below 2^53).
using Values = std::vector<double>;

// The bytes of memory that no kernel may read (inputs) or leave unchanged (outputs).
struct Fill {
  std::byte floats;
  std::byte integers;
  std::byte bools;
};

// Floats of all ones are NaN; integers are valid indices.
inline constexpr Fill kInputFill{std::byte{0xFF}, std::byte{0}, std::byte{0}};
inline constexpr Fill kOutputFill{std::byte{0xFF}, std::byte{0x5A}, std::byte{0}};
inline constexpr Fill kOtherOutputFill{std::byte{0x55}, std::byte{0x2B}, std::byte{1}};

// Makes a tensor for the local part that `meta` describes, with guard bytes before and after it.
// The strides of the meta (>= 0) are kept. The memory is filled with `fill`.
Tensor make_guarded(MetaPtr meta, const Fill& fill);
// Like the function above, with these elements.
Tensor make_guarded(MetaPtr meta, const Values& values);
// True if nothing was written outside the tensor. Requires: it was made by make_guarded with
// `fill`.
bool guards_intact(const Tensor& tensor, const Fill& fill);

// True if every element is inside the tensor's storage (a wrong view might not be).
bool lies_in_storage(const Tensor& tensor);

Values read_values(const Tensor& tensor);
void write_values(const Tensor& tensor, const Values& values);

// Rounds or wraps to a value that `dtype` can represent.
double to_dtype(double value, DType dtype);

}  // namespace flow::contract
