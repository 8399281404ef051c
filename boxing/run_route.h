// Carries out a route on one rank.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/rank_route.h"
#include "core/storage.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// A rank route together with the rank's communicators. Used only by threads of its rank, by one run
// at a time.
class BoundRoute {
 public:
  // Communicators are made when the first run needs them. `channel` is that of the thread that runs
  // the route.
  BoundRoute(RankContext& context, RankRoute route, Channel channel = Channel::kCaller);

  // Carries out the route and blocks until the target part is complete. Source and target parts are
  // row-major, and null on ranks that hold none; they must not overlap. Collective over the ranks
  // of both placements.
  void run(const std::byte* source, std::byte* target, Site site) const;

  // Carries out one step of the route, of which this rank takes part.
  void run_step(size_t index, const std::byte* source, std::byte* target, Site site) const;

  const Route& route() const { return rank_route_.route; }

  const RankRoute& rank_route() const { return rank_route_; }

  // The communicator of a step; null if it needs none. Made when it is first needed.
  Communicator* group_of_step(size_t index) const;

  // What the members of a step's group must agree on.
  Fingerprint fingerprint(Site site) const;

  // Exchanges packed messages even if members could read each other's memory; for tests.
  void set_packed(bool packed) { is_packed_ = packed; }

 private:
  void run_step(const RankStep& step, Communicator* group, const std::byte* source,
                std::byte* target, const Fingerprint& what) const;
  void exchange_shared(const RankStep& step, Communicator& group, const std::byte* source,
                       std::byte* target, const Fingerprint& what) const;
  void exchange_in_host_memory(const RankStep& step, Communicator& group, const std::byte* source,
                               std::byte* target, const Fingerprint& what) const;
  void exchange_streamed(const RankStep& step, Communicator& group, const std::byte* source,
                         std::byte* target, const Fingerprint& what) const;

  RankContext& context_;
  RankRoute rank_route_;
  Channel channel_;
  Fingerprint what_;
  mutable std::vector<Communicator*> groups_;  // null until first used
  bool is_packed_ = false;
};

// Makes the rank route and runs it once, for callers that do not keep it.
void run_route(const Route& route, RankContext& context, const std::byte* source, std::byte* target,
               Site site);

// Copies elements of `element_bytes` bytes each from one strided box to another, as a BoxCopy
// describes.
void copy_box(const Shape& extents, const Strides& source_strides, const std::byte* source,
              const Strides& target_strides, std::byte* target, size_t element_bytes);

}  // namespace flow::boxing
