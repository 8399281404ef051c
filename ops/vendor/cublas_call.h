// What calls of cuBLASLt and of cuBLAS share.
#pragma once

#include <cstddef>
#include <string>

#include <cublas_api.h>

#include "core/device/cuda_library.h"
#include "core/dtype.h"
#include "core/error.h"

namespace flow::ops {

inline constexpr size_t kGemmWorkspaceBytes = size_t{32} << 20;

inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(str("[matmul] ", call, " failed with status ", static_cast<int>(status),
                  "; look the code up in cuBLAS' manual (cublasStatus_t)"));
}

// Whether a library says by `status` that it cannot compute a product in this way.
inline bool is_cublas_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
         status == CUBLAS_STATUS_ARCH_MISMATCH;
}

inline cudaDataType_t cublas_type(DType dtype) {
  if (dtype == DType::kFloat16) return CUDA_R_16F;
  if (dtype == DType::kBFloat16) return CUDA_R_16BF;
  return dtype == DType::kFloat64 ? CUDA_R_64F : CUDA_R_32F;
}

inline cublasComputeType_t cublas_sums(DType dtype) {
  return dtype == DType::kFloat64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

// 0 or 1 as alpha or beta of a product.
class CublasFactor {
 public:
  CublasFactor(DType dtype, bool is_one)
      : is_double_(dtype == DType::kFloat64), double_(is_one ? 1 : 0), float_(is_one ? 1 : 0) {}

  const void* address() const { return is_double_ ? static_cast<const void*>(&double_) : &float_; }

 private:
  bool is_double_;
  double double_;
  float float_;
};

// Throws Unsupported if the library has no such function.
template <class Function>
void find_cublas(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(cuda::find_function(library, name));
  if (function == nullptr) {
    throw Unsupported(str("[matmul] cuBLAS has no function ", name,
                          "; install the version flow was built with, ", CUBLAS_VER_MAJOR));
  }
}

}  // namespace flow::ops
