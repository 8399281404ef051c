// The format of one .npy array: magic string, version, a header that is a Python dict literal, and
// the elements.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/tensor.h"

namespace flow::nn {

// The bytes before the elements, in format 1.0 and padded to a multiple of 64. Throws Unsupported
// for bfloat16.
std::string npy_header(DType dtype, const Shape& shape);

// Fills `target` with exactly this many bytes, or throws.
using ReadBytes = std::function<void(void* target, size_t bytes)>;

// Reads one array of exactly `bytes` bytes. Errors mention `name`. Memory is allocated only after
// the header is found to agree with `bytes`. Throws BadFile and Unsupported as load_npy.
Tensor read_npy(const ReadBytes& read, uint64_t bytes, const std::string& name);

}  // namespace flow::nn
