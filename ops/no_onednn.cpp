// In place of onednn.cpp where flow is built without oneDNN.

#include "ops/onednn.h"

namespace flow::ops {

bool has_onednn() {
  return false;
}

const std::string& onednn_description() {
  static const std::string description = "oneDNN not built in";
  return description;
}

bool onednn_gemm(bool /*transpose_a*/, bool /*transpose_b*/, int64_t /*m*/, int64_t /*n*/,
                 int64_t /*k*/, float /*alpha*/, const float* /*a*/, int64_t /*lda*/,
                 const float* /*b*/, int64_t /*ldb*/, float /*beta*/, float* /*c*/,
                 int64_t /*ldc*/) {
  return false;
}

}  // namespace flow::ops
