// Tensors with guarded memory, and their elements as doubles.
#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor.h"

namespace flow::contract {

// Elements of a tensor's local part in row-major order. Doubles hold every value the samples use
// exactly (integers stay below 2^53).
using Values = std::vector<double>;

// What memory holds that no kernel may read (inputs) or leave as it is (outputs).
struct Fill {
  std::byte floats;
  std::byte integers;
  std::byte bools;
};

// All-ones floats are NaN; integers are harmless positions.
inline constexpr Fill kInputFill{std::byte{0xFF}, std::byte{0}, std::byte{0}};
inline constexpr Fill kOutputFill{std::byte{0xFF}, std::byte{0x5A}, std::byte{0}};
inline constexpr Fill kOtherOutputFill{std::byte{0x55}, std::byte{0x2B}, std::byte{1}};

// A tensor of the local part `meta` describes, between guard bytes. Strides of the meta are kept
// (>= 0). Memory is filled with `fill`.
Tensor make_guarded(MetaPtr meta, const Fill& fill);
// The same with these elements.
Tensor make_guarded(MetaPtr meta, const Values& values);
// Whether nothing was written outside the tensor. Requires: made by make_guarded with `fill`.
bool guards_intact(const Tensor& tensor, const Fill& fill);

// True when every element lies in the tensor's storage (views may claim anything).
bool lies_in_storage(const Tensor& tensor);

Values read_values(const Tensor& tensor);
void write_values(const Tensor& tensor, const Values& values);

// Rounds or wraps to what `dtype` can hold.
double to_dtype(double value, DType dtype);

}  // namespace flow::contract
