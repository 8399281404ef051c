#pragma once

// The part of oneDNN's interface that differs between versions 2 and 3: memory and primitive
// descriptions. Version 3 is compiled only where its headers are installed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/shape.h"
#include "ops/vendor/onednn.h"
#include "ops/vendor/onednn_library.h"

namespace flow::ops {

#if DNNL_VERSION_MAJOR >= 3
using MemoryDescView = const_dnnl_memory_desc_t;
#else
using MemoryDescView = const dnnl_memory_desc_t*;
#endif

// The memory layout of a float32 array, or the statement that oneDNN may choose it. Empty if there
// is no such argument.
class MemoryDesc {
 public:
  MemoryDesc() = default;
  static MemoryDesc any(const Shape& shape);
  static MemoryDesc contiguous(const Shape& shape);
  static MemoryDesc of_tag(const Shape& shape, dnnl_format_tag_t tag);
  static MemoryDesc copy_of(MemoryDescView view);

  // nullptr if empty.
  MemoryDescView view() const;

 private:
#if DNNL_VERSION_MAJOR >= 3
  OneDnnHandle<dnnl_memory_desc_t, &OneDnnLibrary::memory_desc_destroy> desc_;
#else
  std::optional<dnnl_memory_desc_t> desc_;
#endif
};

size_t bytes_of(MemoryDescView view);
bool same_layout(MemoryDescView a, MemoryDescView b);
bool is_contiguous(MemoryDescView view);

// oneDNN's notation: dims from outer to inner as letters, capitals where blocked, then the blocks:
// aBcd16b.
std::string layout_name(MemoryDescView view);

// The part of a layout that layout_name and is_contiguous read.
struct Blocking {
  int num_dims = 0;
  int num_blocks = 0;
  std::array<int64_t, DNNL_MAX_NDIMS> dims{}, padded{}, strides{}, blocks{}, blocked_dims{};
};

Blocking blocking_of(MemoryDescView view);

// A window in oneDNN's convention: dilation is 0 for a dense one.
struct WindowDims {
  explicit WindowDims(const Window& window);

  dnnl_dims_t stride, kernel, dilation, padding_begin, padding_end;
};

dnnl_alg_kind_t algorithm_of(PoolingMode mode);

// The caller provides scratch memory, so that it is counted and primitives have no state.
OneDnnAttr make_attr();

struct ConvolutionDescs {
  MemoryDesc source, weights, bias, destination;
};

OneDnnPrimitiveDesc describe(const ConvolutionSpec& spec, const ConvolutionDescs& descs);
// The destination's layout is chosen by oneDNN.
OneDnnPrimitiveDesc describe(const PoolingSpec& spec, const MemoryDesc& source);
OneDnnPrimitiveDesc describe(const ReluSpec& spec, const MemoryDesc& layout);
OneDnnPrimitiveDesc describe_reorder(const MemoryDesc& from, const MemoryDesc& to);

}  // namespace flow::ops
