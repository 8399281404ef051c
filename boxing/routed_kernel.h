// The ops of boxing whose kernels carry out a route. The route is the same on every rank; it is
// separate from the kernel, which belongs to one rank.
#pragma once

#include "boxing/comm/communicator.h"
#include "boxing/route.h"
#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/tensor_meta.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// True if the kernels of `op` carry out a route.
bool follows_route(const OpDef& op);

// The route of a call of such an op. Pure.
Route route_of_call(const KernelQuery& query);

// The kernel with which the calling thread's rank carries out `route`. Requires: route ==
// route_of_call(query). The result may run on this rank only, in a thread of the channel.
KernelChoice bind_route(const KernelQuery& query, const Route& route,
                        Channel channel = Channel::kCaller);

// The memory that carrying out the route takes on `rank`: the packed input, the intermediate parts
// between its steps, and the packed messages of a step if ranks cannot read each other's memory.
// `input` is the meta of the route's input on the rank. Pure.
KernelScratch scratch_of_route(const TensorMeta& input, const Route& route, int64_t rank,
                               bool shares_memory);

// Returns whether the ranks of a run can read each other's memory, because they are threads of one
// process. Ranks that only plan count as threads.
bool ranks_share_memory(RankContext& context);

void register_routed_kernels(KernelTable& table);

}  // namespace flow::boxing
