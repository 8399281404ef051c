#include "graph/program/program_classes.h"

#include <algorithm>

#include "boxing/redistribute_op.h"

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
  return a.base == b.base && a.offset == b.offset && a.begins == b.begins &&
         a.external == b.external && a.arena_offset == b.arena_offset && a.frame == b.frame &&
         a.is_per_micro_batch == b.is_per_micro_batch && a.holders == b.holders &&
         local_meta_on(a.meta, rank) == b.meta;
}

bool is_same(const OpCall& a, const OpCall& b) {
  return a.op == b.op &&
         (a.op->attrs == nullptr || a.op->attrs->equal(a.raw_attrs(), b.raw_attrs(), true));
}

bool is_same(const KernelStep& a, const KernelStep& b) {
  return is_same(a.op_call, b.op_call) && a.on_parts == b.on_parts && a.draw == b.draw &&
         a.draws_globally == b.draws_globally;
}

// The route follows from the op and the buffers.
bool is_same(const CollectiveStep& a, const CollectiveStep& b) {
  return is_same(a.op_call, b.op_call);
}

bool is_same(const BucketStep& a, const BucketStep& b) {
  return *a.route == *b.route;
}

bool is_same(const ConvertStep&, const ConvertStep&) {
  return true;
}

bool is_same(const SendStep& a, const SendStep& b) {
  return a.peer == b.peer && a.tag == b.tag;
}

bool is_same(const ReceiveStep& a, const ReceiveStep& b) {
  return a.peer == b.peer && a.tag == b.tag;
}

bool is_same(const WaitStep& a, const WaitStep& b) {
  return a.started == b.started;
}

bool same_program_up_to_rank(const Step& a, const Step& b) {
  const auto has_same_body = [&]<class Body>(const Body& body) {
    const Body* other = b.as<Body>();
    return other != nullptr && is_same(body, *other);
  };
  return a.inputs == b.inputs && a.outputs == b.outputs && a.guard == b.guard && a.turn == b.turn &&
         a.in_background == b.in_background && a.line == b.line && a.file == b.file &&
         a.module == b.module && a.phase == b.phase && std::visit(has_same_body, a.body);
}

}  // namespace

bool same_program_up_to_rank(const Program& a, const Program& b) {
  return a.arena_bytes == b.arena_bytes && a.num_draws == b.num_draws &&
         a.externals == b.externals && a.blocks == b.blocks && a.runs == b.runs &&
         a.tables == b.tables && a.frames == b.frames && a.parts == b.parts &&
         a.buffers.size() == b.buffers.size() && a.steps.size() == b.steps.size() &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(),
                    [](const Step& x, const Step& y) { return same_program_up_to_rank(x, y); }) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(),
                    [&](const Buffer& x, const Buffer& y) {
                      return same_program_up_to_rank(x, y, b.rank);
                    });
}

bool may_run(const Program& program, const Graph& graph) {
  const auto is_part = [&](ValueId local, ValueId global) {
    return graph.value(local).shape == graph.value(global).meta_on(program.rank)->local_shape;
  };
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.op == &boxing::kToLocal) return is_part(node.outputs[0], node.inputs[0]);
    if (node.op != &boxing::kLocalToGlobal && node.op != &boxing::kCandidatesToGlobal) return true;
    // What a rank outside the placement gives is ignored.
    const ValueId global = node.outputs[0];
    return !graph.value(global).meta_on(program.rank)->is_held || is_part(node.inputs[0], global);
  });
}

}  // namespace flow::graph
