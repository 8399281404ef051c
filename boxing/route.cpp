#include "boxing/route.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "core/error.h"

namespace flow::boxing {

double Route::bytes() const {
  double sum = 0;
  for (const RouteStep& step : steps)
    sum += step.bytes;
  return sum;
}

double Route::time_us() const {
  double sum = 0;
  for (const RouteStep& step : steps)
    sum += step.time_us;
  return sum;
}

namespace {

constexpr std::array kKindNames = {"slice",      "zero_pad",   "all_reduce", "reduce_scatter",
                                   "all_gather", "all_to_all", "broadcast",  "exchange"};

std::string name_of(const RouteStep& step) {
  return str(kKindNames[static_cast<size_t>(step.kind)], step.is_mean ? "_mean" : "");
}

// True if ranks of both placements correspond by coordinates, so that data need not move along axes
// outside step.axes.
bool is_aligned(const RouteStep& step) {
  return step.from.placement.shape() == step.to.placement.shape();
}

bool is_free(const RouteStep& step, int64_t axis) {
  return !is_aligned(step) || (step.axes >> axis & 1U) != 0;
}

// True for an axis along which the values at coordinate 0 become addends, and all other addends are
// neutral values.
bool is_new_partial(const RouteStep& step, int64_t axis) {
  const Sbp entry = step.to.nd_sbp[axis];
  if (!entry.is_partial() || step.to.placement.shape()[axis] == 1) return false;
  return !is_aligned(step) || step.from.nd_sbp[axis] != entry;
}

int64_t position_at(const Placement& placement, const Shape& coordinates) {
  int64_t position = 0;
  for (int64_t axis = 0; axis < coordinates.size(); ++axis)
    position = position * placement.shape()[axis] + coordinates[axis];
  return position;
}

// The coordinates from which a target takes its data if it has no choice: its own coordinates, or
// those of the nearest replica. The caller sets the entries of axes along which data moves (splits
// and addends).
Shape base_coordinates(const RouteStep& step, int64_t target_position) {
  const Placement& source = step.from.placement;
  const int64_t rank = step.to.placement.ranks()[static_cast<size_t>(target_position)];
  const int64_t own = source.position(rank);
  Shape coordinates = Shape::filled(source.num_axes(), 0);
  int64_t spread = target_position;  // replicas serve targets in turn
  for (int64_t axis = 0; axis < source.num_axes(); ++axis) {
    const int64_t size = source.shape()[axis];
    if (!step.from.nd_sbp[axis].is_broadcast()) {
      if (is_aligned(step)) coordinates[axis] = step.to.placement.coordinate(target_position, axis);
    } else if (step.takes_first && is_free(step, axis)) {
      coordinates[axis] = 0;
    } else if (own >= 0) {
      coordinates[axis] = source.coordinate(own, axis);
    } else if (is_aligned(step)) {
      coordinates[axis] = step.to.placement.coordinate(target_position, axis);
    } else {
      coordinates[axis] = spread % size;
      spread /= size;
    }
  }
  return coordinates;
}

// Calls fn, in ascending order, for all coordinates that differ from `coordinates` along the free
// axes for which `crosses(entry)` is true.
template <class Crosses, class Fn>
void for_each_coordinate(const RouteStep& step, Shape coordinates, const Crosses& crosses,
                         const Fn& fn) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < coordinates.size(); ++axis) {
    if (!is_free(step, axis) || !crosses(step.from.nd_sbp[axis])) continue;
    axes.push_back(axis);
    coordinates[axis] = 0;
  }
  for (;;) {
    fn(coordinates);
    size_t i = axes.size();
    for (; i > 0; --i) {
      const int64_t axis = axes[i - 1];
      if (++coordinates[axis] < step.from.placement.shape()[axis]) break;
      coordinates[axis] = 0;
    }
    if (i == 0) return;
  }
}

}  // namespace

std::string step_names(const Route& route) {
  if (route.steps.empty()) return "nothing moves";
  std::string names;
  for (const RouteStep& step : route.steps) {
    if (!names.empty()) names += " + ";
    names += name_of(step);
  }
  return names;
}

std::string to_string(const Route& route) {
  std::ostringstream out;
  out << route.dtype << ' ' << route.shape << " from " << route.from << " to " << route.to << ":\n";
  if (route.steps.empty()) out << "  nothing moves\n";
  for (const RouteStep& step : route.steps) {
    out << "  " << name_of(step) << ' ' << step.from.nd_sbp << " -> " << step.to.nd_sbp;
    if (step.from.placement == step.to.placement) {
      out << " along axes";
      for (int64_t axis = 0; axis < step.from.placement.num_axes(); ++axis) {
        if ((step.axes >> axis & 1U) != 0) out << ' ' << axis;
      }
      out << " of " << step.from.placement;
    } else {
      out << " from " << step.from.placement << " to " << step.to.placement;
    }
    out << ", " << static_cast<int64_t>(step.bytes) << " bytes, " << step.time_us << " us\n";
  }
  return out.str();
}

