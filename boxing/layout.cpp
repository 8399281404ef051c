#include "boxing/layout.h"

#include <algorithm>
#include <numeric>
#include <ostream>

#include "core/context.h"
#include "core/error.h"

namespace flow::boxing {

Placement all_ranks(DeviceType device) {
  std::vector<int64_t> ranks(static_cast<size_t>(thread_state().context->world_size()));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  const Shape shape{static_cast<int64_t>(ranks.size())};
  return {device, shape, ranks};
}

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << layout.nd_sbp << " on " << layout.placement;
}

bool same_parts(const Layout& from, const Layout& to) {
  if (from.placement != to.placement) return false;
  for (int64_t axis = 0; axis < from.nd_sbp.size(); ++axis) {
    if (from.placement.shape()[axis] != 1 && from.nd_sbp[axis] != to.nd_sbp[axis]) return false;
  }
  return true;
}

bool has_replicas(const Layout& layout) {
  for (int64_t axis = 0; axis < layout.nd_sbp.size(); ++axis) {
    if (layout.nd_sbp[axis].is_broadcast() && layout.placement.shape()[axis] > 1) return true;
  }
  return false;
}

NdSbp without_partial(NdSbp nd_sbp, Sbp replacement) {
  for (int64_t axis = 0; axis < nd_sbp.size(); ++axis) {
    if (nd_sbp[axis].is_partial()) nd_sbp = nd_sbp.with(axis, replacement);
  }
  return nd_sbp;
}

NdSbp gradient_sbp(const Layout& x, const Layout& gradient) {
  NdSbp result;
  const bool same_axes = x.placement.shape() == gradient.placement.shape();
  for (int64_t axis = 0; axis < x.nd_sbp.size(); ++axis) {
    const Sbp own = x.nd_sbp[axis];
    Sbp entry = own.is_partial() ? sbp::broadcast : own;
    if (own.is_broadcast() && same_axes) {
      const Sbp comes = gradient.nd_sbp[axis];
      // A partial value stays partial only on its own placement: moving n addends costs n times as
      // much.
      if (!comes.is_partial() || x.placement == gradient.placement) entry = comes;
    }
    result.push_back(entry);
  }
  return result;
}

Box intersection(const Box& a, const Box& b) {
  Box both = a;
  for (int64_t dim = 0; dim < a.size.size(); ++dim) {
    both.begin[dim] = std::max(a.begin[dim], b.begin[dim]);
    const int64_t end = std::min(a.begin[dim] + a.size[dim], b.begin[dim] + b.size[dim]);
    both.size[dim] = std::max<int64_t>(0, end - both.begin[dim]);
  }
  return both;
}

void check_layout(const Layout& layout, const Shape& shape, int64_t world_size, const char* op) {
  const auto& ranks = layout.placement.ranks();
  const int64_t last = *std::max_element(ranks.begin(), ranks.end());
  if (last >= world_size) {
    throw InvalidArgument(str("[", op, "] placement ", layout.placement, " names rank ", last,
                              ", but there ",
                              world_size == 1 ? "is 1 rank" : str("are ", world_size, " ranks"),
                              "; start more: flowrun -n ", static_cast<uint64_t>(last) + 1,
                              " PROGRAM, or flow::run_ranks"));
  }
  if (layout.nd_sbp.size() != layout.placement.num_axes()) {
    throw InvalidArgument(str("[", op, "] sbp ", layout.nd_sbp, " has ", layout.nd_sbp.size(),
                              " entries but placement ", layout.placement, " has ",
                              layout.placement.num_axes(), " axes; give one entry per axis"));
  }
  for (const Sbp& entry : layout.nd_sbp) {
    if (entry.is_split() && entry.dim() >= shape.size()) {
      throw InvalidArgument(str("[", op, "] sbp ", layout.nd_sbp, " splits dim ", entry.dim(),
                                " of a tensor of shape ", shape, "; split one of its dims"));
    }
  }
}

}  // namespace flow::boxing
