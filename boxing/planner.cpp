// The search for the fastest route between two layouts (Dijkstra 1959, over layouts).
#include "boxing/planner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"

namespace flow::boxing {

namespace {

constexpr double kUnreachable = std::numeric_limits<double>::infinity();

// Sums of the same terms in a different order differ by less than this.
constexpr double kRounding = 1 - 1e-9;

// The parts of all positions of a layout.
using Boxes = std::vector<Box>;

// Computes box_of() of every position without computing the coordinates of positions.
Boxes boxes_of(const Shape& shape, const Layout& layout) {
  Boxes boxes;
  boxes.reserve(static_cast<size_t>(layout.placement.num_ranks()));
  boxes.push_back({.begin = Shape::filled(shape.size(), 0), .size = shape});
  for (int64_t axis = 0; axis < layout.nd_sbp.size(); ++axis) {
    const int64_t parts = layout.placement.shape()[axis];
    if (parts == 1) continue;
    const Boxes outer = std::exchange(boxes, {});
    boxes.reserve(static_cast<size_t>(layout.placement.num_ranks()));
    for (const Box& box : outer) {
      for (int64_t coordinate = 0; coordinate < parts; ++coordinate) {
        Box& part = boxes.emplace_back(box);
        if (!layout.nd_sbp[axis].is_split()) continue;
        const int64_t dim = layout.nd_sbp[axis].dim();
        const Range range = balanced_part(box.size[dim], parts, coordinate);
        part.begin[dim] += range.begin;
        part.size[dim] = range.size;
      }
    }
  }
  return boxes;
}

// The number of elements that are in both boxes.
int64_t num_common(const Box& a, const Box& b) {
  int64_t count = 1;
  for (int64_t dim = 0; dim < a.size.size(); ++dim) {
    const int64_t begin = std::max(a.begin[dim], b.begin[dim]);
    const int64_t end = std::min(a.begin[dim] + a.size[dim], b.begin[dim] + b.size[dim]);
    count *= std::max<int64_t>(0, end - begin);
  }
  return count;
}

// The axes along which the data of some rank may change.
uint32_t changed_axes(const Layout& from, const Layout& to) {
  uint32_t axes = 0;
  for (int64_t axis = 0; axis < from.nd_sbp.size(); ++axis) {
    if (from.placement.shape()[axis] > 1 && from.nd_sbp[axis] != to.nd_sbp[axis])
      axes |= 1U << axis;
  }
  return axes;
}

bool has(uint32_t axes, int64_t axis) {
  return (axes >> axis & 1U) != 0;
}

// Unchanged axes that split the same dim as a changed outer axis: the boxes of their ranks move as
// well.
uint32_t nested_axes(const Layout& from, const Layout& to, uint32_t changed) {
  uint32_t axes = 0;
  for (int64_t outer = 0; outer < from.nd_sbp.size(); ++outer) {
    if (!has(changed, outer)) continue;
    for (int64_t inner = outer + 1; inner < from.nd_sbp.size(); ++inner) {
      const Sbp cut = from.nd_sbp[inner];
      if (cut.is_split() && !has(changed, inner) &&
          (cut == from.nd_sbp[outer] || cut == to.nd_sbp[outer])) {
        axes |= 1U << inner;
      }
    }
  }
  return axes;
}

// A reduction along some axes is valid if all partial axes inside of them have the same kind; the
// order of the reductions then does not matter.
bool can_reduce(const Layout& from, uint32_t reduced) {
  for (int64_t outer = 0; outer < from.nd_sbp.size(); ++outer) {
    if (!has(reduced, outer)) continue;
    for (int64_t inner = outer + 1; inner < from.nd_sbp.size(); ++inner) {
      if (from.nd_sbp[inner].is_partial() && from.nd_sbp[inner] != from.nd_sbp[outer]) return false;
    }
  }
  return true;
}

uint32_t partial_axes(const Layout& layout) {
  uint32_t axes = 0;
  for (int64_t axis = 0; axis < layout.nd_sbp.size(); ++axis) {
    if (layout.nd_sbp[axis].is_partial() && layout.placement.shape()[axis] > 1) axes |= 1U << axis;
  }
  return axes;
}

int64_t group_size(const Placement& placement, uint32_t axes) {
  int64_t size = 1;
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
    if (has(axes, axis)) size *= placement.shape()[axis];
  }
  return size;
}

RouteStepKind kind_of(Sbp from, Sbp to) {
  if (from.is_partial()) {
    return to.is_split()       ? RouteStepKind::kReduceScatter
           : to.is_broadcast() ? RouteStepKind::kAllReduce
                               : RouteStepKind::kExchange;
  }
  if (to.is_partial()) return RouteStepKind::kZeroPad;
  if (from.is_split()) return to.is_split() ? RouteStepKind::kAllToAll : RouteStepKind::kAllGather;
  return RouteStepKind::kSlice;
}

class Planner {
 public:
  Planner(const Shape& shape, DType dtype, const CostTable& cost)
      : shape_(shape), dtype_(dtype), cost_(cost) {}

