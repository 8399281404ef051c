#include "graph/program/part_buffers.h"

#include "core/error.h"

namespace flow::graph {

PartBuffers::PartBuffers(const Graph& graph, const MicroBatchCut& cut, ProgramBuilder& builder,
                         int64_t rank)
    : graph_(graph),
      cut_(cut),
      builder_(builder),
      rank_(rank),
      whole_metas_(graph.values.size()),
      whole_(graph.values.size(), kNoBuffer),
      parts_(graph.values.size() * static_cast<size_t>(cut.num_micro_batches), kNoBuffer) {
  for (ValueId id = 0; whole_metas_.contains(id); ++id)
    whole_metas_[id] = graph.value(id).meta_on(rank);
}

BufferId& PartBuffers::part(ValueId id, int64_t m) {
  return parts_[static_cast<size_t>(id * cut_.num_micro_batches + m)];
}

Value PartBuffers::part_value(ValueId id, int64_t m) const {
  return value_in(graph_, cut_, id, m);
}

MetaPtr PartBuffers::part_meta(ValueId id, int64_t m) const {
  return cut_.sbp_of(id).is_split() ? part_value(id, m).meta_on(rank_) : whole_meta(id);
}

BufferId PartBuffers::whole_input(ValueId id) {
  if (id == kNoValue) return kNoBuffer;
  // With one micro-batch, its part is the whole value.
  if (cut_.is_per_micro_batch_of(id) && part(id, 0) != kNoBuffer) return part(id, 0);
  if (whole(id) == kNoBuffer) {
    FLOW_ASSERT(!is_held(id), "value %", id, " is used as a whole before it is made");
    whole(id) = builder_.add_buffer(whole_meta(id));
  }
  return whole(id);
}

std::vector<Piece> PartBuffers::pieces(ValueId id, const Sbp& sbp, int64_t m) const {
  const Value& value = graph_.value(id);
  const TensorMeta& part = *part_of(cut_.batch, value, sbp.dim(), m).meta_on(rank_);
  const TensorMeta& whole = *whole_meta(id);
  std::vector<Piece> found = pieces_of(cut_.batch, whole, part, sbp.dim(), m);
  if (found.empty() && part.local_shape[sbp.dim()] > 0) {
    throw Unsupported(str("[micro-batch] a batch of ", whole,
                          " cannot be divided into micro-batches without moving data, because "
                          "other inputs have other samples on this rank; give all inputs one "
                          "layout"));
  }
  return found;
}

BufferId PartBuffers::part_input(ValueId id, const Sbp& sbp, int64_t m) {
  if (id == kNoValue) return kNoBuffer;
  const bool is_split = cut_.sbp_of(id).is_split();
  if (!sbp.is_split()) {
    const bool has_parts =
        cut_.sbp_of(id).is_partial() || cut_.is_per_micro_batch_of(id) || cut_.is_made_each[id];
    return has_parts ? part(id, m) : whole_input(id);
  }
  BufferId& known =
      is_split ? part(id, m) : taken_.try_emplace({id, sbp.dim(), m}, kNoBuffer).first->second;
  if (known != kNoBuffer) return known;
  const MetaPtr meta = part_of(cut_.batch, graph_.value(id), sbp.dim(), m).meta_on(rank_);
  if (!meta->is_held) return known = builder_.add_buffer(meta);
  const BufferId source = cut_.is_made_each[id] ? part(id, m) : whole(id);
  FLOW_ASSERT(source != kNoBuffer, "value %", id, " is used before it is made");
  const std::vector<Piece> all = pieces(id, sbp, m);
  if (all.size() <= 1) {
    return known = rows(source, meta, sbp.dim(), all.empty() ? 0 : all[0].in_whole);
  }
  known = builder_.add_buffer(meta);
  for (const Piece& piece : all) {
    Shape shape = meta->local_shape;
    shape[sbp.dim()] = piece.size;
    const MetaPtr plain = local_meta(shape, meta->dtype, meta->device);
    builder_.add_copy(rows(source, plain, sbp.dim(), piece.in_whole),
                      rows(known, plain, sbp.dim(), piece.in_part));
  }
  return known;
}

void PartBuffers::add_to_sum(ValueId id, BufferId addend, bool may_keep) {
  if (whole(id) != kNoBuffer) {
    builder_.add_sum(addend, whole(id));
    return;
  }
  const Buffer& buffer = builder_.buffer(addend);
  const bool is_per_micro_batch = buffer.base == kNoBuffer && buffer.external < 0 &&
                                  buffer.meta->blocked == nullptr && buffer.meta->is_contiguous;
  if (may_keep && is_per_micro_batch) {
    whole(id) = addend;
    return;
  }
  whole(id) = builder_.add_buffer(whole_meta(id));
  builder_.add_copy(addend, whole(id));
}

void PartBuffers::collect(ValueId id, BufferId target) {
  const Sbp& sbp = cut_.sbp_of(id);
  for (int64_t m = 0; m < cut_.num_micro_batches; ++m) {
    const BufferId source = part_input(id, sbp, m);
    for (const Piece& piece : pieces(id, sbp, m)) {
      const MetaPtr meta = builder_.buffer(source).meta;
      Shape shape = meta->local_shape;
      shape[sbp.dim()] = piece.size;
      const MetaPtr plain = local_meta(shape, meta->dtype, meta->device);
      builder_.add_copy(rows(source, plain, sbp.dim(), piece.in_part),
                        rows(target, plain, sbp.dim(), piece.in_whole));
    }
  }
}

BufferId PartBuffers::rows(BufferId base, MetaPtr meta, int64_t dim, int64_t begin) {
  const BufferId plain = builder_.strided(base);
  const Strides& strides = builder_.buffer(plain).meta->strides;
  return builder_.add_view(plain, with_strides(meta, strides), begin * strides[dim]);
}

BufferId PartBuffers::box(BufferId base, const Box& box) {
  const BufferId plain = builder_.strided(base);
  const MetaPtr meta = builder_.buffer(plain).meta;
  if (box.size == meta->local_shape) return plain;
  int64_t offset = 0;
  for (int64_t d = 0; d < box.begin.size(); ++d)
    offset += (box.begin[d] - meta->local_begin[d]) * meta->strides[d];
  const MetaPtr part = local_meta(box.size, meta->dtype, meta->device);
  return builder_.add_view(plain, with_strides(part, meta->strides), offset);
}

}  // namespace flow::graph
