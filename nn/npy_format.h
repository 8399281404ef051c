// The bytes of one .npy array: magic, version, a header that is a Python dict literal, elements.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/tensor.h"

namespace flow::nn {

// What stands before the elements: format 1.0, 64-byte aligned. Throws Unsupported for bfloat16.
std::string npy_header(DType dtype, const Shape& shape);

// Fills exactly so many bytes or throws.
using ReadBytes = std::function<void(void* target, size_t bytes)>;

// One array that takes up exactly `bytes`; `name` stands in errors. Nothing is allocated before the
// header agrees with `bytes`.
Tensor read_npy(const ReadBytes& read, uint64_t bytes, const std::string& name);

}  // namespace flow::nn
