#include "ops/vendor/onednn_library.h"

#include <tuple>

#include <dlfcn.h>

#include "core/error.h"

namespace flow::ops {
namespace {

// The file name holds the major version: a library of another one has another interface than the
// header.
#if DNNL_VERSION_MAJOR >= 3
constexpr const char* kFileName = "libdnnl.so.3";
#else
constexpr const char* kFileName = "libdnnl.so.2";
#endif

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }

  // The first function that was not found.
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void find_functions(Symbols& symbols, OneDnnLibrary& library) {
  symbols.find("dnnl_sgemm", library.sgemm);
  symbols.find("dnnl_engine_create", library.engine_create);
  symbols.find("dnnl_stream_create", library.stream_create);
  symbols.find("dnnl_stream_destroy", library.stream_destroy);
  symbols.find("dnnl_stream_wait", library.stream_wait);
  symbols.find("dnnl_memory_create", library.memory_create);
  symbols.find("dnnl_memory_destroy", library.memory_destroy);
  symbols.find("dnnl_memory_set_data_handle", library.memory_set_data_handle);
  symbols.find("dnnl_memory_desc_get_size", library.memory_desc_get_size);
  symbols.find("dnnl_memory_desc_equal", library.memory_desc_equal);
  symbols.find("dnnl_primitive_attr_create", library.primitive_attr_create);
  symbols.find("dnnl_primitive_attr_destroy", library.primitive_attr_destroy);
  symbols.find("dnnl_primitive_attr_set_scratchpad_mode",
               library.primitive_attr_set_scratchpad_mode);
  symbols.find("dnnl_primitive_desc_destroy", library.primitive_desc_destroy);
  symbols.find("dnnl_primitive_desc_query", library.primitive_desc_query);
  symbols.find("dnnl_primitive_desc_query_md", library.primitive_desc_query_md);
  symbols.find("dnnl_primitive_create", library.primitive_create);
  symbols.find("dnnl_primitive_destroy", library.primitive_destroy);
  symbols.find("dnnl_primitive_execute", library.primitive_execute);
  symbols.find("dnnl_reorder_primitive_desc_create", library.reorder);
}

#if DNNL_VERSION_MAJOR >= 3

void find_versioned_functions(Symbols& symbols, OneDnnLibrary& library) {
  symbols.find("dnnl_memory_desc_create_with_strides", library.memory_desc_create_with_strides);
  symbols.find("dnnl_memory_desc_create_with_tag", library.memory_desc_create_with_tag);
  symbols.find("dnnl_memory_desc_clone", library.memory_desc_clone);
  symbols.find("dnnl_memory_desc_destroy", library.memory_desc_destroy);
  symbols.find("dnnl_memory_desc_query", library.memory_desc_query);
  symbols.find("dnnl_convolution_forward_primitive_desc_create", library.convolution_forward);
  symbols.find("dnnl_convolution_backward_data_primitive_desc_create",
               library.convolution_backward_data);
  symbols.find("dnnl_convolution_backward_weights_primitive_desc_create",
               library.convolution_backward_weights);
  symbols.find("dnnl_pooling_forward_primitive_desc_create", library.pooling_forward);
  symbols.find("dnnl_pooling_backward_primitive_desc_create", library.pooling_backward);
  symbols.find("dnnl_eltwise_forward_primitive_desc_create", library.eltwise_forward);
  symbols.find("dnnl_eltwise_backward_primitive_desc_create", library.eltwise_backward);
}

#else

void find_versioned_functions(Symbols& symbols, OneDnnLibrary& library) {
  symbols.find("dnnl_memory_desc_init_by_strides", library.memory_desc_init_by_strides);
  symbols.find("dnnl_memory_desc_init_by_tag", library.memory_desc_init_by_tag);
  symbols.find("dnnl_primitive_desc_create", library.primitive_desc_create);
  symbols.find("dnnl_dilated_convolution_forward_desc_init", library.convolution_forward);
  symbols.find("dnnl_dilated_convolution_backward_data_desc_init",
               library.convolution_backward_data);
  symbols.find("dnnl_dilated_convolution_backward_weights_desc_init",
               library.convolution_backward_weights);
  symbols.find("dnnl_pooling_v2_forward_desc_init", library.pooling_forward);
  symbols.find("dnnl_pooling_v2_backward_desc_init", library.pooling_backward);
  symbols.find("dnnl_eltwise_forward_desc_init", library.eltwise_forward);
  symbols.find("dnnl_eltwise_backward_desc_init", library.eltwise_backward);
}

#endif

OneDnnLibrary load() {
  OneDnnLibrary library;
  void* handle = dlopen(kFileName, RTLD_LOCAL | RTLD_NOW);
  if (handle == nullptr) {
    const char* reason = dlerror();
    library.description = str("oneDNN not loaded: ", reason != nullptr ? reason : kFileName);
    return library;
  }
  Symbols symbols(handle);
  decltype(&::dnnl_version) get_version = nullptr;
  symbols.find("dnnl_version", get_version);
  const auto runtime = get_version != nullptr ? get_version()->cpu_runtime : 0U;
  if (runtime == DNNL_RUNTIME_OMP) {
    // dlsym also searches the dependencies of the library, so these functions belong to the runtime
    // that the library uses.
    symbols.find("omp_get_max_threads", library.omp_get_max_threads);
    symbols.find("omp_set_num_threads", library.omp_set_num_threads);
  } else if (runtime != DNNL_RUNTIME_SEQ) {
    library.description = "oneDNN not used: its threading runtime cannot be kept to one thread";
    return library;
  }
  find_functions(symbols, library);
  find_versioned_functions(symbols, library);
  if (!symbols.missing().empty()) {
    library.description = str("oneDNN not used: ", kFileName, " lacks ", symbols.missing());
    return library;
  }
  if (library.engine_create(&library.engine, dnnl_cpu, 0) != dnnl_success) {
    library.description = "oneDNN not used: it finds no CPU engine";
    return library;
  }
  const dnnl_version_t& version = *get_version();
  library.description = str("oneDNN ", version.major, ".", version.minor, ".", version.patch);
  library.moves_stack =
      std::tuple(version.major, version.minor, version.patch) < std::tuple(3, 11, 2);
  library.usable = true;
  return library;
}

}  // namespace

const OneDnnLibrary& onednn_library() {
  static const OneDnnLibrary library = load();
  return library;
}

void check_onednn(dnnl_status_t status, const char* step) {
  if (status == dnnl_success) return;
  throw Unsupported(str("[onednn] ", step, " was refused; status ", static_cast<int>(status),
                        "; use a kernel that does not need oneDNN"));
}

}  // namespace flow::ops
