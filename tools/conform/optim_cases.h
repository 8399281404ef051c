// Optimizers by name and arguments, as the cases give them.
#pragma once

#include <memory>

#include "nn/optim/optimizer.h"
#include "tools/conform/spec.h"

namespace flow::conform {

// `params` by name; a case with "param_groups" makes one group for each name, in their order.
std::unique_ptr<optim::Optimizer> make_optimizer(const Json& spec,
                                                 const std::map<std::string, Tensor>& params);

// The parameters after each step, "traj.NAME", and norms before clipping, "total_norm". After step
// `resume_at` another optimizer goes on from the state of the first.
nn::StateDict run_optim_case(const Json& spec, int64_t steps, const nn::StateDict& inputs,
                             int64_t resume_at = -1);

}  // namespace flow::conform
