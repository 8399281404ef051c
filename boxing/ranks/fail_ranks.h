// Telling the other ranks that this one cannot go on.
#pragma once

#include <string>

namespace flow {
class RankContext;
}

namespace flow::boxing {

// Ranks that wait for this one, or come to, get a DistributedError with `message`: for errors of
// one rank that need not end its program, such as those of an op on its part of a tensor. The
// first failure counts. Nothing where there is one rank.
void fail_ranks(RankContext& context, const std::string& message);

}  // namespace flow::boxing
