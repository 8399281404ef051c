// The ops of boxing whose kernels follow a plan: the plan, which is the same on every rank, apart
// from the kernel of the rank that carries it out.
#pragma once

#include "boxing/route.h"
#include "core/kernel.h"
#include "core/kernel_scratch.h"

namespace flow::boxing {

bool follows_route(const OpDef& op);

// The plan of a call of such an op. Pure.
Route route_of_call(const KernelQuery& query);

// The kernel by which the calling thread's rank carries out `plan`, which is plan_of(query). May
// run on this rank only.
KernelChoice bind_route(const KernelQuery& query, const Route& route);

// What carrying it out takes on `rank` where ranks read each other's memory: the packed input, and
// what is between its steps.
KernelScratch scratch_of_route(const KernelQuery& query, const Route& route, int64_t rank);

}  // namespace flow::boxing