  // The fastest route; empty if there is none that avoids the step `banned`.
  std::optional<Route> route(const Layout& from, const Layout& to,
                             const RouteStep* banned = nullptr);
  // A lower bound for all routes between layouts on one placement, whose boxes are passed.
  double least_route_us(const Layout& from, const Boxes& before, const Layout& to,
                        const Boxes& after) const;
  // A step between two layouts; empty if a single step is not possible.
  std::optional<RouteStep> step_within(const Layout& from, const Layout& to) const;

 private:
  // Steps whose cost is not computed yet.
  std::optional<RouteStep> kind_within(const Layout& from, const Layout& to) const;
  std::optional<RouteStep> kind_across(const Layout& from, const Layout& to) const;
  // A lower bound for all steps of this kind among these ranks.
  double least_us(const RouteStep& step) const;
  double remaining_us(const Layout& from, const Layout& to) const;

  double meeting_us(int64_t members) const {
    return cost_.meeting_us + cost_.peer_us * static_cast<double>(members - 1);
  }

  void price(RouteStep& step, const Boxes& from, const Boxes& to) const;
  // The elements that a rank of the target receives from others.
  double num_received(const RouteStep& step, int64_t position) const;
  bool is_local(const RouteStep& step) const;
  std::vector<Layout> layouts(const Placement& placement,
                              const std::vector<std::vector<Sbp>>& choices) const;
  std::vector<Layout> candidates(const Layout& from, const Layout& to) const;

  double element_bytes() const { return static_cast<double>(dtype_size(dtype_)); }

