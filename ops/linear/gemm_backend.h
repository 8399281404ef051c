#pragma once

// Access to each library behind ops/linear/gemm.h by itself: for the choice among them, and for
// tests, benchmarks and flow-calibrate.

#include "ops/linear/gemm.h"

namespace flow::ops {

enum class GemmBackend { kReference, kOwn, kOneDnn, kOpenBlas };

// Returns false if the back end is not built in, cannot be loaded, or does not support the type
// (oneDNN has no double).
template <class T>
bool has_gemm_backend(GemmBackend backend);

// Computes the first product of the task with one back end. Requires: has_gemm_backend<T>(backend),
// sizes > 0.
template <class T>
void gemm_with(GemmBackend backend, const GemmTask<T>& task);

}  // namespace flow::ops
