// For tests: replaces each communicator that a rank makes, for instance by one that records calls.
#pragma once

#include <functional>
#include <memory>

#include "boxing/comm/communicator.h"

namespace flow::boxing::internal {

// A slot of the rank's context. Set it before the rank communicates, because the communicators that
// the rank already has stay as they are.
struct CommunicatorWrap {
  std::function<std::unique_ptr<Communicator>(std::unique_ptr<Communicator>)> wrap;  // or empty
};

}  // namespace flow::boxing::internal
