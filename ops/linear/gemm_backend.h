#pragma once

// The libraries behind ops/linear/gemm.h one by one, for its choice, tests, benchmarks and
// tools/calibrate.

#include "ops/linear/gemm.h"

namespace flow::ops {

enum class GemmBackend { kReference, kOwn, kOneDnn, kOpenBlas };

// False if the back end is not built in, could not be loaded, or does not know the type (oneDNN: no
// double).
template <class T>
bool has_gemm_backend(GemmBackend backend);

// The first product of the task by one back end. Requires: has_gemm_backend<T>(backend), sizes > 0.
template <class T>
void gemm_with(GemmBackend backend, const GemmTask<T>& task);

}  // namespace flow::ops
