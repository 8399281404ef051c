// The part of cuBLAS that flow uses.
#pragma once

#include "cublas_api.h"

struct EmulatedCublas;
using cublasHandle_t = EmulatedCublas*;

enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };

enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
// Also takes the handle's workspace away, as the real library does.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
// c = alpha a b + beta c in column-major order, for `count` matrices.
cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int64_t m,
    int64_t n, int64_t k, const void* alpha, const void* a, cudaDataType a_type, int64_t a_leading,
    long long a_step, const void* b, cudaDataType b_type, int64_t b_leading, long long b_step,
    const void* beta, void* c, cudaDataType c_type, int64_t c_leading, long long c_step,
    int64_t count, cublasComputeType_t compute_type, cublasGemmAlgo_t algorithm);
