// cuBLAS: checks what it is called with, and multiplies in loops.
#include "core/error.h"
#include "cublas_product.h"
#include "cublas_v2.h"
#include "emulated_library.h"

using cuda_emulator::report_mistake;
using flow::str;

struct EmulatedCublas : cuda_emulator::LibraryHandle {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new EmulatedCublas;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->check_device("cublasDestroy");
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  constexpr uintptr_t kAlignment = 256;
  if (reinterpret_cast<uintptr_t>(workspace) % kAlignment != 0 ||
      !cuda_emulator::is_allocated(workspace, bytes)) {
    report_mistake("cublasSetWorkspace: the workspace is not device memory aligned to 256 bytes");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t /*handle*/, cublasMath_t mode) {
  constexpr int kKnown =
      CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  if ((mode & ~kKnown) == 0) return CUBLAS_STATUS_SUCCESS;
  report_mistake(str("cublasSetMathMode: no mode ", static_cast<int>(mode)));
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int64_t m,
    int64_t n, int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t a_leading,
    long long a_step, const void* b, cudaDataType b_type, int64_t b_leading, long long b_step,
    const void* beta, void* c, cudaDataType c_type, int64_t c_leading, long long c_step,
    int64_t count, cublasComputeType_t compute_type, cublasGemmAlgo_t /*algorithm*/) {
  constexpr auto* kCall = "cublasGemmStridedBatchedEx";
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->check_device(kCall);
  const cudaDataType scale = compute_type == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
  if (cuda_emulator::refuses_products() ||
      !cuda_emulator::has_products(c_type, compute_type, scale)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  cuda_emulator::Product product;
  product.a_transposed = a_operation != CUBLAS_OP_N;
  product.b_transposed = b_operation != CUBLAS_OP_N;
  product.a = {
      a_type, product.a_transposed ? k : m, product.a_transposed ? m : k, a_leading, a_step, count};
  product.b = {
      b_type, product.b_transposed ? n : k, product.b_transposed ? k : n, b_leading, b_step, count};
  product.c = product.d = {c_type, m, n, c_leading, c_step, count};
  product.a_data = a;
  product.b_data = b;
  product.c_data = product.d_data = c;
  product.alpha = cuda_emulator::read_scale(alpha, scale);
  product.beta = cuda_emulator::read_scale(beta, scale);
  if (!check_shapes(kCall, product) || !check_memory(kCall, product)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  cuda_emulator::count_call(&cuda_emulator::LibraryCalls::products);
  return enqueue_product(product, handle->workspace, handle->workspace_bytes, handle->stream) ==
                 cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

std::span<const cuda_emulator::LibraryFunction> cuda_emulator::cublas_functions() {
  static const LibraryFunction functions[] = {
      library_function("cublasCreate_v2", cublasCreate_v2),
      library_function("cublasDestroy_v2", cublasDestroy_v2),
      library_function("cublasSetStream_v2", cublasSetStream_v2),
      library_function("cublasSetWorkspace_v2", cublasSetWorkspace_v2),
      library_function("cublasSetMathMode", cublasSetMathMode),
      library_function("cublasGemmStridedBatchedEx_64", cublasGemmStridedBatchedEx_64),
  };
  return functions;
}
