// Activations that are not in ops/elementwise/unary.h. They take only floating dtypes, and the
// result has the shape of x.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow {

struct CeluOptions {
  double alpha = 1;
};

// x where x > 0, else alpha (exp(x / alpha) - 1) (Barron 2017). alpha is not 0.
Tensor celu(const TensorArg& x, const CeluOptions& options = {});

// scale x where x > 0, else scale alpha (exp(x) - 1), with the constants that keep mean 0 and
// variance 1 through layers (Klambauer et al. 2017).
Tensor selu(const TensorArg& x);

// x tanh(log(1 + exp(x))) (Misra 2019).
Tensor mish(const TensorArg& x);

// x relu6(x + 3) / 6 (Howard et al. 2019).
Tensor hardswish(const TensorArg& x);
// relu6(x + 3) / 6.
Tensor hardsigmoid(const TensorArg& x);

struct HardtanhOptions {
  double min_val = -1;
  double max_val = 1;
};

// min(max(x, min_val), max_val), that is, clamp with both bounds.
Tensor hardtanh(const TensorArg& x, const HardtanhOptions& options = {});
// hardtanh between 0 and 6.
Tensor relu6(const TensorArg& x);

// x / (1 + |x|).
Tensor softsign(const TensorArg& x);
// log(sigmoid(x)), without overflow.
Tensor logsigmoid(const TensorArg& x);

// x where x > 0, else weight x. The weight is one slope, or one slope for each channel (dim 1 of
// x).
//   prelu(x (N, C, H, W), slopes (C))
Tensor prelu(const TensorArg& x, const TensorArg& weight);

// a sigmoid(b), where a and b are the halves of x along `dim`, whose size is even (Dauphin et al.
// 2017).
//   glu(x (N, 2 C)): (N, C)
Tensor glu(const TensorArg& x, int64_t dim = -1);

}  // namespace flow
