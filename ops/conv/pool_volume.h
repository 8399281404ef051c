// Pooling of volumes: x is (N, C, D, H, W) or (C, D, H, W). The rules are those of the functions
// over planes in ops/conv/pool.h.
#pragma once

#include "core/tensor.h"
#include "ops/conv/pool.h"

namespace flow {

Tensor max_pool3d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options = {});
Tensor avg_pool3d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options = {});
Tensor adaptive_avg_pool3d(const TensorArg& x, const Ints& size);
Tensor adaptive_max_pool3d(const TensorArg& x, const Ints& size);
// Also return the position of each maximum in its volume: d * H * W + h * W + w.
ValuesIndices max_pool3d_with_indices(const TensorArg& x, const Ints& kernel,
                                      const MaxPoolOptions& options = {});
ValuesIndices adaptive_max_pool3d_with_indices(const TensorArg& x, const Ints& size);

}  // namespace flow
