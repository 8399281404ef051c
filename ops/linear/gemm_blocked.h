#pragma once

// flow's own matrix product: chooses the direct or the blocked kernels and divides the work of the
// blocked ones among threads.

#include <cstdint>

#include "ops/linear/gemm.h"
#include "ops/linear/gemm_kernels.h"

namespace flow::ops {

// Sizes > 0. The bits of a result do not depend on the number of threads.
template <class T>
void own_gemm(const GemmCall<T>& call);

// Uses `loops` to divide the packing of B and the multiplication among threads. It always uses the
// blocked kernels.
template <class T>
void own_gemm_shared(const GemmLoops& loops, const GemmCall<T>& call);

}  // namespace flow::ops
