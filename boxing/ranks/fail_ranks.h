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

// While it exists, the calling rank takes part in nothing, because of an error that the other ranks
// may have got as well. A rank that waits for it gets a DistributedError with `message`; if none
// does, the ranks can go on afterwards. Process ranks cannot: for them it is fail_ranks().
class [[nodiscard]] RankAway {
 public:
  RankAway(RankContext& context, const std::string& message);
  ~RankAway();
  RankAway(const RankAway&) = delete;
  RankAway& operator=(const RankAway&) = delete;

 private:
  RankContext& context_;
};

}  // namespace flow::boxing
