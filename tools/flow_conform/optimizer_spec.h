// Optimizers by name and arguments, as specs give them.
#pragma once

#include <map>
#include <memory>

#include "nn/optim/optimizer.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

// spec: {"optimizer", "args", "param_groups"?}. `params` by name; with "param_groups" each is a
// group of its own, in the order of names, with the overrides that stand there for it. Throws
// NotSupported for an optimizer or argument the library lacks.
std::unique_ptr<optim::Optimizer> make_optimizer(const Json& spec,
                                                 const std::map<std::string, Tensor>& params);

}  // namespace flow::conform
