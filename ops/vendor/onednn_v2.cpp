// Memory and primitive descriptions by the interface of oneDNN 2.

#include "ops/vendor/onednn_desc.h"

#if DNNL_VERSION_MAJOR < 3

#include <algorithm>

namespace flow::ops {

MemoryDesc MemoryDesc::any(const Shape& shape) {
  return of_tag(shape, dnnl_format_tag_any);
}

MemoryDesc MemoryDesc::of_tag(const Shape& shape, dnnl_format_tag_t tag) {
  MemoryDesc desc;
  check_onednn(
      onednn_library().memory_desc_init_by_tag(
          &desc.desc_.emplace(), static_cast<int>(shape.size()), shape.data(), dnnl_f32, tag),
      "a memory layout");
  return desc;
}

MemoryDesc MemoryDesc::contiguous(const Shape& shape) {
  MemoryDesc desc;
  check_onednn(onednn_library().memory_desc_init_by_strides(
                   &desc.desc_.emplace(), static_cast<int>(shape.size()), shape.data(), dnnl_f32,
                   contiguous_strides(shape).data()),
               "a memory layout");
  return desc;
}

MemoryDesc MemoryDesc::copy_of(MemoryDescView view) {
  MemoryDesc desc;
  desc.desc_ = *view;
  return desc;
}

MemoryDescView MemoryDesc::view() const {
  return desc_.has_value() ? &*desc_ : nullptr;
}

Blocking blocking_of(MemoryDescView view) {
  Blocking result;
  result.num_dims = view->ndims;
  std::copy_n(view->dims, view->ndims, result.dims.begin());
  std::copy_n(view->padded_dims, view->ndims, result.padded.begin());
  if (view->format_kind != dnnl_blocked) return result;
  const dnnl_blocking_desc_t& blocking = view->format_desc.blocking;
  std::copy_n(blocking.strides, view->ndims, result.strides.begin());
  result.num_blocks = blocking.inner_nblks;
  std::copy_n(blocking.inner_blks, result.num_blocks, result.blocks.begin());
  std::copy_n(blocking.inner_idxs, result.num_blocks, result.blocked_dims.begin());
  return result;
}

namespace {

template <class Desc>
OneDnnPrimitiveDesc create(const Desc& desc, dnnl_primitive_desc_t hint, const char* what) {
  const OneDnnLibrary& library = onednn_library();
  const OneDnnAttr attr = make_attr();
  dnnl_primitive_desc_t created = nullptr;
  check_onednn(library.primitive_desc_create(&created, &desc, attr.get(), library.engine, hint),
               what);
  return OneDnnPrimitiveDesc(created);
}

}  // namespace

OneDnnPrimitiveDesc describe(const ConvolutionSpec& spec, const ConvolutionDescs& descs) {
  const OneDnnLibrary& library = onednn_library();
  const WindowDims window(spec.window);
  dnnl_convolution_desc_t forward;
  check_onednn(library.convolution_forward(
                   &forward, dnnl_forward_training, dnnl_convolution_direct, descs.source.view(),
                   descs.weights.view(), descs.bias.view(), descs.destination.view(), window.stride,
                   window.dilation, window.padding_begin, window.padding_end),
               "a convolution");
  OneDnnPrimitiveDesc hint = create(forward, nullptr, "a convolution");
  dnnl_convolution_desc_t backward;
  switch (spec.pass) {
    case ConvolutionPass::kForward:
      return hint;
    case ConvolutionPass::kBackwardSource:
      check_onednn(library.convolution_backward_data(
                       &backward, dnnl_convolution_direct, descs.source.view(),
                       descs.weights.view(), descs.destination.view(), window.stride,
                       window.dilation, window.padding_begin, window.padding_end),
                   "a convolution's input gradient");
      break;
    case ConvolutionPass::kBackwardWeights:
      check_onednn(library.convolution_backward_weights(
                       &backward, dnnl_convolution_direct, descs.source.view(),
                       descs.weights.view(), descs.bias.view(), descs.destination.view(),
                       window.stride, window.dilation, window.padding_begin, window.padding_end),
                   "a convolution's weight gradient");
      break;
  }
  return create(backward, hint.get(), "a convolution's gradient");
}

OneDnnPrimitiveDesc describe(const PoolingSpec& spec, const MemoryDesc& source) {
  const OneDnnLibrary& library = onednn_library();
  const WindowDims window(spec.window);
  const MemoryDesc any = MemoryDesc::any(spec.destination_shape());
  const dnnl_alg_kind_t algorithm = algorithm_of(spec.mode);
  dnnl_pooling_v2_desc_t forward;
  check_onednn(library.pooling_forward(&forward, dnnl_forward_training, algorithm, source.view(),
                                       any.view(), window.stride, window.kernel, window.dilation,
                                       window.padding_begin, window.padding_end),
               "a pooling");
  OneDnnPrimitiveDesc hint = create(forward, nullptr, "a pooling");
  if (spec.pass == PoolingPass::kForward) return hint;
  const MemoryDescView destination =
      library.primitive_desc_query_md(hint.get(), dnnl_query_dst_md, 0);
  dnnl_pooling_v2_desc_t backward;
  check_onednn(library.pooling_backward(&backward, algorithm, source.view(), destination,
                                        window.stride, window.kernel, window.dilation,
                                        window.padding_begin, window.padding_end),
               "a pooling's gradient");
  return create(backward, hint.get(), "a pooling's gradient");
}

OneDnnPrimitiveDesc describe(const ReluSpec& spec, const MemoryDesc& layout) {
  const OneDnnLibrary& library = onednn_library();
  dnnl_eltwise_desc_t forward;
  check_onednn(library.eltwise_forward(&forward, dnnl_forward_training, dnnl_eltwise_relu,
                                       layout.view(), 0.0F, 0.0F),
               "a relu");
  OneDnnPrimitiveDesc hint = create(forward, nullptr, "a relu");
  if (spec.pass == ReluPass::kForward) return hint;
  dnnl_eltwise_desc_t backward;
  check_onednn(library.eltwise_backward(&backward, dnnl_eltwise_relu, layout.view(), layout.view(),
                                        0.0F, 0.0F),
               "a relu's gradient");
  return create(backward, hint.get(), "a relu's gradient");
}

}  // namespace flow::ops

#endif
