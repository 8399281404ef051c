// What one rank does in a route.
#pragma once

#include <vector>

#include "boxing/route.h"
#include "core/tensor_meta.h"

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

// Returns whether a step gathers all its messages in memory before and after the transfer, if the
// members of its group cannot read each other's memory.
bool packs_messages(const RankStep& step);

}  // namespace flow::boxing
