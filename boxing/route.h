// Routes: lists of steps that move a tensor from one layout to another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "boxing/comm/reduction.h"
#include "boxing/layout.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor_meta.h"

namespace flow::boxing {

enum class RouteStepKind : uint8_t {
  kSlice,          // B -> S: every rank keeps a box of its part
  kZeroPad,        // B or S -> P: every rank pads its part with neutral values
  kAllReduce,      // P -> B
  kReduceScatter,  // P -> S
  kAllGather,      // S -> B
  kAllToAll,       // S -> S
  kBroadcast,      // one rank sends its data to all others
  kExchange        // boxes between any ranks; the receiver reduces partial values
};

// Brings a tensor from one layout to another. The groups of ranks that communicate differ along
// `axes` of the placement (bit i: axis i). If the placements differ, all ranks of both form one
// group.
struct RouteStep {
  RouteStepKind kind;
  Layout from;
  Layout to;
  uint32_t axes = 0;
  // True if the replicas differ before this step: the data at coordinate 0 then replaces the others
  // (used when a local tensor becomes global).
  bool takes_first = false;
  // Of an all-reduce of sums: each sum is divided by the number of its addends.
  bool is_mean = false;
  double bytes = 0;    // received by the rank that receives most
  double time_us = 0;  // predicted
  friend bool operator==(const RouteStep&, const RouteStep&) = default;
};

// The steps in order; empty if every rank already holds its target part. Immutable after planning.
struct Route {
  Shape shape;
  DType dtype = DType::kFloat32;
  Layout from;
  Layout to;
  std::vector<RouteStep> steps;

  double bytes() const;
  double time_us() const;
  friend bool operator==(const Route&, const Route&) = default;
};

// One line per step: "all_gather S(0) -> B along axis 0 of cpu:(0, 1), 24 bytes, 1.8 us".
std::string to_string(const Route& route);

// Prints the steps as "reduce_scatter + all_gather", or "nothing moves" if there are none. The
// all-reduce of a mean is "all_reduce_mean".
std::string step_names(const Route& route);

// One box of a target part, and the ranks (as positions in from.placement) whose values are reduced
// to it, in this order. A copy has one source.
struct Region {
  Box box;
  std::vector<int64_t> sources;
  friend bool operator==(const Region&, const Region&) = default;
};

// The regions of which the part of `target_position` in step.to consists. Elements outside them get
// the neutral value of neutral_op(). Not defined for kAllReduce, where every member holds all parts
// of its group.
std::vector<Region> regions_of(const Shape& shape, const RouteStep& step, int64_t target_position);

// The reduction whose neutral value fills the elements that regions_of does not cover; sum if it
// covers all.
ReduceOp neutral_op(const RouteStep& step, int64_t target_position);

// The reduction that a step applies to a region with several sources.
ReduceOp source_op(const RouteStep& step);

// Returns whether the step adds its sources up, and perhaps divides the sums.
bool adds_up(const RouteStep& step);

// The ranks, in group order, that carry out the step together with `rank`; empty if `rank` takes no
// part. A group of one needs no communication.
std::vector<int64_t> group_of(const RouteStep& step, int64_t rank);

}  // namespace flow::boxing
