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
      whole_(graph.values.size(), kNoBuffer),
      parts_(graph.values.size() * static_cast<size_t>(order.cut.num_micro_batches), kNoBuffer) {
  for (ValueId id = 0; whole_metas_.contains(id); ++id)
    whole_metas_[id] = graph.value(id).meta_on(rank);
  const auto own = order.incoming.find(rank);
  if (own == order.incoming.end()) return;
  for (const auto& [sender, messages] : own->second)
    incoming_[sender].messages = &messages;
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

// ---- edges between blocks

void PartBuffers::send(size_t edge, int64_t m) {
  const BlockEdge& it = order_.edges[edge];
  const Node& node = node_of(edge);
  const ValueId source = node.inputs[0];
  if (!is_held(source)) return;
  BufferId buffer = part_input(source, cut_.sbp_of(source), m);
  const Value value = sent_value(graph_, cut_, it, m);
  if (!(value.nd_sbp == graph_.value(source).nd_sbp)) buffer = lay_out(node, buffer, value);
  for (const Message& message : transfer(edge, m).messages) {
    if (message.from != rank_) continue;
    const BufferId own = box(buffer, message.box);
    if (message.to == rank_) {
      place(edge, m, message.box, own);
      continue;
    }
    const size_t step = builder_.add_send(builder_.contiguous(own), message.to, tag(edge, m), node);
    sends_.push_back({step, transfer(edge, m).received_at});
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

void PartBuffers::receive(size_t edge, int64_t m) {
  const Node& node = node_of(edge);
  const ValueId id = node.outputs[0];
  const bool is_partial = graph_.value(id).nd_sbp.has_partial();
  if (!is_held(id) || (is_partial && part(id, m) != kNoBuffer)) return;
  for (const Message& message : transfer(edge, m).messages) {
    if (message.to != rank_ || message.from == rank_) continue;
    const auto key = std::tuple(edge, m, message.from);
    while (!received_.contains(key))
      receive_next(message.from);
  }
  BufferId& here = arrived(edge, m);
  if (here == kNoBuffer) {  // this rank's part is empty
    here = builder_.add_buffer(arrived_value(graph_, cut_, order_.edges[edge], m).meta_on(rank_));
  }
  if (is_partial) part(id, m) = lay_out(node, here, part_value(id, m));
}

void PartBuffers::receive_next(int64_t from) {
  Queue& queue = incoming_[from];
  FLOW_ASSERT(queue.messages != nullptr && queue.received < queue.messages->size(), "rank ", from,
              " sends less than rank ", rank_, " needs");
  const IncomingMessage& next = (*queue.messages)[queue.received++];
  const Node& node = node_of(next.edge);
  const Value& value = graph_.value(node.outputs[0]);
  const BufferId buffer = builder_.add_buffer(local_meta(next.box.size, value.dtype, value.device));
  builder_.add_recv(buffer, from, tag(next.edge, next.micro_batch), node);
  place(next.edge, next.micro_batch, next.box, buffer);
  received_.insert({next.edge, next.micro_batch, from});
}

void PartBuffers::end_sends(size_t position) {
  std::erase_if(sends_, [&](const Send& send) {
    if (send.received_at >= position) return false;
    builder_.wait_for_send(send.step);
    return true;
  });
}

}  // namespace flow::graph
