// What the emulated cuBLAS, cuBLASLt, cuDNN and NCCL share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cuda_runtime.h"
#include "emulated_device.h"
#include "library_hooks.h"

namespace cuda_emulator {

struct LibraryFunction {
  std::string_view name;
  void* address;
};

template <class Function>
LibraryFunction library_function(std::string_view name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

// The functions that a program finds by their names.
std::span<const LibraryFunction> cublas_functions();
std::span<const LibraryFunction> cublas_lt_functions();
std::span<const LibraryFunction> cudnn_functions();
std::span<const LibraryFunction> nccl_functions();

// A caller's mistake. The library's status might be taken for "not supported" and hidden by a
// fall-back, so the next call of CUDA fails, too, with cudaErrorInvalidValue. Prints the text.
void report_mistake(const std::string& text);

// Adds `count` to one of the counters.
void count_call(int64_t LibraryCalls::*counter);

// Derive from it to be counted by live_library_objects().
struct LibraryObject {
  LibraryObject();
  ~LibraryObject();
  LibraryObject(const LibraryObject&) = delete;
  LibraryObject& operator=(const LibraryObject&) = delete;
};

// A library's handle. It belongs to the device that was current when it was made, which has to be
// current in each call with the handle.
struct LibraryHandle : LibraryObject {
  const int device = current();

  // Reports a call on another device.
  void check_device(const char* call) const;
};

// Whether `bytes` bytes from `address` are in one block of device memory.
bool is_allocated(const void* address, size_t bytes);

}  // namespace cuda_emulator
