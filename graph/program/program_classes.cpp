// Classes of ranks with the same program.
#include <algorithm>

#include "graph/program/program.h"

namespace flow::graph {

MetaPtr local_meta_on(MetaPtr meta, int64_t rank) {
  if (!meta->is_global()) return meta;
  const MetaPtr own = global_meta(meta->shape, meta->dtype, meta->placement, meta->nd_sbp, rank);
  if (own->is_held != meta->is_held || !(own->local_shape == meta->local_shape)) return nullptr;
  return meta->blocked != nullptr ? with_blocked(own, meta->blocked)
                                  : with_strides(own, meta->strides);
}

namespace {

bool same_program_up_to_rank(const Buffer& a, const Buffer& b, int64_t rank) {
  return a.base == b.base && a.offset == b.offset && a.external == b.external &&
         a.arena_offset == b.arena_offset && local_meta_on(a.meta, rank) == b.meta;
}

bool same_program_up_to_rank(const Step& a, const Step& b) {
  const bool has_attrs = a.op != nullptr && a.op->attrs != nullptr;
  return a.kind == b.kind && a.inputs == b.inputs && a.outputs == b.outputs && a.op == b.op &&
         a.guard == b.guard && a.draw == b.draw && a.draws_globally == b.draws_globally &&
         a.on_parts == b.on_parts && a.peer == b.peer && a.tag == b.tag && a.line == b.line &&
         a.file == b.file && (!has_attrs || a.op->attrs->equal(a.raw_attrs(), b.raw_attrs(), true));
}

}  // namespace

bool same_program_up_to_rank(const Program& a, const Program& b) {
  return a.arena_bytes == b.arena_bytes && a.num_draws == b.num_draws &&
         a.externals == b.externals && a.parts == b.parts && a.buffers.size() == b.buffers.size() &&
         a.steps.size() == b.steps.size() &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(),
                    [](const Step& x, const Step& y) { return same_program_up_to_rank(x, y); }) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(),
                    [&](const Buffer& x, const Buffer& y) {
                      return same_program_up_to_rank(x, y, b.rank);
                    });
}

}  // namespace flow::graph
