#pragma once

// The oneDNN functions flow calls, found with dlsym in the library loaded at first use, and owners
// of its handles. Included by ops/onednn*.cpp only and only where flow is built with oneDNN: this
// is where its header is allowed.

#include <memory>
#include <string>
#include <type_traits>

#include <oneapi/dnnl/dnnl.h>

namespace flow::ops {

struct OneDnnLibrary {
  std::string description;
  bool usable = false;
  // Products run with the stack pointer in the heap, so a signal handler that runs meanwhile would
  // overwrite heap memory (oneDNN issue 4845, fixed in 3.11.2). Such calls hold signals back.
  bool moves_stack = false;
  dnnl_engine_t engine = nullptr;  // the CPU; never destroyed

  int (*omp_get_max_threads)() = nullptr;  // null where oneDNN was built to run sequentially
  void (*omp_set_num_threads)(int) = nullptr;

  decltype(&::dnnl_sgemm) sgemm = nullptr;
  decltype(&::dnnl_engine_create) engine_create = nullptr;
  decltype(&::dnnl_stream_create) stream_create = nullptr;
  decltype(&::dnnl_stream_destroy) stream_destroy = nullptr;
  decltype(&::dnnl_stream_wait) stream_wait = nullptr;
  decltype(&::dnnl_memory_create) memory_create = nullptr;
  decltype(&::dnnl_memory_destroy) memory_destroy = nullptr;
  decltype(&::dnnl_memory_set_data_handle) memory_set_data_handle = nullptr;
  decltype(&::dnnl_memory_desc_get_size) memory_desc_get_size = nullptr;
  decltype(&::dnnl_memory_desc_equal) memory_desc_equal = nullptr;
  decltype(&::dnnl_primitive_attr_create) primitive_attr_create = nullptr;
  decltype(&::dnnl_primitive_attr_destroy) primitive_attr_destroy = nullptr;
  decltype(&::dnnl_primitive_attr_set_scratchpad_mode) primitive_attr_set_scratchpad_mode = nullptr;
  decltype(&::dnnl_primitive_desc_destroy) primitive_desc_destroy = nullptr;
  decltype(&::dnnl_primitive_desc_query) primitive_desc_query = nullptr;
  decltype(&::dnnl_primitive_desc_query_md) primitive_desc_query_md = nullptr;
  decltype(&::dnnl_primitive_create) primitive_create = nullptr;
  decltype(&::dnnl_primitive_destroy) primitive_destroy = nullptr;
  decltype(&::dnnl_primitive_execute) primitive_execute = nullptr;
  decltype(&::dnnl_reorder_primitive_desc_create) reorder = nullptr;

#if DNNL_VERSION_MAJOR >= 3
  decltype(&::dnnl_memory_desc_create_with_strides) memory_desc_create_with_strides = nullptr;
  decltype(&::dnnl_memory_desc_create_with_tag) memory_desc_create_with_tag = nullptr;
  decltype(&::dnnl_memory_desc_clone) memory_desc_clone = nullptr;
  decltype(&::dnnl_memory_desc_destroy) memory_desc_destroy = nullptr;
  decltype(&::dnnl_memory_desc_query) memory_desc_query = nullptr;
  decltype(&::dnnl_convolution_forward_primitive_desc_create) convolution_forward = nullptr;
  decltype(&::dnnl_convolution_backward_data_primitive_desc_create) convolution_backward_data =
      nullptr;
  decltype(&::dnnl_convolution_backward_weights_primitive_desc_create)
      convolution_backward_weights = nullptr;
  decltype(&::dnnl_pooling_forward_primitive_desc_create) pooling_forward = nullptr;
  decltype(&::dnnl_pooling_backward_primitive_desc_create) pooling_backward = nullptr;
  decltype(&::dnnl_eltwise_forward_primitive_desc_create) eltwise_forward = nullptr;
  decltype(&::dnnl_eltwise_backward_primitive_desc_create) eltwise_backward = nullptr;
#else
  decltype(&::dnnl_memory_desc_init_by_strides) memory_desc_init_by_strides = nullptr;
  decltype(&::dnnl_memory_desc_init_by_tag) memory_desc_init_by_tag = nullptr;
  decltype(&::dnnl_primitive_desc_create) primitive_desc_create = nullptr;
  decltype(&::dnnl_dilated_convolution_forward_desc_init) convolution_forward = nullptr;
  decltype(&::dnnl_dilated_convolution_backward_data_desc_init) convolution_backward_data = nullptr;
  decltype(&::dnnl_dilated_convolution_backward_weights_desc_init) convolution_backward_weights =
      nullptr;
  decltype(&::dnnl_pooling_v2_forward_desc_init) pooling_forward = nullptr;
  decltype(&::dnnl_pooling_v2_backward_desc_init) pooling_backward = nullptr;
  decltype(&::dnnl_eltwise_forward_desc_init) eltwise_forward = nullptr;
  decltype(&::dnnl_eltwise_backward_desc_init) eltwise_backward = nullptr;
#endif
};

// Loads the library at the first call.
const OneDnnLibrary& onednn_library();

// Throws Unsupported, naming the step, unless the status is success.
void check_onednn(dnnl_status_t status, const char* step);

// While this object exists, oneDNN calls of this thread use no other thread. OpenMP keeps the limit
// per thread, and the program may use the same runtime, so the previous limit is restored.
class OneThreadScope {
 public:
  explicit OneThreadScope(const OneDnnLibrary& library) : library_(library) {
    if (library.omp_get_max_threads == nullptr) return;
    previous_ = library.omp_get_max_threads();
    if (previous_ != 1) library.omp_set_num_threads(1);
  }

  ~OneThreadScope() {
    if (previous_ != 1) library_.omp_set_num_threads(previous_);
  }

  OneThreadScope(const OneThreadScope&) = delete;
  OneThreadScope& operator=(const OneThreadScope&) = delete;

 private:
  const OneDnnLibrary& library_;
  int previous_ = 1;
};

template <auto kDestroy>
struct OneDnnDeleter {
  template <class T>
  void operator()(T* handle) const noexcept {
    (onednn_library().*kDestroy)(handle);
  }
};

template <class Handle, auto kDestroy>
using OneDnnHandle = std::unique_ptr<std::remove_pointer_t<Handle>, OneDnnDeleter<kDestroy>>;

using OneDnnStream = OneDnnHandle<dnnl_stream_t, &OneDnnLibrary::stream_destroy>;
using OneDnnMemory = OneDnnHandle<dnnl_memory_t, &OneDnnLibrary::memory_destroy>;
using OneDnnAttr = OneDnnHandle<dnnl_primitive_attr_t, &OneDnnLibrary::primitive_attr_destroy>;
using OneDnnPrimitiveDesc =
    OneDnnHandle<dnnl_primitive_desc_t, &OneDnnLibrary::primitive_desc_destroy>;
using OneDnnPrimitive = OneDnnHandle<dnnl_primitive_t, &OneDnnLibrary::primitive_destroy>;

}  // namespace flow::ops
