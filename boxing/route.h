// The redistribution planner: from any layout of a tensor to any other, as a short list of steps.
// Pure: a function of shape, dtype, layouts and the cost table, the same on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "boxing/comm/reduction.h"
#include "boxing/cost.h"
#include "boxing/layout.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor_meta.h"

namespace flow::boxing {

enum class RouteStepKind : uint8_t {
  kSlice,          // B -> S: every rank keeps a box of what it has
  kZeroPad,        // B or S -> P: every rank writes its part among neutral values
  kAllReduce,      // P -> B
  kReduceScatter,  // P -> S
  kAllGather,      // S -> B
  kAllToAll,       // S -> S
  kBroadcast,      // one rank's data to all others
  kExchange        // boxes between any ranks, partial values reduced on arrival
};

// Brings a tensor from one layout to another, within groups of ranks that differ along `axes` of
// the placement (bit i: axis i), or among all ranks of both placements when these differ.
struct RouteStep {
  RouteStepKind kind;
  Layout from;
  Layout to;
  uint32_t axes = 0;
  // Replicas are not equal yet: those at coordinate 0 count (a local tensor becoming global).
  bool takes_first = false;
  double bytes = 0;    // received by the rank that receives most
  double time_us = 0;  // predicted
  friend bool operator==(const RouteStep&, const RouteStep&) = default;
};

// Steps in order; none when every rank has what it needs. Immutable after planning.
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

// "all_gather S(0) -> B along axis 0 of cpu:(0, 1), 24 bytes, 1.8 us" a line.
std::string to_string(const Route& route);

// The fastest predicted route: the shortest path over layouts by steps along one axis, reductions
// along several, and a general exchange. Total: there is a plan for every pair of valid layouts.
Route find_route(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                 const CostTable& cost = cost_table());

// No route on one placement is predicted to take less; much cheaper to find than a plan.
double least_time_us(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                     const CostTable& cost = cost_table());

// A single step between layouts on one placement; there has to be one (all reductions P -> B of one
// kind are).
Route one_step_route(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                     const CostTable& cost = cost_table());

// The fastest other route to the same end (the second shortest path: Yen 1971); none when there is
// no other, or nothing moves.
std::optional<Route> runner_up(const Route& route, const CostTable& cost = cost_table());

// "reduce_scatter + all_gather"; "nothing moves" without steps.
std::string step_names(const Route& route);

// A local tensor becomes global in `layout`: along broadcast axes the first rank's data goes to
// all.
Route first_replica_route(const Shape& shape, DType dtype, const Layout& layout);

// One box of a target part and the ranks, as positions in from.placement, whose values it is the
// reduction of, in order. A copy has one source.
struct Region {
  Box box;
  std::vector<int64_t> sources;
  friend bool operator==(const Region&, const Region&) = default;
};

// What the part of `target_position` in step.to consists of; the rest of it, if anything, is
// neutral_op()'s. Not for kAllReduce, which has all parts of the group.
std::vector<Region> regions_of(const Shape& shape, const RouteStep& step, int64_t target_position);

// The reduction whose neutral value fills what regions_of leaves of a part; sum when nothing is
// left.
ReduceOp neutral_op(const RouteStep& step, int64_t target_position);

// The reduction of a step that has several sources for a region.
ReduceOp source_op(const RouteStep& step);

// Ranks, in group order, that carry out the step together with `rank`; empty when it has no part.
// A group of one needs no communication.
std::vector<int64_t> group_of(const RouteStep& step, int64_t rank);

}  // namespace flow::boxing
