// Communicators for ranks that are threads of one process: members read each other's buffers
// directly.
#pragma once

#include <memory>
#include <vector>

#include "boxing/comm/communicator.h"

namespace flow::boxing {

// Null unless the context's rank is a thread of a ThreadWorld (run_ranks).
std::unique_ptr<Communicator> make_thread_communicator(RankContext& context,
                                                       const std::vector<int64_t>& ranks,
                                                       int64_t position, Channel channel);

}  // namespace flow::boxing
