#include "eager/explain.h"

#include <sstream>

#include "autograd/node.h"
#include "boxing/layout.h"
#include "boxing/planner.h"
#include "boxing/report.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/error.h"

namespace flow {

namespace {

void write_parts(std::ostream& out, const TensorMeta& meta) {
  for (int64_t position = 0; position < meta.placement.num_ranks(); ++position) {
    const Box box = box_of(meta.shape, meta.placement, meta.nd_sbp, position);
    out << "\n  rank " << meta.placement.ranks()[static_cast<size_t>(position)] << ": [";
    for (int64_t dim = 0; dim < box.size.size(); ++dim) {
      if (dim > 0) out << ", ";
      out << box.begin[dim] << ':' << box.begin[dim] + box.size[dim];
    }
    out << "], " << static_cast<size_t>(box.size.numel()) * dtype_size(meta.dtype) << " bytes";
  }
}

void write_history(std::ostream& out, const autograd::Node& node) {
  const Site site = node.scope().user_site();
  out << "\nmade by " << node.describe();
  bool has_moved = false;
  for (const BoxingEntry& entry : boxing_report().entries) {
    if (entry.site.file() != site.file() || entry.site.line() != site.line()) continue;
    out << (has_moved ? "" : "; moved there:\n") << entry;
    has_moved = true;
  }
  if (!has_moved) out << "; nothing was moved there\n";
}

}  // namespace

std::string explain(const TensorArg& x) {
  const TensorMeta& meta = x->meta();
  std::ostringstream out;
  out << meta.dtype << ' ' << meta.shape;
  if (meta.is_global()) {
    out << ", " << meta.nd_sbp << " on " << meta.placement;
    write_parts(out, meta);
  } else {
    out << ", local on rank " << env::rank();
  }
  const auto* node = dynamic_cast<const autograd::Node*>(x->impl().grad_fn.get());
  if (node != nullptr) {
    write_history(out, *node);
  } else {
    out << "\nno op was recorded for it\n";
  }
  return out.str();
}

std::string explain(const TensorArg& x, const ToGlobalOptions& to) {
  const TensorMeta& meta = x->meta();
  if (!meta.is_global()) {
    throw InvalidArgument(str("[explain] a local tensor has no parts on other ranks; received ",
                              meta, "; call to_global first"),
                          x.site());
  }
  const boxing::Layout from{meta.placement, meta.nd_sbp};
  const boxing::Layout target{to.placement.defined() ? to.placement : meta.placement,
                              to.sbp.empty() ? meta.nd_sbp : to.sbp};
  boxing::check_layout(target, meta.shape, env::world_size(), "explain");
  return str(boxing::describe(x.site(), boxing::find_route(meta.shape, meta.dtype, from, target)));
}

}  // namespace flow
