// Replaces onednn.cpp in builds without oneDNN.

#include "core/error.h"
#include "ops/vendor/onednn.h"

namespace flow::ops {
namespace {

[[noreturn]] void refuse() {
  throw Unsupported(
      "[onednn] flow was built without oneDNN; use another kernel, or build with "
      "-DFLOW_ONEDNN=ON");
}

}  // namespace

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

std::optional<const BlockedLayout*> layout_like(const BlockedLayout* /*layout*/,
                                                const Shape& /*shape*/) {
  return std::nullopt;
}

std::shared_ptr<const OneDnnKernel> make_onednn(const ConvolutionSpec& /*spec*/) {
  refuse();
}

std::shared_ptr<const OneDnnKernel> make_onednn(const PoolingSpec& /*spec*/) {
  refuse();
}

std::shared_ptr<const OneDnnKernel> make_onednn(const ReluSpec& /*spec*/) {
  refuse();
}

std::shared_ptr<const OneDnnKernel> make_onednn(const ReorderSpec& /*spec*/) {
  refuse();
}

}  // namespace flow::ops
