#include "pipeline/order.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "pipeline/batch_statistics.h"
#include "pipeline/edges.h"
#include "pipeline/simulate.h"
#include "pipeline/stages.h"

namespace flow::pipeline {

namespace {

using graph::BlockAction;
using graph::BlockEdge;
using graph::BlockId;
using graph::Graph;
using graph::Node;
using graph::Order;
using graph::ValueId;

class OrderMaker {
 public:
  OrderMaker(const Graph& graph, MicroBatchCut cut, const Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        stages_(plan_stages(graph, cut, schedule.has_weights())) {
    order_.cut = std::move(cut);
  }

  Order make() {
    check_schedule();
    add_blocks();
    add_actions();
    add_nodes();
    add_edges();
    add_incoming();
    add_attrs();
    return std::move(order_);
  }

 private:
  void check_schedule() const {
    const int64_t num_micro_batches = order_.cut.num_micro_batches;
    if (schedule_.num_stages == stages_.num_stages &&
        schedule_.num_micro_batches == num_micro_batches) {
      return;
    }
    throw InvalidArgument(str("[pipeline] the graph has ", stages_.num_stages, " stages and ",
                              num_micro_batches, " micro-batches, the schedule ",
                              schedule_.num_stages, " and ", schedule_.num_micro_batches,
                              "; make the schedule for those of the graph"));
  }

  // Three blocks a stage, one for each kind of action.
  static BlockId block_of(const Slot& slot) {
    return slot.stage < 0 ? graph::kAfterActions
                          : static_cast<BlockId>(slot.stage * 3 + static_cast<int64_t>(slot.kind));
  }

  void add_blocks() {
    for (const std::set<int64_t>& ranks : stages_.ranks) {
      const std::vector<int64_t> sorted(ranks.begin(), ranks.end());
      order_.ranks.insert(order_.ranks.end(), 3, sorted);
    }
    order_.nodes.resize(order_.ranks.size());
    order_.edges_to.resize(order_.ranks.size());
  }

  void add_actions() {
    position_.resize(order_.ranks.size());
    for (auto& by_micro_batch : position_)
      by_micro_batch.resize(static_cast<size_t>(order_.cut.num_micro_batches));
    for (const TimedAction& timed : simulate(schedule_).actions) {
      const Action& action = timed.action;
      const BlockId block = block_of({action.stage, action.kind});
      position_[static_cast<size_t>(block)][static_cast<size_t>(action.micro_batch)] =
          order_.actions.size();
      order_.actions.push_back({block, action.micro_batch, to_string(action)});
    }
  }

  void add_nodes() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (order_.cut.node_time[i] != NodeTime::kEach) continue;
      const BlockId block = block_of(stages_.slots[i]);
      (block < 0 ? order_.nodes_after : order_.nodes[static_cast<size_t>(block)]).push_back(i);
    }
  }

  void add_edges() {
    order_.edge_of = stages_.edge_of;
    for (const Edge& edge : stages_.edges) {
      BlockEdge it{edge.node, block_of(edge.from), block_of(edge.to), {}};
      for (int64_t m = 0; m < order_.cut.num_micro_batches; ++m) {
        BlockEdge::Transfer& transfer = it.transfers.emplace_back();
        transfer.messages = messages_between(sent_value(graph_, order_.cut, it, m),
                                             arrived_value(graph_, order_.cut, it, m));
        if (it.to >= 0) {
          transfer.received_at = position_[static_cast<size_t>(it.to)][static_cast<size_t>(m)];
        }
      }
      if (it.to >= 0) order_.edges_to[static_cast<size_t>(it.to)].push_back(order_.edges.size());
      order_.edges.push_back(std::move(it));
    }
  }

  // Messages from one rank are received in the order in which it sends them.
  void add_incoming() {
    std::vector<std::vector<size_t>> edges_from(order_.ranks.size());
    for (size_t i = 0; i < order_.edges.size(); ++i)
      edges_from[static_cast<size_t>(order_.edges[i].from)].push_back(i);
    for (const BlockAction& action : order_.actions) {
      const int64_t m = action.micro_batch;
      for (const size_t i : edges_from[static_cast<size_t>(action.block)]) {
        for (const Message& message : order_.edges[i].transfers[static_cast<size_t>(m)].messages) {
          if (message.from == message.to) continue;
          order_.incoming[message.to][message.from].push_back({i, m, message.box});
        }
      }
    }
  }

  // Numbers of samples that ops take as attributes are those of the micro-batch.
  void add_attrs() {
    const MicroBatchCut& cut = order_.cut;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const auto is_own = [&](ValueId id) { return cut.is_per_micro_batch_of(id); };
      const bool is_of_part = cut.node_time[i] == NodeTime::kEach
                                  ? takes_own_sums(node) &&
                                        cut.sbp_of(node.inputs[0]).is_partial() &&
                                        is_own(node.outputs[0])
                                  : cut.node_time[i] == NodeTime::kSequential &&
                                        std::any_of(node.inputs.begin(), node.inputs.end(), is_own);
      if (!is_of_part) continue;
      std::vector<std::vector<std::byte>>& attrs = order_.attrs[i];
      for (int64_t m = 0; m < cut.num_micro_batches; ++m)
        attrs.push_back(in_micro_batch(node, cut.batch, m).attrs);
    }
  }

  const Graph& graph_;
  const Schedule& schedule_;
  StagePlan stages_;
  std::vector<std::vector<size_t>> position_;  // of an action, by block and micro-batch
  Order order_;
};

}  // namespace

graph::Order make_order(const Graph& graph, MicroBatchCut cut, const Schedule& schedule) {
  validate(schedule);
  return OrderMaker(graph, std::move(cut), schedule).make();
}

}  // namespace flow::pipeline
