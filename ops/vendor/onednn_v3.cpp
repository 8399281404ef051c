// Memory and primitive descriptions by the interface of oneDNN 3.

#include "ops/vendor/onednn_desc.h"

#if DNNL_VERSION_MAJOR >= 3

#include <algorithm>

namespace flow::ops {

MemoryDesc MemoryDesc::any(const Shape& shape) {
  return of_tag(shape, dnnl_format_tag_any);
}

MemoryDesc MemoryDesc::of_tag(const Shape& shape, dnnl_format_tag_t tag) {
  MemoryDesc desc;
  dnnl_memory_desc_t raw = nullptr;
  check_onednn(onednn_library().memory_desc_create_with_tag(&raw, static_cast<int>(shape.size()),
                                                            shape.data(), dnnl_f32, tag),
               "a memory layout");
  desc.desc_.reset(raw);
  return desc;
}

MemoryDesc MemoryDesc::contiguous(const Shape& shape) {
  MemoryDesc desc;
  dnnl_memory_desc_t raw = nullptr;
  check_onednn(onednn_library().memory_desc_create_with_strides(
                   &raw, static_cast<int>(shape.size()), shape.data(), dnnl_f32,
                   contiguous_strides(shape).data()),
               "a memory layout");
  desc.desc_.reset(raw);
  return desc;
}

MemoryDesc MemoryDesc::copy_of(MemoryDescView view) {
  MemoryDesc desc;
  dnnl_memory_desc_t raw = nullptr;
  check_onednn(onednn_library().memory_desc_clone(&raw, view), "a memory layout");
  desc.desc_.reset(raw);
  return desc;
}

MemoryDescView MemoryDesc::view() const {
  return desc_.get();
}

Blocking blocking_of(MemoryDescView view) {
  const auto query = onednn_library().memory_desc_query;
  Blocking result;
  query(view, dnnl_query_ndims_s32, &result.num_dims);
  query(view, dnnl_query_inner_nblks_s32, &result.num_blocks);
  const auto copy = [&](dnnl_query_t what, int count, auto& target) {
    const dnnl_dims_t* values = nullptr;
    if (query(view, what, &values) == dnnl_success && values != nullptr)
      std::copy_n(*values, count, target.begin());
  };
  copy(dnnl_query_dims, result.num_dims, result.dims);
  copy(dnnl_query_padded_dims, result.num_dims, result.padded);
  copy(dnnl_query_strides, result.num_dims, result.strides);
  copy(dnnl_query_inner_blks, result.num_blocks, result.blocks);
  copy(dnnl_query_inner_idxs, result.num_blocks, result.blocked_dims);
  return result;
}

OneDnnPrimitiveDesc describe(const ConvolutionSpec& spec, const ConvolutionDescs& descs) {
  const OneDnnLibrary& library = onednn_library();
  const WindowDims window(spec.window);
  const OneDnnAttr attr = make_attr();
  dnnl_primitive_desc_t forward = nullptr;
  check_onednn(library.convolution_forward(&forward, library.engine, dnnl_forward_training,
                                           dnnl_convolution_direct, descs.source.view(),
                                           descs.weights.view(), descs.bias.view(),
                                           descs.destination.view(), window.stride, window.dilation,
                                           window.padding_begin, window.padding_end, attr.get()),
               "a convolution");
  OneDnnPrimitiveDesc hint(forward);
  dnnl_primitive_desc_t backward = nullptr;
  switch (spec.pass) {
    case ConvolutionPass::kForward:
      return hint;
    case ConvolutionPass::kBackwardSource:
      check_onednn(
          library.convolution_backward_data(
              &backward, library.engine, dnnl_convolution_direct, descs.source.view(),
              descs.weights.view(), descs.destination.view(), window.stride, window.dilation,
              window.padding_begin, window.padding_end, forward, attr.get()),
          "a convolution's input gradient");
      break;
    case ConvolutionPass::kBackwardWeights:
      check_onednn(
          library.convolution_backward_weights(
              &backward, library.engine, dnnl_convolution_direct, descs.source.view(),
              descs.weights.view(), descs.bias.view(), descs.destination.view(), window.stride,
              window.dilation, window.padding_begin, window.padding_end, forward, attr.get()),
          "a convolution's weight gradient");
      break;
  }
  return OneDnnPrimitiveDesc(backward);
}

OneDnnPrimitiveDesc describe(const PoolingSpec& spec, const MemoryDesc& source) {
  const OneDnnLibrary& library = onednn_library();
  const WindowDims window(spec.window);
  const OneDnnAttr attr = make_attr();
  const MemoryDesc any = MemoryDesc::any(spec.destination_shape());
  const dnnl_alg_kind_t algorithm = algorithm_of(spec.mode);
  dnnl_primitive_desc_t forward = nullptr;
  check_onednn(library.pooling_forward(&forward, library.engine, dnnl_forward_training, algorithm,
                                       source.view(), any.view(), window.stride, window.kernel,
                                       window.dilation, window.padding_begin, window.padding_end,
                                       attr.get()),
               "a pooling");
  OneDnnPrimitiveDesc hint(forward);
  if (spec.pass == PoolingPass::kForward) return hint;
  const MemoryDescView destination = library.primitive_desc_query_md(forward, dnnl_query_dst_md, 0);
  dnnl_primitive_desc_t backward = nullptr;
  check_onednn(
      library.pooling_backward(&backward, library.engine, algorithm, source.view(), destination,
                               window.stride, window.kernel, window.dilation, window.padding_begin,
                               window.padding_end, forward, attr.get()),
      "a pooling's gradient");
  return OneDnnPrimitiveDesc(backward);
}

OneDnnPrimitiveDesc describe(const ReluSpec& spec, const MemoryDesc& layout) {
  const OneDnnLibrary& library = onednn_library();
  const OneDnnAttr attr = make_attr();
  dnnl_primitive_desc_t forward = nullptr;
  check_onednn(
      library.eltwise_forward(&forward, library.engine, dnnl_forward_training, dnnl_eltwise_relu,
                              layout.view(), layout.view(), 0.0F, 0.0F, attr.get()),
      "a relu");
  OneDnnPrimitiveDesc hint(forward);
  if (spec.pass == ReluPass::kForward) return hint;
  dnnl_primitive_desc_t backward = nullptr;
  check_onednn(
      library.eltwise_backward(&backward, library.engine, dnnl_eltwise_relu, layout.view(),
                               layout.view(), layout.view(), 0.0F, 0.0F, forward, attr.get()),
      "a relu's gradient");
  return OneDnnPrimitiveDesc(backward);
}

}  // namespace flow::ops

#endif
