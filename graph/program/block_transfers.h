// The messages between blocks on different ranks, as steps of one rank's program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/program/builder.h"
#include "graph/program/order.h"
#include "graph/program/part_buffers.h"

namespace flow::graph {

// All arguments of the constructor must outlive it.
class BlockTransfers {
 public:
  BlockTransfers(const Graph& graph, const Order& order, int64_t rank, ProgramBuilder& builder,
                 PartBuffers& buffers);

  // Sends the elements of the edge's value that this rank has, or keeps them if this rank is the
  // receiver.
  void send(size_t edge, int64_t m);

  // Receives the elements of the edge's value that this rank needs. Messages from one rank are
  // received in the order in which it sends them, so earlier ones are received first.
  void receive(size_t edge, int64_t m);

  // Waits for the sends whose receiver's action comes before `position` in the order of actions. In
  // any order of events, this never waits for something that happens later.
  void end_sends(size_t position);

 private:
  struct Send {
    size_t step = 0;
    size_t received_at = 0;  // position in the order of actions
  };

  // The incoming messages of one sender, and how many of them have been received.
  struct Queue {
    const std::vector<IncomingMessage>* messages = nullptr;
    size_t received = 0;
  };

  // Redistributes a buffer to the layout of `value` among the ranks that have it: adds up partial
  // values, or makes a partial value.
  BufferId lay_out(const Node& node, BufferId buffer, const Value& value);
  // Copies a box, received or from this rank, to its place in the edge's value.
  void place(size_t edge, int64_t m, const Box& box, BufferId source);
  // The buffer that the edge's boxes are copied to.
  BufferId& arrived(size_t edge, int64_t m);
  void receive_next(int64_t from);

  int64_t tag(size_t edge, int64_t m) const {
    return static_cast<int64_t>(edge) * order_.cut.num_micro_batches + m;
  }

  const Node& node_of(size_t edge) const { return graph_.nodes[order_.edges[edge].node]; }

  const BlockEdge::Transfer& transfer(size_t edge, int64_t m) const {
    return order_.edges[edge].transfers[static_cast<size_t>(m)];
  }

  const Graph& graph_;
  const Order& order_;
  int64_t rank_;
  ProgramBuilder& builder_;
  PartBuffers& buffers_;
  std::vector<Send> sends_;                                  // sends that are not yet waited for
  std::map<int64_t, Queue> incoming_;                        // by sender
  std::set<std::tuple<size_t, int64_t, int64_t>> received_;  // edge, micro-batch, sender
  std::map<std::pair<size_t, int64_t>, BufferId> arrived_;   // of values that become partial
};

}  // namespace flow::graph
