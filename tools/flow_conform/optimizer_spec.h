// Makes optimizers from the names and arguments in specs.
#pragma once

#include <map>
#include <memory>

#include "nn/optim/optimizer.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

// `spec` is {"optimizer", "args", "param_groups"?}. With "param_groups" each of `params` is a
// separate group, in the order of names, with the overrides that "param_groups" has for it. Throws
// NotSupported for an optimizer or argument that flow does not have.
std::unique_ptr<optim::Optimizer> make_optimizer(const Json& spec,
                                                 const std::map<std::string, Tensor>& params);

}  // namespace flow::conform
