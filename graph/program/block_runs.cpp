#include "graph/program/block_runs.h"

#include <algorithm>

#include "core/error.h"

namespace flow::graph {

BlockRuns::BlockRuns(const Order& order, int64_t rank, const PartBuffers& buffers,
                     ProgramBuilder& builder)
    : order_(order),
      rank_(rank),
      buffers_(buffers),
      builder_(builder),
      edges_from_(order.ranks.size()) {
  for (size_t i = 0; i < order.edges.size(); ++i) {
    const auto& sizes = order.edges[i].messages;
    const auto has_message = [&](const auto& is_own) {
      return std::any_of(sizes.begin(), sizes.end(), [&](const auto& size) {
        return std::any_of(size.second.begin(), size.second.end(), is_own);
      });
    };
    if (has_message([&](const Message& it) { return it.from == rank && it.to != rank; }))
      edges_from_[static_cast<size_t>(order.edges[i].from)].push_back(i);
    if (has_message([&](const Message& it) { return it.to == rank && it.from != rank; }))
      edges_here_.push_back(i);
  }
}

void BlockRuns::add_actions() {
  for (size_t i = 0; i < order_.actions.size(); ++i) {
    if (order_.takes_part(order_.actions[i].block, rank_)) add_action(i);
  }
  builder_.begin_part("after");
  for (const size_t edge : edges_here_) {
    for (int64_t m = 0; m < order_.cut.num_micro_batches; ++m)
      receive(edge, m);
  }
  for (const Send& send : sends_)
    builder_.add_run({.block = send.wait, .micro_batch = send.micro_batch});
}

void BlockRuns::add_action(size_t position) {
  const BlockAction& action = order_.actions[position];
  const int64_t m = action.micro_batch;
  builder_.begin_part(action.name);
  for (const size_t edge : order_.edges_to[static_cast<size_t>(action.block)])
    receive(edge, m);
  builder_.add_run({.block = blocks_.at({action.block, like(m)}),
                    .micro_batch = static_cast<int32_t>(m),
                    .is_first = has_run_.insert(action.block).second});
  for (const size_t edge : edges_from_[static_cast<size_t>(action.block)]) {
    for (const BlockIndex wait : buffers_.waits_of(edge, like(m))) {
      sends_.push_back({wait, static_cast<int32_t>(m), order_.received_at(order_.edges[edge], m)});
    }
  }
  end_sends(position);
}

void BlockRuns::receive(size_t edge, int64_t micro_batch) {
  for (const Message& message : order_.messages(order_.edges[edge], micro_batch)) {
    if (message.to != rank_ || message.from == rank_) continue;
    const auto key = std::tuple(edge, micro_batch, message.from);
    while (!received_.contains(key))
      receive_next(message.from);
  }
}

void BlockRuns::receive_next(int64_t from) {
  const std::vector<IncomingMessage>& messages = order_.incoming.at(rank_).at(from);
  size_t& received = num_received_[from];
  FLOW_ASSERT(received < messages.size(), "rank ", from, " sends less than rank ", rank_, " needs");
  const IncomingMessage& next = messages[received++];
  builder_.add_run({.block = buffers_.receive_from(next.edge, like(next.micro_batch), from),
                    .micro_batch = static_cast<int32_t>(next.micro_batch)});
  received_.insert({next.edge, next.micro_batch, from});
}

void BlockRuns::end_sends(size_t position) {
  std::erase_if(sends_, [&](const Send& send) {
    if (send.received_at >= position) return false;
    builder_.add_run({.block = send.wait, .micro_batch = send.micro_batch});
    return true;
  });
}

void BlockRuns::add_each(const std::map<int64_t, BlockIndex>& blocks) {
  for (int64_t m = 0; m < order_.cut.num_micro_batches; ++m) {
    builder_.add_run(
        {.block = blocks.at(like(m)), .micro_batch = static_cast<int32_t>(m), .is_first = m == 0});
  }
}

}  // namespace flow::graph
