#pragma once

// oneDNN on one thread, loaded at first use into a private symbol scope, without a type of its own
// in sight.

#include <cstdint>
#include <string>

namespace flow::ops {

// Loads the library at the first call. False if flow was built without it or it cannot be used.
bool has_onednn();

// Version, or why the library is absent.
const std::string& onednn_description();

// As gemm in ops/gemm.h. Returns false, with C unchanged, where the library refuses the product.
// Requires: has_onednn(), sizes > 0.
bool onednn_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                 int64_t ldc);

}  // namespace flow::ops