  const Shape& shape_;
  DType dtype_;
  const CostTable& cost_;
};

bool Planner::is_local(const RouteStep& step) const {
  for (int64_t position = 0; position < step.to.placement.num_ranks(); ++position) {
    const int64_t rank = step.to.placement.ranks()[static_cast<size_t>(position)];
    for (const Region& region : regions_of(shape_, step, position)) {
      for (const int64_t source : region.sources) {
        if (step.from.placement.ranks()[static_cast<size_t>(source)] != rank) return false;
      }
    }
  }
  return true;
}

std::optional<RouteStep> Planner::step_within(const Layout& from, const Layout& to) const {
  std::optional<RouteStep> step = kind_within(from, to);
  if (step) price(*step, boxes_of(shape_, from), boxes_of(shape_, to));
  return step;
}

std::optional<RouteStep> Planner::kind_within(const Layout& from, const Layout& to) const {
  const uint32_t changed = changed_axes(from, to);
  const uint32_t nested = nested_axes(from, to, changed);
  const uint32_t reduced = changed & partial_axes(from);
  if (!can_reduce(from, reduced)) return std::nullopt;
  RouteStep step{
      .kind = RouteStepKind::kExchange, .from = from, .to = to, .axes = changed | nested};
  const bool is_single = (changed & (changed - 1)) == 0;
  if (is_single && nested == 0) {
    for (int64_t axis = 0; axis < from.nd_sbp.size(); ++axis) {
      if (has(changed, axis)) step.kind = kind_of(from.nd_sbp[axis], to.nd_sbp[axis]);
    }
  } else if (reduced == changed && nested == 0 && (changed & partial_axes(to)) == 0) {
    bool all_broadcast = true;
    for (int64_t axis = 0; axis < from.nd_sbp.size(); ++axis)
      all_broadcast &= !has(changed, axis) || to.nd_sbp[axis].is_broadcast();
    if (all_broadcast) step.kind = RouteStepKind::kAllReduce;
  } else if (reduced == 0 && partial_axes(to) == partial_axes(from)) {
    bool all_copies = true;
    for (int64_t axis = 0; axis < from.nd_sbp.size(); ++axis)
      all_copies &= !has(changed, axis) || from.nd_sbp[axis].is_broadcast();
    if (all_copies && is_local(step)) step.kind = RouteStepKind::kSlice;
  }
  return step;
}

std::optional<RouteStep> Planner::kind_across(const Layout& from, const Layout& to) const {
  RouteStep step{.kind = RouteStepKind::kExchange, .from = from, .to = to, .axes = ~0U};
  uint32_t reduced = partial_axes(from);
  if (from.placement.shape() == to.placement.shape()) {
    const uint32_t changed = changed_axes(from, to);
    step.axes = changed | nested_axes(from, to, changed);
    reduced &= changed;
  }
  if (!can_reduce(from, reduced)) return std::nullopt;
  const bool goes_to_all = partial_axes(to) == 0 && to.nd_sbp == NdSbp::broadcast(to.nd_sbp.size());
  if (from.placement.num_ranks() == 1 && goes_to_all) step.kind = RouteStepKind::kBroadcast;
  const auto sorted = [](std::vector<int64_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  };
  if (partial_axes(to) == 0 && reduced == 0 &&
      sorted(from.placement.ranks()) == sorted(to.placement.ranks()) && is_local(step)) {
    step.kind = RouteStepKind::kSlice;
  }
  return step;
}

double Planner::least_us(const RouteStep& step) const {
  const bool is_copy = step.kind == RouteStepKind::kSlice || step.kind == RouteStepKind::kZeroPad;
  if (is_copy) return cost_.local_step_us;
  const bool is_within = step.from.placement == step.to.placement;
  return is_within ? meeting_us(group_size(step.from.placement, step.axes)) : cost_.meeting_us;
}

// A lower bound for all routes between layouts on one placement: ranks must meet along every axis
// whose entry only communication can change.
double Planner::remaining_us(const Layout& from, const Layout& to) const {
  double least = 0;
  for (int64_t axis = 0; axis < from.nd_sbp.size(); ++axis) {
    const Sbp has = from.nd_sbp[axis];
    const Sbp wants = to.nd_sbp[axis];
    if (has == wants) continue;
    const bool meets = has.is_partial() || (has.is_split() && !wants.is_partial());
    least = std::max(least, meets ? meeting_us(from.placement.shape()[axis])
                                  : std::min(cost_.local_step_us, cost_.meeting_us));
  }
  return least;
}

double Planner::num_received(const RouteStep& step, int64_t position) const {
  const int64_t rank = step.to.placement.ranks()[static_cast<size_t>(position)];
  double elements = 0;
  for (const Region& region : regions_of(shape_, step, position)) {
    for (const int64_t from : region.sources) {
      const bool is_own = step.from.placement.ranks()[static_cast<size_t>(from)] == rank;
      if (!is_own) elements += static_cast<double>(region.box.size.numel());
    }
  }
  return elements;
}

void Planner::price(RouteStep& step, const Boxes& from, const Boxes& to) const {
  const Placement& source = step.from.placement;
  const Placement& target = step.to.placement;
  const bool is_within = source == target;
  const bool is_aligned = source.shape() == target.shape();
  double most_received = 0;
  double all_received = 0;
  double most_held = 0;
  const uint32_t reduced = partial_axes(step.from) & (is_aligned ? step.axes : ~0U);
  const auto addends = static_cast<double>(group_size(source, reduced));
  // Ranks of a partial target hold neutral values, which nobody sends, where others hold the data.
  const bool has_neutral = step.kind == RouteStepKind::kExchange && partial_axes(step.to) != 0;
  for (int64_t position = 0; position < target.num_ranks(); ++position) {
    const Box& part = to[static_cast<size_t>(position)];
    const auto held = static_cast<double>(part.size.numel());
    const int64_t at =
        is_within ? position : source.position(target.ranks()[static_cast<size_t>(position)]);
    const double own =
        at < 0 ? 0 : static_cast<double>(num_common(from[static_cast<size_t>(at)], part));
    const double elements =
        has_neutral ? num_received(step, position) : std::max(0.0, held * addends - own);
    const double received = elements * element_bytes();
    most_received = std::max(most_received, received);
    all_received += received;
    most_held = std::max(most_held, held * element_bytes());
  }
  if (step.kind == RouteStepKind::kSlice || step.kind == RouteStepKind::kZeroPad) {
    step.time_us = cost_.local_step_us + most_held / cost_.copied_per_us;
    return;
  }
  const int64_t members = is_within
                              ? group_size(source, step.axes)
                              : static_cast<int64_t>(group_of(step, source.ranks()[0]).size());
  const double meeting = meeting_us(members);
  if (step.kind == RouteStepKind::kAllReduce) {
    const auto n = static_cast<double>(members);
    const double whole = (n - 1) * most_held;           // every member reads all data
    const double halves = 2 * (n - 1) / n * most_held;  // each reduces a chunk, then fetches others
    const double whole_us =
        meeting + whole / cost_.bytes_per_us + n * most_held / cost_.reduced_per_us;
    const double halves_us =
        2 * meeting + halves / cost_.bytes_per_us + most_held / cost_.reduced_per_us;
    step.bytes = std::min(whole, halves);
    step.time_us = std::min(whole_us, halves_us);
    return;
  }
  const double sent = all_received / static_cast<double>(source.num_ranks());
  step.bytes = most_received;
  step.time_us =
      meeting + std::max(most_received, sent) / cost_.bytes_per_us +
      (addends > 1 ? addends * most_held / cost_.reduced_per_us : most_held / cost_.copied_per_us);
}

// The elements that a rank lacks must be sent to it. If there are reductions, the last one sends
// whole parts. Zero-padding enlarges parts without communication, so there is no bound if the goal
// is partial.
double Planner::least_route_us(const Layout& from, const Boxes& before, const Layout& to,
                               const Boxes& after) const {
  const double meetings = remaining_us(from, to);
  if (partial_axes(to) != 0) return meetings;
  const bool has_addends = partial_axes(from) != 0;
  int64_t lacking = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    const int64_t had = has_addends ? 0 : num_common(before[i], after[i]);
    lacking = std::max(lacking, after[i].size.numel() - had);
  }
  return meetings + static_cast<double>(lacking) * element_bytes() / cost_.bytes_per_us;
}

