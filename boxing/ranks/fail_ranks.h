// Tells the other ranks that this one cannot continue.
#pragma once

#include <string>

namespace flow {
class RankContext;
}

namespace flow::boxing {

// Makes ranks that wait for this one, now or later, get a DistributedError with `message`. It is
// for errors of one rank that need not end its program, such as errors of an op on its part of a
// tensor. Only the first failure counts. Does nothing if there is only one rank.
void fail_ranks(RankContext& context, const std::string& message);

}  // namespace flow::boxing
