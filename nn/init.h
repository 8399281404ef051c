// Initial values of parameters, in place and not recorded by autograd. Formulas and defaults are
// PyTorch's. The logical values of a global tensor do not depend on its layout, and those of a
// local tensor are the same on every rank: a model has the weights of a single process, however it
// is laid out. All functions return the tensor. Random values need a floating one, else
// InvalidArgument.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"

namespace flow::nn::init {

// U(a, b).
const Tensor& uniform_(const Tensor& tensor, double a = 0, double b = 1, Site site = Site::here());
// N(mean, std²).
const Tensor& normal_(const Tensor& tensor, double mean = 0, double std = 1,
                      Site site = Site::here());
const Tensor& constant_(const Tensor& tensor, double value, Site site = Site::here());
const Tensor& ones_(const Tensor& tensor, Site site = Site::here());
const Tensor& zeros_(const Tensor& tensor, Site site = Site::here());
// The identity matrix. Requires two dims, else InvalidArgument.
const Tensor& eye_(const Tensor& tensor, Site site = Site::here());

// The kernel of a convolution that returns its input channels, in each group as many as the group
// has: 1 in the middle of kernel (d, d) of a group, 0 elsewhere. tensor: (out, in / groups, …) with
// one to three spatial dims and `out` divisible by groups, else InvalidArgument.
const Tensor& dirac_(const Tensor& tensor, int64_t groups = 1, Site site = Site::here());
// N(0, std²), with the fraction `sparsity` of each column, rounded up, set to 0 (Martens 2010).
// Requires two dims and a sparsity in [0, 1], else InvalidArgument.
const Tensor& sparse_(const Tensor& tensor, double sparsity, double std = 0.01,
                      Site site = Site::here());

// Options of trunc_normal_. a and b are values, not multiples of std.
struct TruncNormalOptions {
  double mean = 0;
  double std = 1;
  double a = -2;
  double b = 2;
};

// N(mean, std²), truncated to [a, b]. Requires std > 0 and a < b, else InvalidArgument.
const Tensor& trunc_normal_(const Tensor& tensor, const TruncNormalOptions& options = {},
                            Site site = Site::here());

// The recommended gain for a nonlinearity: 1 for linear, conv and sigmoid, 5/3 for tanh, √2 for
// relu, √(2 / (1 + param²)) for leaky_relu (param is the negative slope), 3/4 for selu. Another
// name is InvalidArgument.
double calculate_gain(std::string_view nonlinearity, double param = 0.01, Site site = Site::here());

struct KaimingOptions {
  double a = 0;                 // the negative slope of leaky_relu
  std::string mode = "fan_in";  // or "fan_out"
  std::string nonlinearity = "leaky_relu";
};

// U(-bound, bound) with bound = gain √(3 / fan), or N(0, gain² / fan) (He et al. 2015). Requires at
// least two dims, else InvalidArgument. A tensor without elements may have a fan of 0.
const Tensor& kaiming_uniform_(const Tensor& tensor, const KaimingOptions& options = {},
                               Site site = Site::here());
const Tensor& kaiming_normal_(const Tensor& tensor, const KaimingOptions& options = {},
                              Site site = Site::here());
// U(-bound, bound) with bound = gain √(6 / (fan_in + fan_out)), or N(0, 2 gain² / (fan_in +
// fan_out)) (Glorot and Bengio 2010). Requires at least two dims, else InvalidArgument.
const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1, Site site = Site::here());
const Tensor& xavier_normal_(const Tensor& tensor, double gain = 1, Site site = Site::here());
// Orthogonal rows of norm `gain`, or orthogonal columns if there are more rows than columns;
// trailing dims are flattened (Saxe et al. 2014). Requires at least two dims, else InvalidArgument.
const Tensor& orthogonal_(const Tensor& tensor, double gain = 1, Site site = Site::here());

// fan_in: the number of inputs of one output element, size(1) × the elements of the trailing dims.
// fan_out: the number of outputs of one input element, size(0) × the same. Requires at least two
// dims, else InvalidArgument.
int64_t fan_in(const Tensor& weight, Site site = Site::here());
int64_t fan_out(const Tensor& weight, Site site = Site::here());

namespace internal {
// Calls draw(tensor), which gives `tensor` its initial values, and notes with the tensor how they
// were drawn. Draws in a trace are not noted.
const Tensor& draw_initial(const Tensor& tensor, std::function<void(const Tensor&)> draw);

// True if the streams from `begin` to `end` are those of noted draws of these tensors.
bool are_noted(const std::vector<Tensor>& tensors, const Generator::State& begin, uint64_t end);

// Draws the tensors again whose values were not written since, from streams that come `shift` after
// the noted ones. Leaves the generator changed.
void draw_again(const std::vector<Tensor>& tensors, int64_t shift);
}  // namespace internal

}  // namespace flow::nn::init
