#include "graph/program/draws.h"

#include <numeric>

#include "core/error.h"

namespace flow::graph {

namespace {

// The part with this index of `parts` balanced parts into which time divides a rank's shard.
struct TimeShard {
  int64_t parts = 1;
  int64_t index = 0;
};

// The meta of the elements of `value` that rank `rank` has and, of those, the shard in time has.
MetaPtr timed_meta(const Value& value, int64_t rank, int64_t dim, const TimeShard& shard) {
  std::vector<int64_t> ranks(1, rank);
  Shape arrangement{1};
  NdSbp nd_sbp = sbp::broadcast;
  if (value.placement.defined()) {
    ranks = value.placement.ranks();
    arrangement = value.placement.shape();
    nd_sbp = value.nd_sbp;
  }
  if (nd_sbp.size() == NdSbp::kMaxAxes) {
    throw Unsupported(str("[micro-batch] random values are not supported on a placement of ",
                          nd_sbp.size(), " axes; use one axis less"));
  }
  std::vector<int64_t> in_time;
  for (const int64_t of_space : ranks) {
    for (int64_t t = 0; t < shard.parts; ++t)
      in_time.push_back(of_space * shard.parts + t);
  }
  arrangement.push_back(shard.parts);
  nd_sbp.push_back(sbp::split(dim));
  return global_meta(value.shape, value.dtype, Placement(value.device, arrangement, in_time),
                     nd_sbp, rank * shard.parts + shard.index);
}

// The pieces of a micro-batch, cut so that each is one of equal parts of a shard of `held`
// elements.
std::vector<Piece> even_pieces(const std::vector<Piece>& pieces, int64_t held) {
  std::vector<Piece> even;
  for (const Piece& piece : pieces) {
    const int64_t size = std::gcd(std::gcd(held, piece.in_whole), piece.size);
    for (int64_t at = 0; at < piece.size; at += size)
      even.push_back({piece.in_whole + at, piece.in_part + at, size});
  }
  return even;
}

}  // namespace

std::vector<BufferId> add_draws(ProgramBuilder& builder, PartBuffers& buffers, const Node& node,
                                const std::vector<Sbp>& input_sbp,
                                const std::vector<BufferId>& inputs, int64_t m) {
  const ValueId first = node.outputs[0];
  const Sbp& cut = buffers.sbp_of(first);
  const int64_t held = buffers.whole_meta(first)->local_shape[cut.dim()];
  const std::vector<Piece> pieces = even_pieces(buffers.pieces(first, cut, m), held);
  std::vector<BufferId> results(node.outputs.size(), kNoBuffer);
  for (const Piece& piece : pieces) {
    const TimeShard shard{held / piece.size, piece.in_whole / piece.size};
    const auto meta_of = [&](ValueId id, const Sbp& sbp) {
      return timed_meta(buffers.value(id), buffers.rank(), sbp.dim(), shard);
    };
    std::vector<BufferId> parts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Sbp& sbp = input_sbp[i];
      parts.push_back(sbp.is_split() ? buffers.rows(inputs[i], meta_of(node.inputs[i], sbp),
                                                    sbp.dim(), piece.in_part)
                                     : inputs[i]);
    }
    std::vector<MetaPtr> metas;
    for (const ValueId id : node.outputs)
      metas.push_back(meta_of(id, buffers.sbp_of(id)));
    const bool draws_globally = buffers.value(first).placement.defined();
    const std::vector<BufferId> drawn = builder.add_node(node, parts, metas, draws_globally);
    for (size_t i = 0; i < drawn.size(); ++i) {
      const MetaPtr whole = buffers.part_meta(node.outputs[i], m);
      if (pieces.size() == 1) {
        results[i] = builder.add_view(drawn[i], whole, 0);
        continue;
      }
      if (results[i] == kNoBuffer) results[i] = builder.add_buffer(whole);
      const MetaPtr plain = local_part(metas[i]);
      const int64_t dim = buffers.sbp_of(node.outputs[i]).dim();
      builder.add_copy(drawn[i], buffers.rows(results[i], plain, dim, piece.in_part));
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] != kNoBuffer) continue;  // no elements
    results[i] = builder.add_buffer(buffers.part_meta(node.outputs[i], m));
  }
  return results;
}

}  // namespace flow::graph
