// The ops of boxing whose kernels carry out a route. The route is the same on every rank; it is
// separate from the kernel, which belongs to one rank.
#pragma once

#include "boxing/plan.h"
#include "core/kernel.h"
#include "core/kernel_scratch.h"

namespace flow::boxing {

// True if the kernels of `op` carry out a route.
bool follows_plan(const OpDef& op);

// The route of a call of such an op. Pure.
Plan plan_of(const KernelQuery& query);

// The kernel with which the calling thread's rank carries out `plan`. Requires: plan ==
// plan_of(query). The result may run on this rank only.
KernelChoice bind_plan(const KernelQuery& query, const Plan& plan);

// The memory that carrying out the route takes on `rank` when ranks read each other's memory: the
// packed input, and the intermediate parts between its steps.
KernelScratch scratch_of_plan(const KernelQuery& query, const Plan& plan, int64_t rank);

}  // namespace flow::boxing
