// Carrying out a redistribution plan on one rank.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "boxing/comm/communicator.h"
#include "boxing/route.h"
#include "core/storage.h"

namespace flow {
class RankContext;
}

namespace flow::boxing {

// A box copied between two row-major parts, or reduced from several parts of one shape.
struct BoxCopy {
  int64_t source_offset = 0;  // in elements, as all below
  int64_t target_offset = 0;
  Shape extents;  // outermost first; the last one is contiguous on both sides
  Strides source_strides;
  Strides target_strides;
  std::vector<int64_t> members;  // of the step's group, in order of reduction
  friend bool operator==(const BoxCopy&, const BoxCopy&) = default;
};

// What carries a step between members that cannot read each other's memory: boxes are packed,
// exchanged and unpacked, unless all parts lie one after another as a collective takes them.
enum class Carrier : uint8_t { kPackedBoxes, kAllGather, kReduceScatter };

// One step as one rank sees it.
struct RankStep {
  RouteStepKind kind = RouteStepKind::kExchange;
  std::vector<int64_t> group;  // world ranks; empty: no part in it; one: no communication
  int64_t source_count = 0;    // elements of this rank's part before and after
  int64_t target_count = 0;
  bool fills = false;  // neutral values first
  ReduceOp fill_op = ReduceOp::kSum;
  ReduceOp source_op = ReduceOp::kSum;
  std::vector<BoxCopy> copies;
  Carrier carrier = Carrier::kPackedBoxes;  // the same on all members
  std::vector<int64_t> part_counts;         // of a collective: every member's elements
  // Packed boxes: what this rank packs for each member, and how many bytes go to and come from
  // each. Copies there count within the packed data.
  std::vector<std::vector<BoxCopy>> packed;
  std::vector<int64_t> send_bytes;
  std::vector<int64_t> recv_bytes;
  std::vector<BoxCopy> unpacked;              // source_offset counts within each member's data
  std::vector<std::vector<int64_t>> offsets;  // of unpacked[i], per entry of its members
  bool is_streamed = false;  // packed piece by piece on the way; the same on all members
  friend bool operator==(const RankStep&, const RankStep&) = default;
};

// What one rank does for a plan. Immutable, computable on any rank for any other.
struct RankRoute {
  Route route;
  std::vector<RankStep> steps;
  bool copies_all = false;  // no steps: the target part is a copy of the source part
  int64_t count = 0;        // elements of the target part

  friend bool operator==(const RankRoute&, const RankRoute&) = default;
};

RankRoute make_rank_route(const Route& route, int64_t rank);

// A rank plan with the rank's communicators. Confined to the threads of its rank; one run at a
// time.
class BoundRoute {
 public:
  // Groups are connected when the first run needs them.
  BoundRoute(RankContext& context, RankRoute route);

  // Source and target parts are row-major; null on ranks that hold none. `source` may not overlap
  // `target`. Collective over the ranks of both placements.
  void run(const std::byte* source, std::byte* target, Site site) const;

  const Route& route() const { return rank_route_.route; }

  // Packs and exchanges messages even where memory could be shared (tests).
  void set_packed(bool packed) { is_packed_ = packed; }

 private:
  void run_step(const RankStep& step, Communicator* group, const std::byte* source,
                std::byte* target, const Fingerprint& what) const;
  void exchange_shared(const RankStep& step, Communicator& group, const std::byte* source,
                       std::byte* target, const Fingerprint& what) const;
  void exchange_parts(const RankStep& step, Communicator& group, const std::byte* source,
                      std::byte* target, const Fingerprint& what) const;
  void exchange_packed(const RankStep& step, Communicator& group, const std::byte* source,
                       std::byte* target, const Fingerprint& what) const;
  void exchange_streamed(const RankStep& step, Communicator& group, const std::byte* source,
                         std::byte* target, const Fingerprint& what) const;

  RankContext& context_;
  RankRoute rank_route_;
  Fingerprint what_;
  mutable std::vector<Communicator*> groups_;  // null until first used
  bool is_packed_ = false;
};

// The whole of it, for callers that keep nothing.
void run_route(const Route& route, RankContext& context, const std::byte* source, std::byte* target,
               Site site);

// Copies elements of `element_bytes` each; what extents and strides of a BoxCopy describe.
void copy_box(const Shape& extents, const Strides& source_strides, const std::byte* source,
              const Strides& target_strides, std::byte* target, size_t element_bytes);

}  // namespace flow::boxing
