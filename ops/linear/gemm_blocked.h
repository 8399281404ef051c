#pragma once

// flow's own matrix product: chooses the direct or the blocked kernels and divides the work of the
// blocked ones among threads.

#include <algorithm>
#include <cstdint>

#include "ops/linear/gemm.h"
#include "ops/linear/gemm_kernels.h"

namespace flow::ops {

// Writes the bias to C, to which the returned product is added: for kernels that support no bias.
// Product: GemmCall or GemmTask of one product.
template <class Product>
Product with_bias_in_c(Product product) {
  for (int64_t i = 0; i < product.m; ++i)
    std::copy_n(product.bias, product.n, product.c + i * product.ldc);
  product.bias = nullptr;
  product.beta = 1;
  return product;
}

// Sizes > 0. The bits of a result do not depend on the number of threads.
template <class T>
void own_gemm(const GemmCall<T>& call);

// Uses `loops` to divide the packing of B and the multiplication among threads. It always uses the
// blocked kernels.
template <class T>
void own_gemm_shared(const GemmLoops& loops, const GemmCall<T>& call);

}  // namespace flow::ops
