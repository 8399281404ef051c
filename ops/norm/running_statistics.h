// Running statistics of the channels that batch_norm and instance_norm normalise.
#pragma once

#include "core/tensor.h"

namespace flow::ops {

// Throws InvalidArgument `[op] …` unless x is (N, C, ...) and the running statistics are both (C)
// or both undefined.
void check_statistics(const char* op, const TensorArg& x, const Tensor& running_mean,
                      const Tensor& running_var);

}  // namespace flow::ops
