#include "nn/parameters/convert_parameters.h"

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ops/creation/copy.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow::nn::utils {

Tensor parameters_to_vector(const std::vector<Tensor>& parameters, Site site) {
  const SiteScope scope(site);
  if (parameters.empty()) {
    throw InvalidArgument(
        "[parameters_to_vector] there is no parameter; received an empty list; give the "
        "parameters() of a module");
  }
  std::vector<Tensor> parts;
  for (const Tensor& parameter : parameters)
    parts.push_back(parameter.reshape({-1}));
  return cat(parts, 0);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters, Site site) {
  const SiteScope scope(site);
  int64_t count = 0;
  for (const Tensor& parameter : parameters)
    count += parameter.numel();
  if (vector.dim() != 1 || vector.numel() != count) {
    throw InvalidArgument(str("[vector_to_parameters] the vector must have one dim with the ",
                              count, " elements of the parameters; received ", vector.meta()));
  }
  const NoGradGuard no_grad;
  int64_t begin = 0;
  for (const Tensor& parameter : parameters) {
    const int64_t size = parameter.numel();
    parameter.copy_(vector.narrow(0, begin, size).reshape(parameter.shape()));
    begin += size;
  }
}

}  // namespace flow::nn::utils
