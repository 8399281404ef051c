// A communicator that records its collectives and messages in the rank's timeline (FLOW_TIMELINE).
#pragma once

#include <memory>

#include "boxing/comm/communicator.h"

namespace flow::timeline {
class TimelineLog;
}

namespace flow::boxing {

// The log must outlive the result.
std::unique_ptr<Communicator> with_timeline(std::unique_ptr<Communicator> communicator,
                                            timeline::TimelineLog& log);

}  // namespace flow::boxing