std::vector<Layout> Planner::layouts(const Placement& placement,
                                     const std::vector<std::vector<Sbp>>& choices) const {
  std::vector<Layout> result = {{placement, {}}};
  for (const std::vector<Sbp>& entries : choices) {
    std::vector<Layout> longer;
    for (const Layout& layout : result) {
      for (const Sbp entry : entries) {
        Layout next = layout;
        next.nd_sbp.push_back(entry);
        longer.push_back(next);
      }
    }
    result = std::move(longer);
  }
  return result;
}

// The layouts that a route may use, with `from` first and `to` last.
std::vector<Layout> Planner::candidates(const Layout& from, const Layout& to) const {
  const auto largest = std::max_element(shape_.begin(), shape_.end());
  const auto choices = [&](const Placement& placement, const NdSbp& first, const NdSbp* second,
                           bool takes_broadcast) {
    std::vector<std::vector<Sbp>> result;
    for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
      std::vector<Sbp> entries = {first[axis]};
      const auto add = [&](Sbp entry) {
        if (std::find(entries.begin(), entries.end(), entry) == entries.end())
          entries.push_back(entry);
      };
      if (placement.shape()[axis] > 1) {
        if (second != nullptr) add((*second)[axis]);
        if (takes_broadcast) add(sbp::broadcast);
        if (!shape_.empty()) add(sbp::split(largest - shape_.begin()));
      }
      result.push_back(entries);
    }
    return result;
  };
  std::vector<Layout> nodes;
  if (from.placement == to.placement) {
    nodes = layouts(from.placement, choices(from.placement, from.nd_sbp, &to.nd_sbp, true));
  } else {
    nodes = layouts(from.placement, choices(from.placement, from.nd_sbp, nullptr, true));
    const auto beyond = layouts(to.placement, choices(to.placement, to.nd_sbp, nullptr, false));
    nodes.insert(nodes.end(), beyond.begin(), beyond.end());
  }
  std::erase(nodes, from);
  std::erase(nodes, to);
  nodes.insert(nodes.begin(), from);
  nodes.push_back(to);
  return nodes;
}

