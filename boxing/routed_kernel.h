// The ops of boxing whose kernels carry out a route. The route is the same on every rank; it is
// separate from the kernel, which belongs to one rank.
#pragma once

#include "boxing/route.h"
#include "core/kernel.h"
#include "core/kernel_scratch.h"

namespace flow::boxing {

// True if the kernels of `op` carry out a route.
bool follows_route(const OpDef& op);

// The route of a call of such an op. Pure.
Route route_of_call(const KernelQuery& query);

// The kernel with which the calling thread's rank carries out `route`. Requires: route ==
// route_of_call(query). The result may run on this rank only.
KernelChoice bind_route(const KernelQuery& query, const Route& route);

// The memory that carrying out the route takes on `rank` when ranks read each other's memory: the
// packed input, and the intermediate parts between its steps.
KernelScratch scratch_of_route(const KernelQuery& query, const Route& route, int64_t rank);

void register_routed_kernels(KernelTable& table);

}  // namespace flow::boxing
