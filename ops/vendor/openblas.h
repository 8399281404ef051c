#pragma once

// OpenBLAS, loaded at first use into a private symbol scope and kept to one thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "ops/kernel/cpu_features.h"

namespace flow::ops {

// Loads the library at the first call. False if flow was built without it or it cannot be loaded.
bool has_openblas();

// Whether the kernels that the library chose, which its description names, use the vectors
// of a CPU with `isa`. An OpenBLAS that is older than the CPU falls back to kernels for SSE.
bool openblas_suits(std::string_view description, CpuIsa isa);
// The same for the library that is loaded and this CPU. False if there is none.
bool openblas_suits_cpu();

// The version and the kernels it chose for this CPU, such as "OpenBLAS 0.3.21 ... SkylakeX"; or the
// reason why it is absent.
const std::string& openblas_description();

// True if flow was built with OpenBLAS, whether or not it can be loaded here.
bool is_openblas_built_in();

// The address of a function of the library, such as "dpotrf_" of LAPACK, which OpenBLAS contains.
// Null if there is no library, or if it was built without the function.
void* openblas_function(const char* name);

// Multiplies as gemm in ops/linear/gemm.h does. Requires: has_openblas(), sizes > 0 and below 2^31.
void openblas_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                   const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                   int64_t ldc);
void openblas_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                   double alpha, const double* a, int64_t lda, const double* b, int64_t ldb,
                   double beta, double* c, int64_t ldc);

}  // namespace flow::ops
