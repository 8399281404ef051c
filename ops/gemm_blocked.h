#pragma once

// The own matrix product: chooses the direct or the blocked kernels, and shares the blocked ones
// among threads.

#include <cstdint>

#include "ops/gemm.h"
#include "ops/gemm_kernels.h"

namespace flow::ops {

// Sizes > 0. Both give the same bits for the same product, whatever the number of threads.
template <class T>
void own_gemm(const GemmCall<T>& call);

// Packs both operands and multiplies them in two loops for each part of k.
template <class T>
void own_gemm_shared(const GemmLoops& loops, const GemmCall<T>& call);

}  // namespace flow::ops