// The entries of axes with one rank mean nothing; writing all of them the same way keeps layouts
// comparable.
Layout plain(const Layout& layout) {
  Layout result = layout;
  for (int64_t axis = 0; axis < layout.nd_sbp.size(); ++axis) {
    if (layout.placement.shape()[axis] == 1) {
      result.nd_sbp = result.nd_sbp.with(axis, sbp::broadcast);
    }
  }
  return result;
}

// True if only one axis changes, or only partial axes do. Requires plain layouts.
bool is_single_or_reduces(const NdSbp& from, const NdSbp& to) {
  int64_t changed = 0;
  bool reduces = true;
  for (int64_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == to[axis]) continue;
    ++changed;
    reduces &= from[axis].is_partial();
  }
  return changed <= 1 || reduces;
}

std::optional<Route> Planner::route(const Layout& from, const Layout& to, const RouteStep* banned) {
  Route route{.shape = shape_, .dtype = dtype_, .from = from, .to = to, .steps = {}};
  const Layout start = plain(from);
  const Layout goal = plain(to);
  if (start == goal || shape_.numel() == 0) return route;

  const std::vector<Layout> nodes = candidates(start, goal);
  const size_t last = nodes.size() - 1;
  const bool is_within = start.placement == goal.placement;
  const double least_step_us = std::min(cost_.local_step_us, cost_.meeting_us);
  // A lower bound from each node to the goal: first from the number of meetings alone, later also
  // from the missing elements.
  std::vector<double> remaining(nodes.size(), 0);
  std::vector<bool> knows_lacking(nodes.size(), !is_within);
  for (size_t i = 1; is_within && i < last; ++i)
    remaining[i] = remaining_us(nodes[i], goal);
  std::vector<Boxes> boxes(nodes.size());
  const auto boxes_at = [&](size_t i) -> const Boxes& {
    if (boxes[i].empty()) boxes[i] = boxes_of(shape_, nodes[i]);
    return boxes[i];
  };
  std::vector<double> best(nodes.size(), kUnreachable);
  std::vector<std::optional<RouteStep>> step_to(nodes.size());
  std::vector<size_t> before(nodes.size(), 0);
  std::vector<bool> is_settled(nodes.size(), false);
  best[0] = 0;
  for (;;) {
    size_t at = nodes.size();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!is_settled[i] && best[i] < kUnreachable && (at == nodes.size() || best[i] < best[at]))
        at = i;
    }
    if (at == nodes.size()) return std::nullopt;
    if (at == last || best[at] + least_step_us >= best[last]) break;
    is_settled[at] = true;
    // The goal is first: a node that is reached no earlier than the goal need not be examined.
    for (size_t next = last; next > 0; --next) {
      if (is_settled[next]) continue;
      const double limit = std::min(best[next], best[last]);
      const auto is_too_long = [&](double step_us) {
        const double there = best[at] + step_us;
        return there >= limit || (there + remaining[next]) * kRounding >= best[last];
      };
      if (is_too_long(least_step_us)) continue;
      const Layout& a = nodes[at];
      const Layout& b = nodes[next];
      std::optional<RouteStep> step;
      if (is_within || a.placement == b.placement) {
        if (next == last || is_single_or_reduces(a.nd_sbp, b.nd_sbp)) step = kind_within(a, b);
      } else if (a.placement == start.placement) {
        step = kind_across(a, b);
      }
      const bool is_banned = banned != nullptr && banned->from == a && banned->to == b;
      if (!step || is_banned || is_too_long(least_us(*step))) continue;
      if (!knows_lacking[next]) {
        remaining[next] = least_route_us(b, boxes_at(next), goal, boxes_at(last));
        knows_lacking[next] = true;
        if (is_too_long(least_us(*step))) continue;
      }
      price(*step, boxes_at(at), boxes_at(next));
      if (is_too_long(step->time_us)) continue;
      best[next] = best[at] + step->time_us;
      step_to[next] = std::move(step);
      before[next] = at;
    }
  }
  for (size_t at = last; at != 0; at = before[at])
    route.steps.push_back(*step_to[at]);
  std::reverse(route.steps.begin(), route.steps.end());
  return route;
}

}  // namespace

