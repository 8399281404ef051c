#include "ops/vendor/onednn.h"

#include <optional>

#include "core/error.h"
#include "core/signals.h"
#include "ops/vendor/onednn_desc.h"
#include "ops/vendor/onednn_kernel.h"
#include "ops/vendor/onednn_library.h"

namespace flow::ops {
namespace {

void require_onednn() {
  if (!has_onednn()) throw Unsupported("[onednn] " + onednn_description() + "; use another kernel");
}

}  // namespace

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
  std::optional<HeldSignals> held;
  if (library.moves_stack) held.emplace();
  return library.sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b,
                       ldb, beta, c, ldc) == dnnl_success;
}

std::shared_ptr<const OneDnnKernel> make_onednn(const ConvolutionSpec& spec) {
  require_onednn();
  const OneThreadScope one_thread(onednn_library());
  const bool uses_bias = spec.has_bias && spec.pass != ConvolutionPass::kBackwardSource;
  const ConvolutionDescs descs{
      .source = desc_of(spec.source, spec.source_shape()),
      .weights = desc_of(spec.weights, spec.weights_shape()),
      .bias = uses_bias ? MemoryDesc::contiguous({spec.out_channels}) : MemoryDesc(),
      .destination = desc_of(spec.destination, spec.destination_shape())};
  auto kernel = std::make_shared<PreparedKernel>(describe(spec, descs));
  switch (spec.pass) {
    case ConvolutionPass::kForward:
      kernel->add_source(DNNL_ARG_SRC, dnnl_query_src_md, spec.source_shape());
      kernel->add_weights(DNNL_ARG_WEIGHTS, dnnl_query_weights_md, spec.weights_shape());
      kernel->add_destination(DNNL_ARG_DST, dnnl_query_dst_md, spec.destination_shape());
      if (uses_bias) kernel->add_bias(DNNL_ARG_BIAS, dnnl_query_weights_md);
      break;
    case ConvolutionPass::kBackwardSource:
      kernel->add_source(DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, spec.source_shape());
      kernel->add_weights(DNNL_ARG_WEIGHTS, dnnl_query_weights_md, spec.weights_shape());
      kernel->add_destination(DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, spec.destination_shape());
      break;
    case ConvolutionPass::kBackwardWeights:
      kernel->add_source(DNNL_ARG_SRC, dnnl_query_src_md, spec.source_shape());
      kernel->add_weights(DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, spec.weights_shape());
      kernel->add_destination(DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, spec.destination_shape());
      if (uses_bias) kernel->add_bias(DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md);
      break;
  }
  return kernel;
}

std::shared_ptr<const OneDnnKernel> make_onednn(const PoolingSpec& spec) {
  require_onednn();
  const OneThreadScope one_thread(onednn_library());
  auto kernel =
      std::make_shared<PreparedKernel>(describe(spec, desc_of(spec.source, spec.source_shape())));
  const bool forward = spec.pass == PoolingPass::kForward;
  kernel->add_source(forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC,
                     forward ? dnnl_query_src_md : dnnl_query_diff_src_md, spec.source_shape());
  kernel->add_destination(forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
                          forward ? dnnl_query_dst_md : dnnl_query_diff_dst_md,
                          spec.destination_shape());
  if (spec.mode == PoolingMode::kMax) kernel->add_workspace();
  return kernel;
}

std::shared_ptr<const OneDnnKernel> make_onednn(const ReluSpec& spec) {
  require_onednn();
  const OneThreadScope one_thread(onednn_library());
  auto kernel = std::make_shared<PreparedKernel>(describe(spec, desc_of(spec.layout, spec.shape)));
  if (spec.pass == ReluPass::kForward) {
    kernel->add_source(DNNL_ARG_SRC, dnnl_query_src_md, spec.shape);
    kernel->add_destination(DNNL_ARG_DST, dnnl_query_dst_md, spec.shape);
  } else {
    kernel->add_data();
    kernel->add_source(DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, spec.shape);
    kernel->add_destination(DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, spec.shape);
  }
  return kernel;
}

std::shared_ptr<const OneDnnKernel> make_onednn(const ReorderSpec& spec) {
  require_onednn();
  return make_reorder(spec.shape, desc_of(spec.from, spec.shape), desc_of(spec.to, spec.shape));
}

}  // namespace flow::ops
