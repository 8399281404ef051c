// Layout: where a global tensor lies (placement and nd-SBP), and facts about layouts.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "core/placement.h"
#include "core/sbp.h"
#include "core/shape.h"
#include "core/tensor_meta.h"

namespace flow::boxing {

struct Layout {
  Placement placement;
  NdSbp nd_sbp;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// A placement of one axis on all ranks of the world.
Placement all_ranks(DeviceType device);

// "S(0) on cpu:(0, 1)".
std::ostream& operator<<(std::ostream& out, const Layout& layout);

// True when no rank's part changes, whatever the logical shape: same placement, and entries differ
// only along axes of one rank.
bool same_parts(const Layout& from, const Layout& to);

// True when several ranks hold the same part: a broadcast axis of more than one rank.
bool has_replicas(const Layout& layout);

// `nd_sbp` with every partial entry replaced. With broadcast: how the gradient of a tensor lies.
NdSbp without_partial(NdSbp nd_sbp, Sbp replacement = sbp::broadcast);

// The layout, on x's placement, that a gradient lying as `gradient` is brought to when it reaches a
// tensor lying as `x`: split axes are split alike, partial ones broadcast (the gradient of an
// addend is that of the sum); a broadcast axis takes the gradient as it comes.
NdSbp gradient_sbp(const Layout& x, const Layout& gradient);

// What both boxes hold; where it is empty, some dim's size is 0.
Box intersection(const Box& a, const Box& b);

// Throws InvalidArgument unless the entries fit the placement's axes and the dims of `shape`, and
// all ranks exist in a world of `world_size`.
void check_layout(const Layout& layout, const Shape& shape, int64_t world_size, const char* op);

}  // namespace flow::boxing
