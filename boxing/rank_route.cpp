// Boxes of the logical tensor become strided copies.
#include "boxing/rank_route.h"

#include <algorithm>

#include "core/error.h"

namespace flow::boxing {

namespace {

int64_t offset_in(const Box& part, const Box& box) {
  const Strides strides = contiguous_strides(part.size);
  int64_t offset = 0;
  for (int64_t dim = 0; dim < box.size.size(); ++dim)
    offset += (box.begin[dim] - part.begin[dim]) * strides[dim];
  return offset;
}

// The copy of `box` from one row-major part to another. Dims that are contiguous on both sides are
// merged, and dims of size 1 are dropped.
BoxCopy make_copy(const Box& source, const Box& target, const Box& box) {
  BoxCopy copy{.source_offset = offset_in(source, box),
               .target_offset = offset_in(target, box),
               .extents = {},
               .source_strides = {},
               .target_strides = {},
               .members = {}};
  const Strides from = contiguous_strides(source.size);
  const Strides to = contiguous_strides(target.size);
  for (int64_t dim = 0; dim < box.size.size(); ++dim) {
    const int64_t size = box.size[dim];
    if (size == 1) continue;
    const int64_t last = copy.extents.size() - 1;
    if (last >= 0 && copy.source_strides[last] == from[dim] * size &&
        copy.target_strides[last] == to[dim] * size) {
      copy.extents[last] *= size;
      copy.source_strides[last] = from[dim];
      copy.target_strides[last] = to[dim];
      continue;
    }
    copy.extents.push_back(size);
    copy.source_strides.push_back(from[dim]);
    copy.target_strides.push_back(to[dim]);
  }
  const int64_t last = copy.extents.size() - 1;
  if (last < 0 || copy.source_strides[last] != 1 || copy.target_strides[last] != 1) {
    copy.extents.push_back(1);
    copy.source_strides.push_back(1);
    copy.target_strides.push_back(1);
  }
  return copy;
}

struct Geometry {
  const Route& route;
  const RouteStep& step;

  Box source_part(int64_t position) const {
    return box_of(route.shape, step.from.placement, step.from.nd_sbp, position);
  }

  Box target_part(int64_t position) const {
    return box_of(route.shape, step.to.placement, step.to.nd_sbp, position);
  }

  int64_t source_rank(int64_t position) const {
    return step.from.placement.ranks()[static_cast<size_t>(position)];
  }
};

int64_t member_of(const std::vector<int64_t>& group, int64_t rank) {
  const auto found = std::find(group.begin(), group.end(), rank);
  FLOW_ASSERT(found != group.end(), "rank ", rank, " is outside the group of its step");
  return found - group.begin();
}

// Adds the boxes that `rank` reads.
void add_copies(const Geometry& geometry, int64_t rank, RankStep& result) {
  const RouteStep& step = geometry.step;
  const int64_t position = step.to.placement.position(rank);
  if (position < 0) return;
  const Box target = geometry.target_part(position);
  result.target_count = target.size.numel();
  if (step.kind == RouteStepKind::kAllReduce) return;
  int64_t covered = 0;
  for (const Region& region : regions_of(geometry.route.shape, step, position)) {
    BoxCopy copy = make_copy(geometry.source_part(region.sources[0]), target, region.box);
    for (const int64_t source : region.sources)
      copy.members.push_back(member_of(result.group, geometry.source_rank(source)));
    result.copies.push_back(std::move(copy));
    covered += region.box.size.numel();
  }
  result.fills = covered < result.target_count;
  if (result.fills) result.fill_op = neutral_op(step, position);
}

// For members without shared memory. The packed data from one member to another is the sequence of
// boxes that the receiver reads from the sender, each row-major, in the order of the receiver's
// regions.
void add_messages(const Geometry& geometry, int64_t rank, int64_t element_bytes, RankStep& result) {
  const RouteStep& step = geometry.step;
  const size_t members = result.group.size();
  result.packed.resize(members);
  result.send_bytes.assign(members, 0);
  result.recv_bytes.assign(members, 0);
  for (size_t member = 0; member < members; ++member) {
    const int64_t reader = result.group[member];
    const int64_t position = step.to.placement.position(reader);
    if (position < 0) continue;
    const Box target = geometry.target_part(position);
    for (const Region& region : regions_of(geometry.route.shape, step, position)) {
      const int64_t bytes = region.box.size.numel() * element_bytes;
      for (const int64_t source : region.sources) {
        if (geometry.source_rank(source) != rank) continue;
        BoxCopy pack = make_copy(geometry.source_part(source), region.box, region.box);
        pack.target_offset = result.send_bytes[member] / element_bytes;
        result.packed[member].push_back(std::move(pack));
        result.send_bytes[member] += bytes;
      }
      if (reader != rank) continue;
      BoxCopy unpack = make_copy(region.box, target, region.box);
      std::vector<int64_t> offsets;
      for (const int64_t source : region.sources) {
        const int64_t from = member_of(result.group, geometry.source_rank(source));
        unpack.members.push_back(from);
        offsets.push_back(result.recv_bytes[static_cast<size_t>(from)] / element_bytes);
        result.recv_bytes[static_cast<size_t>(from)] += bytes;
      }
      result.unpacked.push_back(std::move(unpack));
      result.offsets.push_back(std::move(offsets));
    }
  }
}

// Up to this size one message per member is faster than several pieces.
constexpr int64_t kWholeBytes = 64 << 10;

bool reduces(const RouteStep& step) {
  const NdSbp& sbp = step.from.nd_sbp;
  return std::any_of(sbp.begin(), sbp.end(), [](Sbp entry) { return entry.is_partial(); });
}

// True if the parts, one after another, are the row-major `whole`.
bool are_consecutive(const std::vector<Box>& parts, const Box& whole) {
  int64_t next = 0;
  for (const Box& part : parts) {
    if (part.size.numel() == 0) continue;
    const BoxCopy copy = make_copy(part, whole, part);
    if (copy.extents.size() != 1 || copy.target_offset != next) return false;
    next += part.size.numel();
  }
  return next == whole.size.numel();
}

bool are_alike(const std::vector<Box>& boxes) {
  return std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) {
    return box.begin == boxes[0].begin && box.size == boxes[0].size;
  });
}

