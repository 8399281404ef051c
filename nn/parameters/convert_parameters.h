// Parameters as one vector (torch.nn.utils.convert_parameters).
#pragma once

#include <vector>

#include "core/tensor.h"

namespace flow::nn::utils {

// The elements of all parameters, one after another: (n). The result has a gradient. Throws
// InvalidArgument if there is no parameter.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters, Site site = Site::here());

// Copies consecutive parts of `vector`, (n), into the parameters, in place; this is not recorded.
// Throws InvalidArgument, before anything is written, unless n is the number of their elements.
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters,
                          Site site = Site::here());

}  // namespace flow::nn::utils