Route find_route(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                 const CostTable& cost) {
  std::optional<Route> route = Planner(shape, dtype, cost).route(from, to);
  FLOW_ASSERT(route, "no route from ", from, " to ", to);
  return *std::move(route);
}

double least_time_us(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                     const CostTable& cost) {
  const Layout start = plain(from);
  const Layout goal = plain(to);
  if (start == goal || shape.numel() == 0) return 0;
  return Planner(shape, dtype, cost)
      .least_route_us(start, boxes_of(shape, start), goal, boxes_of(shape, goal));
}

Route one_step_route(const Shape& shape, DType dtype, const Layout& from, const Layout& to,
                     const CostTable& cost) {
  std::optional<RouteStep> step = Planner(shape, dtype, cost).step_within(plain(from), plain(to));
  FLOW_ASSERT(step, "no single step from ", from, " to ", to);
  return {.shape = shape, .dtype = dtype, .from = from, .to = to, .steps = {*std::move(step)}};
}

std::optional<Route> runner_up(const Route& route, const CostTable& cost) {
  std::optional<Route> best;
  for (const RouteStep& step : route.steps) {
    if (step.takes_first || step.is_mean) return std::nullopt;  // the only way
    std::optional<Route> other =
        Planner(route.shape, route.dtype, cost).route(route.from, route.to, &step);
    if (other && (!best || other->time_us() < best->time_us())) best = std::move(other);
  }
  return best;
}

Route mean_route(const Shape& shape, DType dtype, const Placement& placement) {
  const NdSbp whole = NdSbp::broadcast(placement.num_axes());
  NdSbp addends = whole;
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis)
    addends = addends.with(axis, sbp::partial_sum);
  const Layout from{placement, addends}, to{placement, whole};
  if (shape.numel() == 0 || placement.num_ranks() == 1) {
    return {.shape = shape, .dtype = dtype, .from = from, .to = to, .steps = {}};
  }
  Route route = one_step_route(shape, dtype, from, to);
  route.steps[0].is_mean = true;
  return route;
}

Route first_replica_route(const Shape& shape, DType dtype, const Layout& layout) {
  Route route{.shape = shape, .dtype = dtype, .from = layout, .to = layout, .steps = {}};
  if (shape.numel() == 0 || !has_replicas(layout)) return route;
  RouteStep step{
      .kind = RouteStepKind::kBroadcast, .from = layout, .to = layout, .takes_first = true};
  int64_t largest = 0;
  for (int64_t axis = 0; axis < layout.nd_sbp.size(); ++axis) {
    if (layout.nd_sbp[axis].is_broadcast()) step.axes |= 1U << axis;
  }
  for (int64_t position = 0; position < layout.placement.num_ranks(); ++position) {
    const Box part = box_of(shape, layout.placement, layout.nd_sbp, position);
    largest = std::max(largest, part.size.numel());
  }
  step.bytes = static_cast<double>(largest) * static_cast<double>(dtype_size(dtype));
  const auto members = static_cast<double>(group_size(layout.placement, step.axes));
  const CostTable& cost = cost_table();
  step.time_us = cost.meeting_us + cost.peer_us * (members - 1) + step.bytes / cost.bytes_per_us;
  route.steps.push_back(step);
  return route;
}

}  // namespace flow::boxing
