#include "ops/onednn_library.h"

#include <dlfcn.h>

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
    find_optional(name, function);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }

  template <class Function>
  void find_optional(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(library_, name));
  }

  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

// dlsym on the library also searches what it depends on, so the OpenMP functions are those of its
// own runtime.
bool can_run_on_one_thread(const dnnl_version_t& version, const Symbols& symbols,
                           OneDnnLibrary& library) {
  if (version.cpu_runtime == DNNL_RUNTIME_SEQ) return true;
  if (version.cpu_runtime != DNNL_RUNTIME_OMP) return false;
  symbols.find_optional("omp_get_max_threads", library.omp_get_max_threads);
  symbols.find_optional("omp_set_num_threads", library.omp_set_num_threads);
  return library.omp_get_max_threads != nullptr && library.omp_set_num_threads != nullptr;
}

OneDnnLibrary load() {
  OneDnnLibrary library;
  void* handle = dlopen(kFileName, RTLD_LOCAL | RTLD_NOW);
  if (handle == nullptr) {
    const char* reason = dlerror();
    library.description = std::string("oneDNN not loaded: ") + (reason != nullptr ? reason : "");
    return library;
  }
  Symbols symbols(handle);
  decltype(&::dnnl_version) get_version = nullptr;
  symbols.find("dnnl_version", get_version);
  symbols.find("dnnl_sgemm", library.sgemm);
  if (!symbols.missing().empty()) {
    library.description =
        std::string("oneDNN not used: ") + kFileName + " lacks " + symbols.missing();
    return library;
  }
  const dnnl_version_t& version = *get_version();
  if (!can_run_on_one_thread(version, symbols, library)) {
    library.description = "oneDNN not used: its threading runtime cannot be kept to one thread";
    return library;
  }
  library.description = "oneDNN " + std::to_string(version.major) + "." +
                        std::to_string(version.minor) + "." + std::to_string(version.patch);
  library.usable = true;
  return library;
}

}  // namespace

const OneDnnLibrary& onednn_library() {
  static const OneDnnLibrary library = load();
  return library;
}

}  // namespace flow::ops
