// Layout: the placement and nd-SBP of a global tensor, and functions on layouts.
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

// A placement with one axis that holds all ranks of the world.
Placement all_ranks(DeviceType device);

// Prints as "S(0) on cpu:(0, 1)".
std::ostream& operator<<(std::ostream& out, const Layout& layout);

// True if no rank's part changes, whatever the logical shape is: the placement is the same, and
// entries differ only along axes of one rank.
bool same_parts(const Layout& from, const Layout& to);

// True if several ranks hold the same part, which means that a broadcast axis has more than one
// rank.
bool has_replicas(const Layout& layout);

// Replaces every partial entry. With broadcast as the replacement, the result is the layout of the
// gradient of a tensor laid out as `nd_sbp`.
NdSbp without_partial(NdSbp nd_sbp, Sbp replacement = sbp::broadcast);

// The layout on x's placement to which a gradient in the layout `gradient` is redistributed when it
// reaches a tensor in the layout `x`. Split axes of x are split in the same way. Partial axes
// become broadcast, because each addend has the gradient of the sum. A broadcast axis keeps the
// gradient's entry.
NdSbp gradient_sbp(const Layout& x, const Layout& gradient);

// The indices that are in both boxes; if there are none, some dim has size 0.
Box intersection(const Box& a, const Box& b);

// Throws InvalidArgument unless the entries match the placement's axes and the dims of `shape`, and
// all ranks exist in a world of `world_size` ranks.
void check_layout(const Layout& layout, const Shape& shape, int64_t world_size, const char* op);

}  // namespace flow::boxing
