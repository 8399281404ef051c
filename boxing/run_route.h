// Carries out a route on one rank.
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

// A box that is copied between two row-major parts, or reduced from several parts of the same
// shape.
struct BoxCopy {
  int64_t source_offset = 0;  // offsets and strides are in elements
  int64_t target_offset = 0;
  Shape extents;  // outermost first; the last one is contiguous on both sides
  Strides source_strides;
  Strides target_strides;
  std::vector<int64_t> members;  // positions in the step's group, in order of reduction
  friend bool operator==(const BoxCopy&, const BoxCopy&) = default;
};

// How data travels between members that cannot read each other's memory: boxes are packed,
// exchanged and unpacked, unless all parts are contiguous in the order that a collective needs.
enum class Carrier : uint8_t { kPackedBoxes, kAllGather, kReduceScatter };

// One route step as one rank carries it out.
struct RankStep {
  RouteStepKind kind = RouteStepKind::kExchange;
  // World ranks. Empty: this rank takes no part. One rank: no communication.
  std::vector<int64_t> group;
  int64_t source_count = 0;  // elements of this rank's part before and after
  int64_t target_count = 0;
  bool fills = false;  // writes neutral values first
  ReduceOp fill_op = ReduceOp::kSum;
  ReduceOp source_op = ReduceOp::kSum;
  std::vector<BoxCopy> copies;
  Carrier carrier = Carrier::kPackedBoxes;  // the same on all members
  std::vector<int64_t> part_counts;  // for a collective: the number of elements of every member
  // For packed boxes: the boxes that this rank packs for each member, and the bytes sent to and
  // received from each. Offsets in these copies refer to the packed data.
  std::vector<std::vector<BoxCopy>> packed;
  std::vector<int64_t> send_bytes;
  std::vector<int64_t> recv_bytes;
  std::vector<BoxCopy> unpacked;              // source_offset is relative to each member's data
  std::vector<std::vector<int64_t>> offsets;  // of unpacked[i], one per entry of its members
  bool is_streamed = false;  // packed piece by piece during the transfer; the same on all members
  friend bool operator==(const RankStep&, const RankStep&) = default;
};

// The part of a route that one rank carries out. Immutable; any rank can compute it for any other.
struct RankRoute {
  Route route;
  std::vector<RankStep> steps;
  bool copies_all = false;  // there are no steps: the target part is a copy of the source part
  int64_t count = 0;        // elements of the target part

  friend bool operator==(const RankRoute&, const RankRoute&) = default;
};

RankRoute make_rank_route(const Route& route, int64_t rank);

// A rank route together with the rank's communicators. Used only by threads of its rank, by one run
// at a time.
class BoundRoute {
 public:
  // Communicators are made when the first run needs them.
  BoundRoute(RankContext& context, RankRoute route);

  // Carries out the route and blocks until the target part is complete. Source and target parts are
  // row-major, and null on ranks that hold none; they must not overlap. Collective over the ranks
  // of both placements.
  void run(const std::byte* source, std::byte* target, Site site) const;

  const Route& route() const { return rank_route_.route; }

  // Exchanges packed messages even if members could read each other's memory; for tests.
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

// Makes the rank route and runs it once, for callers that do not keep it.
void run_route(const Route& route, RankContext& context, const std::byte* source, std::byte* target,
               Site site);

// Copies elements of `element_bytes` bytes each from one strided box to another, as a BoxCopy
// describes.
void copy_box(const Shape& extents, const Strides& source_strides, const std::byte* source,
              const Strides& target_strides, std::byte* target, size_t element_bytes);

}  // namespace flow::boxing