// Depends only on data that all members know, so that they agree.
void choose_carrier(const Geometry& geometry, RankStep& result) {
  const RouteStep& step = geometry.step;
  if (step.kind != RouteStepKind::kAllGather && step.kind != RouteStepKind::kReduceScatter) return;
  std::vector<Box> sources;
  std::vector<Box> targets;
  int64_t last = -1;
  for (const int64_t rank : result.group) {
    const int64_t position = step.from.placement.position(rank);
    if (position <= last || step.to.placement.position(rank) != position) return;
    last = position;
    sources.push_back(geometry.source_part(position));
    targets.push_back(geometry.target_part(position));
  }
  const bool gathers = step.kind == RouteStepKind::kAllGather;
  const std::vector<Box>& parts = gathers ? sources : targets;
  const std::vector<Box>& wholes = gathers ? targets : sources;
  if (!are_alike(wholes) || !are_consecutive(parts, wholes[0])) return;
  result.carrier = gathers ? Carrier::kAllGather : Carrier::kReduceScatter;
  for (const Box& part : parts)
    result.part_counts.push_back(part.size.numel());
}

}  // namespace

RankRoute make_rank_route(const Route& route, int64_t rank) {
  RankRoute result{.route = route, .steps = {}};
  const int64_t at = route.to.placement.position(rank);
  if (at >= 0) {
    result.count = box_of(route.shape, route.to.placement, route.to.nd_sbp, at).size.numel();
    result.copies_all = route.steps.empty();
  }
  for (const RouteStep& step : route.steps) {
    const Geometry geometry{route, step};
    RankStep own;
    own.kind = step.kind;
    own.group = group_of(step, rank);
    own.source_op = source_op(step);
    const int64_t source = step.from.placement.position(rank);
    if (source >= 0) own.source_count = geometry.source_part(source).size.numel();
    if (!own.group.empty()) add_copies(geometry, rank, own);
    if (own.group.size() > 1 && step.kind != RouteStepKind::kAllReduce) {
      choose_carrier(geometry, own);
      if (own.carrier == Carrier::kPackedBoxes) {
        const auto element_bytes = static_cast<int64_t>(dtype_size(route.dtype));
        add_messages(geometry, rank, element_bytes, own);
        own.is_streamed = !reduces(step) && route.shape.numel() * element_bytes > kWholeBytes;
      }
    }
    result.steps.push_back(std::move(own));
  }
  return result;
}

bool packs_messages(const RankStep& step) {
  return step.group.size() > 1 && step.kind != RouteStepKind::kAllReduce &&
         step.carrier == Carrier::kPackedBoxes && !step.is_streamed;
}

}  // namespace flow::boxing
