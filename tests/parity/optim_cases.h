// Optimizers by name and arguments, as the cases give them.
#pragma once

#include <memory>

#include "nn/optim/optimizer.h"
#include "tests/parity/golden.h"

namespace flow::parity {

// `params` by name; a case with "param_groups" makes one group for each name, in their order.
std::unique_ptr<optim::Optimizer> make_optimizer(const Json& spec,
                                                 const std::map<std::string, Tensor>& params);

}  // namespace flow::parity
