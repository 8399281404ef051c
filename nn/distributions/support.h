// What the distributions' implementations share.
#pragma once

#include <utility>

#include "core/dtype.h"
#include "core/tensor.h"
#include "nn/distributions/distribution.h"

namespace flow::distributions {

// Draws of the dtype of `like`, on its device and placement. All ranks of the placement draw the
// whole tensor.
Tensor uniform_draws(const Shape& shape, const Tensor& like);
Tensor normal_draws(const Shape& shape, const Tensor& like);
// Uniform draws that are neither 0 nor 1.
Tensor open_uniform_draws(const Shape& shape, const Tensor& like);

// `x` moved into the open interval from 0 to 1, so that its logarithm is finite.
Tensor clamp_probs(const Tensor& x);

// Both parameters in their common shape.
std::pair<Tensor, Tensor> broadcast_parameters(const char* name, const Parameter& a,
                                               const Parameter& b);

// Throws InvalidArgument if an element of `holds`, a bool tensor, is false. `received` says what
// was compared. Does nothing while a graph is traced.
void require(const char* name, const char* requirement, const Tensor& holds,
             const char* received = "parameters");

}  // namespace flow::distributions
