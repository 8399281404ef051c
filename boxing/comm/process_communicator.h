// Communicators for ranks that are processes: a Transport moves the data, and flow computes the
// sums.
#pragma once

#include <memory>
#include <vector>

#include "boxing/comm/communicator.h"

namespace flow::boxing {

// Null unless the context's rank belongs to a ProcessWorld: one attached to the context, or that of
// the process.
std::unique_ptr<Communicator> make_process_communicator(RankContext& context,
                                                        const std::vector<int64_t>& ranks,
                                                        int64_t position,
                                                        Channel channel = Channel::kCaller);

class ProcessWorld;

// For a rank that has no context yet.
std::unique_ptr<Communicator> make_process_communicator(ProcessWorld& world,
                                                        const std::vector<int64_t>& ranks,
                                                        int64_t position,
                                                        Channel channel = Channel::kCaller);

}  // namespace flow::boxing
