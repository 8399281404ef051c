// The redistribution planner: finds a short route from any layout of a tensor to any other. Pure: a
// function of shape, dtype, layouts and the cost table, with the same result on every rank.
#pragma once

#include <optional>

#include "boxing/cost.h"
#include "boxing/route.h"

namespace flow::boxing {

// Returns the route with the shortest predicted time: the shortest path over layouts. Its edges are
// steps along one axis, reductions along several axes, and a general exchange. There is a route for
// every pair of valid layouts.
Route find_route(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                 const CostTable& cost = cost_table());

// A lower bound of the predicted time of all routes on one placement. Much cheaper than planning a
// route.
double least_time_us(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                     const CostTable& cost = cost_table());

// Returns a route of a single step between two layouts on one placement. Requires: such a step
// exists (it does for all reductions P -> B of one kind).
Route one_step_route(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                     const CostTable& cost = cost_table());

// The fastest other route between the same layouts (the second shortest path: Yen 1971); empty if
// there is no other route or if nothing moves.
std::optional<Route> runner_up(const Route& route, const CostTable& cost = cost_table());

// The route by which every rank of the placement gets the mean of the ranks' addends.
Route mean_route(const Shape& shape, DType dtype, const Placement& placement);

// The route by which a local tensor becomes global in `layout`: along broadcast axes the first
// rank's data is sent to all others.
Route first_replica_route(const Shape& shape, DType dtype, const Layout& layout);

}  // namespace flow::boxing
