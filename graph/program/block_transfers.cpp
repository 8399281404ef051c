#include "graph/program/block_transfers.h"

#include <cstring>

#include "boxing/redistribute_op.h"
#include "core/error.h"

namespace flow::graph {

BlockTransfers::BlockTransfers(const Graph& graph, const Order& order, int64_t rank,
                               ProgramBuilder& builder, PartBuffers& buffers)
    : graph_(graph), order_(order), rank_(rank), builder_(builder), buffers_(buffers) {
  const auto own = order.incoming.find(rank);
  if (own == order.incoming.end()) return;
  for (const auto& [sender, messages] : own->second)
    incoming_[sender].messages = &messages;
}

void BlockTransfers::send(size_t edge, int64_t m) {
  const BlockEdge& it = order_.edges[edge];
  const Node& node = node_of(edge);
  const ValueId source = node.inputs[0];
  if (!buffers_.is_held(source)) return;
  BufferId buffer = buffers_.part_input(source, order_.cut.sbp_of(source), m);
  const Value value = sent_value(graph_, order_.cut, it, m);
  if (!(value.nd_sbp == graph_.value(source).nd_sbp)) buffer = lay_out(node, buffer, value);
  for (const Message& message : transfer(edge, m).messages) {
    if (message.from != rank_) continue;
    const BufferId box = buffers_.box(buffer, message.box);
    if (message.to == rank_) {
      place(edge, m, message.box, box);
      continue;
    }
    const size_t step = builder_.add_send(builder_.contiguous(box), message.to, tag(edge, m), node);
    sends_.push_back({step, transfer(edge, m).received_at});
  }
}

BufferId BlockTransfers::lay_out(const Node& node, BufferId buffer, const Value& value) {
  const boxing::RedistributeAttrs attrs{.placement = value.placement, .nd_sbp = value.nd_sbp};
  Node redistribution = node;
  redistribution.attrs.resize(sizeof(attrs));
  std::memcpy(redistribution.attrs.data(), &attrs, sizeof(attrs));
  return builder_.add_node(redistribution, {buffer}, {value.meta_on(rank_)})[0];
}

void BlockTransfers::place(size_t edge, int64_t m, const Box& box, BufferId source) {
  BufferId& target = arrived(edge, m);
  const MetaPtr meta = arrived_value(graph_, order_.cut, order_.edges[edge], m).meta_on(rank_);
  if (target == kNoBuffer && box.size == meta->local_shape) {
    const Strides& strides = builder_.buffer(source).meta->strides;
    target = builder_.add_view(source, with_strides(meta, strides), 0);
    return;
  }
  if (target == kNoBuffer) target = builder_.add_buffer(meta);
  builder_.add_copy(source, buffers_.box(target, box));
}

BufferId& BlockTransfers::arrived(size_t edge, int64_t m) {
  const ValueId id = node_of(edge).outputs[0];
  if (!graph_.value(id).nd_sbp.has_partial()) return buffers_.part(id, m);
  return arrived_.try_emplace({edge, m}, kNoBuffer).first->second;
}

void BlockTransfers::receive(size_t edge, int64_t m) {
  const Node& node = node_of(edge);
  const ValueId id = node.outputs[0];
  const bool is_partial = graph_.value(id).nd_sbp.has_partial();
  if (!buffers_.is_held(id) || (is_partial && buffers_.part(id, m) != kNoBuffer)) return;
  for (const Message& message : transfer(edge, m).messages) {
    if (message.to != rank_ || message.from == rank_) continue;
    const auto key = std::tuple(edge, m, message.from);
    while (!received_.contains(key))
      receive_next(message.from);
  }
  BufferId& here = arrived(edge, m);
  if (here == kNoBuffer) {  // this rank's part is empty
    here = builder_.add_buffer(
        arrived_value(graph_, order_.cut, order_.edges[edge], m).meta_on(rank_));
  }
  if (is_partial) buffers_.part(id, m) = lay_out(node, here, buffers_.part_value(id, m));
}

void BlockTransfers::receive_next(int64_t from) {
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

void BlockTransfers::end_sends(size_t position) {
  std::erase_if(sends_, [&](const Send& send) {
    if (send.received_at >= position) return false;
    builder_.wait_for_send(send.step);
    return true;
  });
}

}  // namespace flow::graph
