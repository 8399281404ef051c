// Initial values of parameters, in place and without recording. Formulas and defaults are
// PyTorch's.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace flow::nn::init {

const Tensor& uniform_(const Tensor& tensor, double a = 0, double b = 1);
const Tensor& normal_(const Tensor& tensor, double mean = 0, double std = 1);
const Tensor& constant_(const Tensor& tensor, double value);
// U(-bound, bound) with bound = gain sqrt(3 / fan_in), gain = sqrt(2 / (1 + a²)); fan_in is
// size(1) times the kernel's elements (He et al. 2015).
const Tensor& kaiming_uniform_(const Tensor& tensor, double a = 0);
// U(-bound, bound) with bound = gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1);

// The number of inputs of one output element: size(1) × elements of the trailing dims.
// Requires at least two dims, else InvalidArgument.
int64_t fan_in(const Tensor& weight);
int64_t fan_out(const Tensor& weight);

}  // namespace flow::nn::init
