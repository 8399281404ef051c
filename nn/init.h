// Initial values of parameters, in place and without recording. Formulas and defaults are
// PyTorch's. A global tensor gets one logical value, the same for every layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace flow::nn::init {

const Tensor& uniform_(const Tensor& tensor, double a = 0, double b = 1);
const Tensor& normal_(const Tensor& tensor, double mean = 0, double std = 1);
const Tensor& constant_(const Tensor& tensor, double value);
const Tensor& ones_(const Tensor& tensor);
const Tensor& zeros_(const Tensor& tensor);
// The identity; two dims.
const Tensor& eye_(const Tensor& tensor);

// The convolution that passes its channels on, in each group as far as the group has any: 1 in the
// middle of kernel (d, d), 0 elsewhere; (out, in / groups, …) with one to three spatial dims.
const Tensor& dirac_(const Tensor& tensor, int64_t groups = 1);
// N(0, std²) with the fraction `sparsity` of each column, rounded up, set to 0; two dims.
const Tensor& sparse_(const Tensor& tensor, double sparsity, double std = 0.01);

// N(mean, std²) restricted to [a, b]; the bounds are values, not multiples of std.
struct TruncNormalOptions {
  double mean = 0;
  double std = 1;
  double a = -2;
  double b = 2;
};

const Tensor& trunc_normal_(const Tensor& tensor, const TruncNormalOptions& options = {});

// 1 for linear, conv and sigmoid, 5/3 for tanh, √2 for relu, √(2 / (1 + param²)) for leaky_relu
// (param is the negative slope), 3/4 for selu; InvalidArgument for another name.
double calculate_gain(std::string_view nonlinearity, double param = 0.01);

struct KaimingOptions {
  double a = 0;                 // the slope of leaky_relu
  std::string mode = "fan_in";  // or "fan_out"
  std::string nonlinearity = "leaky_relu";
};

// U(-bound, bound) with bound = gain √(3 / fan), or N(0, gain² / fan) (He et al. 2015).
const Tensor& kaiming_uniform_(const Tensor& tensor, const KaimingOptions& options = {});
const Tensor& kaiming_normal_(const Tensor& tensor, const KaimingOptions& options = {});
// U(-bound, bound) with bound = gain √(6 / (fan_in + fan_out)), or the normal distribution with
// variance gain² 2 / (fan_in + fan_out) (Glorot and Bengio 2010).
const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1);
const Tensor& xavier_normal_(const Tensor& tensor, double gain = 1);
// Rows, or where there are more of them columns, that are orthogonal and of length gain; trailing
// dims count as one (Saxe et al. 2014).
const Tensor& orthogonal_(const Tensor& tensor, double gain = 1);

// The number of inputs of one output element: size(1) × elements of the trailing dims; of outputs
// of one input: size(0) in its place. Requires at least two dims, else InvalidArgument.
int64_t fan_in(const Tensor& weight);
int64_t fan_out(const Tensor& weight);

}  // namespace flow::nn::init
