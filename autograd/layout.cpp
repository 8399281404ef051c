#include "autograd/layout.h"

#include "boxing/layout.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/view_link.h"
#include "ops/creation/creation.h"

namespace flow::autograd {

namespace {

// The placement is always set, because a PlacementGuard of the caller must not make the gradient of
// a local tensor global.
TensorOptions options_for(const TensorMeta& meta) {
  return {.dtype = meta.dtype,
          .device = std::string(device_type_name(meta.device)),
          .placement = meta.placement,
          .sbp = boxing::without_partial(meta.nd_sbp)};
}

}  // namespace

Tensor to_layout_of(const Tensor& gradient, const TensorMeta& target) {
  if (!target.is_global()) return gradient;
  const NdSbp wanted = boxing::without_partial(target.nd_sbp);
  const TensorMeta& given = gradient.meta();
  if (given.placement == target.placement && given.nd_sbp == wanted) return gradient;
  return gradient.to_global({.placement = target.placement, .sbp = wanted});
}

Tensor writable_copy(const Tensor& gradient, MetaPtr target) {
  const Tensor source = to_layout_of(gradient, *target);
  if (target->is_contiguous || target->blocked != nullptr || !source.impl().storage) {
    return source.clone();
  }
  const MetaPtr meta = with_strides(source.meta_ptr(), target->strides);
  const size_t bytes = bytes_spanned(*meta);
  Tensor copy = Tensor::make(meta, allocate_storage(*thread_state().context, meta->device, bytes));
  copy.copy_(source);
  return copy;
}

bool is_exclusive(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  return impl.use_count() == 1 && impl.storage && impl.storage->use_count() == 1 &&
         impl.meta->is_contiguous && impl.trace == nullptr && find_view_link(impl) == nullptr;
}

Tensor ones_for(const TensorMeta& meta, Site site) {
  return ones(meta.shape, options_for(meta), site);
}

Tensor zeros_for(const TensorMeta& meta, Site site) {
  return zeros(meta.shape, options_for(meta), site);
}

}  // namespace flow::autograd
