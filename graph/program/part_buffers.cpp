#include "graph/program/part_buffers.h"

#include <cstring>

#include "boxing/redistribute_op.h"
#include "core/error.h"

namespace flow::graph {

PartBuffers::PartBuffers(const Graph& graph, const Order& order, ProgramBuilder& builder,
                         int64_t rank)
    : graph_(graph),
      order_(order),
      cut_(order.cut),
      builder_(builder),
      rank_(rank),
      whole_metas_(graph.values.size()),
      whole_(graph.values.size(), kNoBuffer) {
  for (ValueId id = 0; whole_metas_.contains(id); ++id)
    whole_metas_[id] = graph.value(id).meta_on(rank);
  for (const int64_t m : cut_.sizes())
    parts_.try_emplace(m, graph.values.size(), kNoBuffer);
}

BufferId& PartBuffers::part(ValueId id, int64_t m) {
  return parts_.at(m)[id];
}

BufferId PartBuffers::add_shared(MetaPtr meta) {
  builder_.set_per_micro_batch(false);
  const BufferId buffer = builder_.add_buffer(meta);
  builder_.set_per_micro_batch(true);
  return buffer;
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
  const bool is_made_in_parts =
      cut_.is_per_micro_batch_of(id) ||
      (cut_.sbp_of(id).is_split() && cut_.num_micro_batches == 1 && whole(id) == kNoBuffer);
  if (is_made_in_parts && part(id, 0) != kNoBuffer) return part(id, 0);
  if (whole(id) == kNoBuffer) {
    FLOW_ASSERT(!is_held(id), "value %", id, " is used as a whole before it is made");
    whole(id) = builder_.add_buffer(whole_meta(id));  // without memory
  }
  return whole(id);
}

std::vector<Piece> PartBuffers::pieces(ValueId id, const Sbp& sbp, int64_t micro_batch) const {
  const Value& value = graph_.value(id);
  const TensorMeta& part = *part_of(cut_.batch, value, sbp.dim(), micro_batch).meta_on(rank_);
  const TensorMeta& whole = *whole_meta(id);
  std::vector<Piece> found = pieces_of(cut_.batch, whole, part, sbp.dim(), micro_batch);
  if (found.empty() && part.local_shape[sbp.dim()] > 0) {
    throw Unsupported(str("[micro-batch] a batch of ", whole,
                          " cannot be divided into micro-batches without moving data, because the "
                          "value that is sharded finest (an input, an output, or computed before "
                          "the first micro-batch) has other samples on this rank; give all of them "
                          "that are split one layout"));
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
  if (all.empty()) return known = rows(source, meta, sbp.dim(), 0);
  const auto begins = [&](size_t piece) {
    return by_micro_batch(m, [&](int64_t i) { return pieces(id, sbp, i)[piece].in_whole; });
  };
  if (all.size() == 1) return known = rows(source, meta, sbp.dim(), begins(0));
  known = builder_.add_buffer(meta);
  for (size_t i = 0; i < all.size(); ++i) {
    Shape shape = meta->local_shape;
    shape[sbp.dim()] = all[i].size;
    const MetaPtr plain = local_meta(shape, meta->dtype, meta->device);
    builder_.add_copy(rows(source, plain, sbp.dim(), begins(i)),
                      rows(known, plain, sbp.dim(), all[i].in_part));
  }
  return known;
}

void PartBuffers::add_to_sum(ValueId id, BufferId addend, bool may_keep) {
  if (cut_.num_micro_batches > 1) {
    if (whole(id) == kNoBuffer) whole(id) = add_shared(whole_meta(id));
    return builder_.add_to_sum(addend, whole(id));
  }
  const Buffer& buffer = builder_.buffer(addend);
  const bool is_alone = buffer.base == kNoBuffer && buffer.external < 0 &&
                        buffer.meta->blocked == nullptr && buffer.meta->is_contiguous;
  if (may_keep && is_alone) {
    whole(id) = addend;
    return;
  }
  whole(id) = builder_.add_buffer(whole_meta(id));
  builder_.add_copy(addend, whole(id));
}

void PartBuffers::collect(ValueId id, BufferId target, int64_t m) {
  const Sbp& sbp = cut_.sbp_of(id);
  const BufferId source = part_input(id, sbp, m);
  const std::vector<Piece> all = pieces(id, sbp, m);
  for (size_t i = 0; i < all.size(); ++i) {
    const MetaPtr meta = builder_.buffer(source).meta;
    Shape shape = meta->local_shape;
    shape[sbp.dim()] = all[i].size;
    const MetaPtr plain = local_meta(shape, meta->dtype, meta->device);
    const std::vector<int64_t> begins =
        by_micro_batch(m, [&](int64_t other) { return pieces(id, sbp, other)[i].in_whole; });
    builder_.add_copy(rows(source, plain, sbp.dim(), all[i].in_part),
                      rows(target, plain, sbp.dim(), begins));
  }
}

BufferId PartBuffers::rows(BufferId base, MetaPtr meta, int64_t dim, int64_t begin) {
  const BufferId plain = builder_.strided(base);
  const Strides& strides = builder_.buffer(plain).meta->strides;
  return builder_.add_view(plain, with_strides(meta, strides), begin * strides[dim]);
}

BufferId PartBuffers::rows(BufferId base, MetaPtr meta, int64_t dim,
                           const std::vector<int64_t>& begins) {
  const BufferId plain = builder_.strided(base);
  const Strides& strides = builder_.buffer(plain).meta->strides;
  std::vector<int64_t> elements = begins;
  for (int64_t& begin : elements)
    begin *= strides[dim];
  const TableId table = builder_.add_table(std::move(elements));
  return builder_.add_view(plain, with_strides(meta, strides), 0, table);
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

// ---- edges between blocks

void PartBuffers::send(size_t edge, int64_t m) {
  const BlockEdge& it = order_.edges[edge];
  const Node& node = node_of(edge);
  const ValueId source = node.inputs[0];
  if (!is_held(source)) return;
  BufferId buffer = part_input(source, cut_.sbp_of(source), m);
  const Value value = sent_value(graph_, cut_, it, m);
  if (!(value.nd_sbp == graph_.value(source).nd_sbp)) buffer = lay_out(node, buffer, value);
  builder_.complete({buffer});
  for (const Message& message : order_.messages(it, m)) {
    if (message.from != rank_) continue;
    const BufferId own = box(buffer, message.box);
    if (message.to == rank_) {
      place(edge, m, message.box, own);
    } else {
      sends_.push_back(
          {edge, m, builder_.add_send(builder_.contiguous(own), message.to, tag(edge), node)});
    }
  }
}

BufferId PartBuffers::lay_out(const Node& node, BufferId buffer, const Value& value) {
  const boxing::RedistributeAttrs attrs{.placement = value.placement, .nd_sbp = value.nd_sbp};
  Node redistribution = node;
  redistribution.attrs.resize(sizeof(attrs));
  std::memcpy(redistribution.attrs.data(), &attrs, sizeof(attrs));
  return builder_.add_node(redistribution, {buffer}, {value.meta_on(rank_)})[0];
}

void PartBuffers::place(size_t edge, int64_t m, const Box& part, BufferId source) {
  BufferId& target = arrived(edge, m);
  const MetaPtr meta = arrived_value(graph_, cut_, order_.edges[edge], m).meta_on(rank_);
  if (target == kNoBuffer && part.size == meta->local_shape) {
    const Strides& strides = builder_.buffer(source).meta->strides;
    target = builder_.add_view(source, with_strides(meta, strides), 0);
    return;
  }
  if (target == kNoBuffer) target = builder_.add_buffer(meta);
  builder_.add_copy(source, box(target, part));
}

BufferId& PartBuffers::arrived(size_t edge, int64_t m) {
  const ValueId id = node_of(edge).outputs[0];
  if (!graph_.value(id).nd_sbp.has_partial()) return part(id, m);
  return arrived_.try_emplace({edge, m}, kNoBuffer).first->second;
}

void PartBuffers::add_receives(size_t edge, int64_t m) {
  const Node& node = node_of(edge);
  const Value& value = graph_.value(node.outputs[0]);
  for (const Message& message : order_.messages(order_.edges[edge], m)) {
    if (message.to != rank_ || message.from == rank_) continue;
    Receive& receive = receives_[{edge, m, message.from}];
    receive.start = builder_.begin_block();
    const BufferId buffer =
        builder_.add_buffer(local_meta(message.box.size, value.dtype, value.device));
    const size_t started = builder_.add_recv(buffer, message.from, tag(edge), node);
    receive.end = builder_.begin_block();
    builder_.add_wait(started);
    place(edge, m, message.box, buffer);
  }
}

void PartBuffers::arrive(size_t edge, int64_t m) {
  const Node& node = node_of(edge);
  const ValueId id = node.outputs[0];
  if (!is_held(id)) return;
  BufferId& here = arrived(edge, m);
  if (here == kNoBuffer) {  // this rank's part is empty
    here = builder_.add_buffer(arrived_value(graph_, cut_, order_.edges[edge], m).meta_on(rank_));
  }
  if (graph_.value(id).nd_sbp.has_partial()) part(id, m) = lay_out(node, here, part_value(id, m));
}

void PartBuffers::add_waits() {
  for (Send& send : sends_) {
    send.wait = builder_.begin_block();
    builder_.add_wait(send.step);
  }
}

std::vector<BlockIndex> PartBuffers::waits_of(size_t edge, int64_t m) const {
  std::vector<BlockIndex> waits;
  for (const Send& send : sends_) {
    if (send.edge == edge && send.m == m) waits.push_back(send.wait);
  }
  return waits;
}

}  // namespace flow::graph
