#pragma once

// The oneDNN functions flow calls, found with dlsym in the library loaded at first use. Included by
// ops/onednn*.cpp only and only where flow is built with oneDNN: this is where its header is
// allowed.

#include <string>

#include <oneapi/dnnl/dnnl.h>

namespace flow::ops {

struct OneDnnLibrary {
  std::string description;
  bool usable = false;

  int (*omp_get_max_threads)() = nullptr;  // null where oneDNN was built to run sequentially
  void (*omp_set_num_threads)(int) = nullptr;

  decltype(&::dnnl_sgemm) sgemm = nullptr;
};

// Loads the library at the first call.
const OneDnnLibrary& onednn_library();

// While it lives, oneDNN calls of this thread use no other thread. OpenMP keeps the limit per
// thread and the runtime may be the program's own, so the previous limit is put back.
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

}  // namespace flow::ops