std::vector<Region> regions_of(const Shape& shape, const RouteStep& step, int64_t target_position) {
  const Placement& source = step.from.placement;
  const Box target = box_of(shape, step.to.placement, step.to.nd_sbp, target_position);
  std::vector<Region> regions;
  const auto add = [&](const Shape& coordinates) {
    const int64_t position = position_at(source, coordinates);
    Region region{intersection(target, box_of(shape, source, step.from.nd_sbp, position)), {}};
    if (region.box.size.numel() == 0) return;
    for_each_coordinate(
        step, coordinates, [](Sbp entry) { return entry.is_partial(); },
        [&](const Shape& addend) { region.sources.push_back(position_at(source, addend)); });
    regions.push_back(std::move(region));
  };
  const Shape base = base_coordinates(step, target_position);
  if (step.kind == RouteStepKind::kZeroPad) {
    for (int64_t axis = 0; axis < source.num_axes(); ++axis) {
      const bool is_copy = is_new_partial(step, axis) && step.from.nd_sbp[axis].is_broadcast();
      if (is_copy && base[axis] != 0) return {};
    }
    const Box own = box_of(shape, source, step.from.nd_sbp, target_position);
    if (own.size.numel() > 0) regions.push_back({own, {target_position}});
    return regions;
  }
  for (int64_t axis = 0; axis < step.to.nd_sbp.size(); ++axis) {
    const bool is_addend = is_new_partial(step, axis);
    if (is_addend && step.to.placement.coordinate(target_position, axis) != 0) return {};
  }
  for_each_coordinate(
      step, base, [](Sbp entry) { return entry.is_split(); }, add);
  return regions;
}

ReduceOp neutral_op(const RouteStep& step, int64_t target_position) {
  ReduceOp op = ReduceOp::kSum;
  bool adds_nothing = false;  // to the reduction over an outer axis
  for (int64_t axis = 0; axis < step.to.nd_sbp.size(); ++axis) {
    const Sbp entry = step.to.nd_sbp[axis];
    if (!entry.is_partial()) continue;
    const bool is_first = step.to.placement.coordinate(target_position, axis) == 0;
    const bool is_new = is_new_partial(step, axis);
    // The innermost reduction to which this rank contributes nothing is applied first. Of the ranks
    // that reduce over an inner axis, the first gives the outer reduction's neutral value.
    if (is_new ? step.kind == RouteStepKind::kZeroPad || !is_first : adds_nothing && !is_first) {
      op = reduce_op_of(entry);
      adds_nothing = true;
    }
  }
  return op;
}

ReduceOp source_op(const RouteStep& step) {
  if (step.is_mean) return ReduceOp::kMean;
  for (int64_t axis = 0; axis < step.from.nd_sbp.size(); ++axis) {
    const Sbp entry = step.from.nd_sbp[axis];
    if (entry.is_partial() && is_free(step, axis)) return reduce_op_of(entry);
  }
  return ReduceOp::kSum;
}

bool adds_up(const RouteStep& step) {
  const ReduceOp op = source_op(step);
  return op == ReduceOp::kSum || op == ReduceOp::kMean;
}

std::vector<int64_t> group_of(const RouteStep& step, int64_t rank) {
  const Placement& source = step.from.placement;
  const Placement& target = step.to.placement;
  if (step.kind == RouteStepKind::kSlice || step.kind == RouteStepKind::kZeroPad) {
    return target.contains(rank) ? std::vector<int64_t>{rank} : std::vector<int64_t>();
  }
  if (source == target) {
    const int64_t position = source.position(rank);
    std::vector<int64_t> group;
    if (position < 0) return group;
    for (int64_t other = 0; other < source.num_ranks(); ++other) {
      bool is_member = true;
      for (int64_t axis = 0; axis < source.num_axes(); ++axis) {
        is_member &= (step.axes >> axis & 1U) != 0 ||
                     source.coordinate(other, axis) == source.coordinate(position, axis);
      }
      if (is_member) group.push_back(source.ranks()[static_cast<size_t>(other)]);
    }
    return group;
  }
  if (!source.contains(rank) && !target.contains(rank)) return {};
  std::vector<int64_t> group = source.ranks();
  group.insert(group.end(), target.ranks().begin(), target.ranks().end());
  std::sort(group.begin(), group.end());
  group.erase(std::unique(group.begin(), group.end()), group.end());
  return group;
}

}  // namespace flow::boxing
