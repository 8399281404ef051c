#include "ops/onednn.h"

#include "ops/onednn_library.h"

namespace flow::ops {

bool has_onednn() {
  return onednn_library().usable;
}

const std::string& onednn_description() {
  return onednn_library().description;
}

bool onednn_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                 const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                 int64_t ldc) {
  const OneDnnLibrary& library = onednn_library();
  const OneThreadScope one_thread(library);
  return library.sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b,
                       ldb, beta, c, ldc) == dnnl_success;
}

}  // namespace flow::ops
