#include "ops/vendor/onednn_desc.h"

#include <algorithm>

namespace flow::ops {

WindowDims::WindowDims(const Window& window) {
  for (int i = 0; i < window.num_dims; ++i) {
    const auto at = static_cast<size_t>(i);
    stride[i] = window.stride[at];
    kernel[i] = window.kernel[at];
    dilation[i] = window.dilation[at] - 1;
    padding_begin[i] = window.padding_begin[at];
    padding_end[i] = window.padding_end[at];
  }
}

dnnl_alg_kind_t algorithm_of(PoolingMode mode) {
  switch (mode) {
    case PoolingMode::kMax:
      return dnnl_pooling_max;
    case PoolingMode::kMeanWithPadding:
      return dnnl_pooling_avg_include_padding;
    case PoolingMode::kMeanWithoutPadding:
      break;
  }
  return dnnl_pooling_avg_exclude_padding;
}

OneDnnAttr make_attr() {
  const OneDnnLibrary& library = onednn_library();
  dnnl_primitive_attr_t attr = nullptr;
  check_onednn(library.primitive_attr_create(&attr), "an attribute");
  OneDnnAttr owner(attr);
  check_onednn(library.primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
               "the scratch mode");
  return owner;
}

OneDnnPrimitiveDesc describe_reorder(const MemoryDesc& from, const MemoryDesc& to) {
  const OneDnnLibrary& library = onednn_library();
  const OneDnnAttr attr = make_attr();
  dnnl_primitive_desc_t created = nullptr;
  check_onednn(
      library.reorder(&created, from.view(), library.engine, to.view(), library.engine, attr.get()),
      "a reorder");
  return OneDnnPrimitiveDesc(created);
}

size_t bytes_of(MemoryDescView view) {
  return view == nullptr ? 0 : onednn_library().memory_desc_get_size(view);
}

bool same_layout(MemoryDescView a, MemoryDescView b) {
  return onednn_library().memory_desc_equal(a, b) != 0;
}

bool is_contiguous(MemoryDescView view) {
  const Blocking blocking = blocking_of(view);
  if (blocking.num_blocks != 0) return false;
  int64_t expected = 1;
  for (int i = blocking.num_dims - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    if (blocking.padded[at] != blocking.dims[at]) return false;
    if (blocking.dims[at] != 1 && blocking.strides[at] != expected) return false;
    expected *= blocking.dims[at];
  }
  return true;
}

std::string layout_name(MemoryDescView view) {
  const Blocking blocking = blocking_of(view);
  std::array<int, DNNL_MAX_NDIMS> order{};
  for (int i = 0; i < blocking.num_dims; ++i)
    order[static_cast<size_t>(i)] = i;
  std::stable_sort(order.begin(), order.begin() + blocking.num_dims, [&](int a, int b) {
    return blocking.strides[static_cast<size_t>(a)] > blocking.strides[static_cast<size_t>(b)];
  });
  const auto blocks_end = blocking.blocked_dims.begin() + blocking.num_blocks;
  std::string name;
  for (int i = 0; i < blocking.num_dims; ++i) {
    const int dim = order[static_cast<size_t>(i)];
    const bool blocked = std::find(blocking.blocked_dims.begin(), blocks_end, dim) != blocks_end;
    name += static_cast<char>((blocked ? 'A' : 'a') + dim);
  }
  for (int i = 0; i < blocking.num_blocks; ++i) {
    const auto at = static_cast<size_t>(i);
    name += std::to_string(blocking.blocks[at]);
    name += static_cast<char>('a' + blocking.blocked_dims[at]);
  }
  return name;
}

}  // namespace flow::ops
