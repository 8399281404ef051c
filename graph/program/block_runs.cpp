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
  const auto incoming = order.incoming.find(rank);
  if (incoming == order.incoming.end()) return;
  for (const auto& [from, messages] : incoming->second) {
    for (size_t i = 0; i < messages.size(); ++i)
      numbers_[{messages[i].edge, messages[i].micro_batch, from}] = i;
  }
}

void BlockRuns::add_actions() {
  std::vector<size_t> own;
  for (size_t i = 0; i < order_.actions.size(); ++i) {
    if (order_.takes_part(order_.actions[i].block, rank_)) own.push_back(i);
  }
  for (size_t i = 0; i < own.size(); ++i) {
    const bool has_early = order_.receives_early && i + 1 < own.size();
    add_action(own[i], has_early ? &order_.actions[own[i + 1]] : nullptr);
  }
  builder_.begin_part("after");
  for (const size_t edge : edges_here_) {
    for (int64_t m = 0; m < order_.cut.num_micro_batches; ++m)
      receive(edge, m);
  }
  for (const Send& send : sends_)
    builder_.add_run({.block = send.wait, .micro_batch = send.micro_batch});
}

void BlockRuns::add_action(size_t position, const BlockAction* next) {
  const BlockAction& action = order_.actions[position];
  const int64_t m = action.micro_batch;
  builder_.begin_part(action.name);
  for (const size_t edge : order_.edges_to[static_cast<size_t>(action.block)])
    receive(edge, m);
  if (next != nullptr) {
    for (const size_t edge : order_.edges_to[static_cast<size_t>(next->block)])
      start_receives(edge, next->micro_batch);
  }
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

void BlockRuns::start_receives(size_t edge, int64_t micro_batch) {
  add_receives(edge, micro_batch, &PartBuffers::Receive::start, num_started_);
}

void BlockRuns::receive(size_t edge, int64_t micro_batch) {
  start_receives(edge, micro_batch);
  add_receives(edge, micro_batch, &PartBuffers::Receive::end, num_received_);
}

void BlockRuns::add_receives(size_t edge, int64_t micro_batch,
                             BlockIndex PartBuffers::Receive::*block,
                             std::map<int64_t, size_t>& num_added) {
  for (const Message& message : order_.messages(order_.edges[edge], micro_batch)) {
    const int64_t from = message.from;
    if (message.to != rank_ || from == rank_) continue;
    const auto number = numbers_.find({edge, micro_batch, from});
    FLOW_ASSERT(number != numbers_.end(), "rank ", from, " sends less than rank ", rank_, " needs");
    const std::vector<IncomingMessage>& all = order_.incoming.at(rank_).at(from);
    for (size_t& next = num_added[from]; next <= number->second; ++next) {
      const int64_t m = all[next].micro_batch;
      builder_.add_run({.block = buffers_.receive_from(all[next].edge, like(m), from).*block,
                        .micro_batch = static_cast<int32_t>(m)});
    }
  }
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
