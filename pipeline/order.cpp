#include "pipeline/order.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "graph/ir/graph_uses.h"
#include "graph/ir/place.h"
#include "pipeline/batch_statistics.h"
#include "pipeline/edges.h"
#include "pipeline/simulate.h"

namespace flow::pipeline {

namespace {

using graph::BlockAction;
using graph::BlockEdge;
using graph::BlockId;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Order;
using graph::Value;
using graph::ValueId;

// True if slot `a` ends before slot `b` of the same micro-batch begins, or if they are the same.
bool precedes(const Slot& a, const Slot& b) {
  if (b.stage < 0 || a == b) return true;
  const bool a_forward = a.kind == ActionKind::kForward, b_forward = b.kind == ActionKind::kForward;
  if (a_forward) return !b_forward || a.stage <= b.stage;
  if (b_forward || a.kind == ActionKind::kWeight) return false;
  return a.stage >= b.stage;
}

class StagePlanner {
 public:
  StagePlanner(const Graph& graph, const MicroBatchCut& cut, bool has_weights)
      : graph_(graph), cut_(cut), has_weights_(has_weights), uses_(graph) {
    const size_t nodes = graph.nodes.size();
    stages_.slots.resize(nodes);
    stages_.edge_of.assign(nodes, -1);
    is_backward_.assign(nodes, false);
    is_weight_.assign(nodes, false);
  }

  StagePlan run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      stages_.num_stages = std::max(stages_.num_stages, node.stage + 1);
      is_backward_[i] = node.phase != Phase::kForward || uses_backward(node);
    }
    if (has_weights_) find_weights();
    find_ranks();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!runs_each(i)) continue;
      if (is_redistribution(i)) {
        place_redistribution(i);
      } else {
        stages_.slots[i] = own_slot(i);
        check_order(i, stages_.slots[i]);
      }
    }
    return std::move(stages_);
  }

 private:
  bool runs_each(size_t i) const { return cut_.node_time[i] == NodeTime::kEach; }

  bool is_redistribution(size_t i) const { return graph_.nodes[i].op == &boxing::kRedistribute; }

  // A node that reads gradients is part of backward.
  bool uses_backward(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const int64_t maker = id == kNoValue ? -1 : uses_.maker(id);
      return maker >= 0 && is_backward_[static_cast<size_t>(maker)];
    });
  }

  Slot own_slot(size_t i) const {
    const Node& node = graph_.nodes[i];
    if (!is_backward_[i]) return {node.stage, ActionKind::kForward};
    return {node.stage, is_weight_[i] ? ActionKind::kWeight : ActionKind::kBackward};
  }

  // True if a node outside of the stage's W needs the node's result: gradients of inputs, as they
  // need gradients of statistics, or another stage's W, which may run earlier.
  bool is_needed_outside(const Node& node, int64_t stage) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      const std::span<const size_t> users = uses_.readers(id);
      return std::any_of(users.begin(), users.end(), [&](size_t i) {
        const Node& user = graph_.nodes[i];
        if (!runs_each(i)) return false;
        return is_redistribution(i) ? is_needed_outside(user, stage)
                                    : !is_weight_[i] || user.stage != stage;
      });
    });
  }

  void find_weights() {
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (!runs_each(i) || !is_backward_[i] || is_redistribution(i)) continue;
      const bool makes_addends =
          std::all_of(node.outputs.begin(), node.outputs.end(),
                      [&](ValueId id) { return cut_.sbp_of(id).is_partial(); });
      const std::span<const size_t> users = uses_.readers(node.outputs[0]);
      const bool is_view_for_them =
          node.op->view != nullptr && !users.empty() &&
          std::all_of(users.begin(), users.end(), [&](size_t user) {
            return is_weight_[user] && graph_.nodes[user].stage == node.stage;
          });
      is_weight_[i] = (makes_addends && !is_needed_outside(node, node.stage)) || is_view_for_them;
    }
  }

  void find_ranks() {
    stages_.ranks.resize(static_cast<size_t>(stages_.num_stages));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!runs_each(i) || is_redistribution(i)) continue;
      const Placement& placement = graph_.value(node.outputs[0]).placement;
      if (!placement.defined()) continue;
      stages_.ranks[static_cast<size_t>(node.stage)].insert(placement.ranks().begin(),
                                                            placement.ranks().end());
    }
  }

  // Finds the slot after which the ranks of the value's placement have it; returns false if they
  // have it before all actions.
  bool home_of(ValueId id, Slot& slot) const {
    const int64_t maker = uses_.maker(id);
    if (maker < 0 || !runs_each(static_cast<size_t>(maker))) return false;
    const int64_t edge = stages_.edge_of[static_cast<size_t>(maker)];
    slot = edge >= 0 ? stages_.edges[static_cast<size_t>(edge)].to
                     : stages_.slots[static_cast<size_t>(maker)];
    return true;
  }

  // The earliest slot that needs the value, directly or through redistributions. Program order does
  // not tell: the gradient of a weight may come before that of an input, which runs earlier.
  Slot first_use(ValueId id) const {
    Slot first;
    for (const size_t user : uses_.readers(id)) {
      if (!runs_each(user)) continue;
      const Slot slot =
          is_redistribution(user) ? first_use(graph_.nodes[user].outputs[0]) : own_slot(user);
      if (slot.stage >= 0 && precedes(slot, first)) first = slot;
    }
    return first;
  }

  bool is_within(const Placement& placement, const Slot& slot) const {
    if (slot.stage < 0) return false;
    const std::set<int64_t>& ranks = stages_.ranks[static_cast<size_t>(slot.stage)];
    return std::all_of(placement.ranks().begin(), placement.ranks().end(),
                       [&](int64_t rank) { return ranks.contains(rank); });
  }

  void place_redistribution(size_t i) {
    const Node& node = graph_.nodes[i];
    const Value &from = graph_.value(node.inputs[0]), &to = graph_.value(node.outputs[0]);
    Slot home;
    // A value that exists before all actions is moved in the slot that uses it.
    const bool has_home = home_of(node.inputs[0], home);
    if (!has_home) home = first_use(node.outputs[0]);
    stages_.slots[i] = home;
    if (home.stage < 0) return;  // all ranks take part in what follows the actions
    if (is_within(from.placement, home) && is_within(to.placement, home)) return;
    if (!has_home) {
      graph::throw_at<Unsupported>(
          node, str("[pipeline] the redistribution at ", node.file, ":", node.line,
                    " runs again for each micro-batch and moves a value from ", from.nd_sbp, " on ",
                    from.placement, " to ", to.nd_sbp, " on ", to.placement,
                    ", which do not belong to one stage; move it once, outside of the "
                    "graph"));
    }
    const Slot target = first_use(node.outputs[0]);
    if (!precedes(home, target)) refuse(i, home, target);
    stages_.edge_of[i] = static_cast<int64_t>(stages_.edges.size());
    stages_.edges.push_back({i, home, receiving_slot(i, home, target)});
  }

  // `target`, or the last slot before it in which the receiving ranks act, if they only pass the
  // value on to other ranks.
  Slot receiving_slot(size_t i, const Slot& home, const Slot& target) const {
    const Node& node = graph_.nodes[i];
    const Placement& placement = graph_.value(node.outputs[0]).placement;
    if (target.stage < 0 || is_within(placement, target)) return target;
    Slot last;
    for (int64_t stage = 0; stage < stages_.num_stages; ++stage) {
      for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
        const Slot slot{stage, kind};
        if (is_within(placement, slot) && precedes(home, slot) && precedes(slot, target) &&
            precedes(last, slot)) {
          last = slot;
        }
      }
    }
    if (last.stage >= 0) return last;
    graph::throw_at<Unsupported>(
        node, str("[pipeline] the redistribution at ", node.file, ":", node.line,
                  " brings a value to ", placement, ", which passes it on to ", name_of(target),
                  " but computes nothing between ", name_of(home),
                  " and it; redistribute to the ranks that use the value"));
  }

  void check_order(size_t i, const Slot& slot) const {
    for (const ValueId id : graph_.nodes[i].inputs) {
      Slot home;
      if (id != kNoValue && home_of(id, home) && !precedes(home, slot)) refuse(i, home, slot);
    }
  }

  static std::string name_of(const Slot& slot) {
    std::string text = to_string(Action{slot.stage, slot.kind, 0});
    text.pop_back();
    return text;
  }

  [[noreturn]] void refuse(size_t i, const Slot& from, const Slot& to) const {
    const Node& node = graph_.nodes[i];
    const bool is_in_backward =
        from.kind != ActionKind::kForward && to.kind != ActionKind::kForward;
    graph::throw_at<Unsupported>(
        node, str("[pipeline] ", node.op->name, " at ", node.file, ":", node.line, " in action ",
                  name_of(to), " needs a value of ", name_of(from), ", which comes later; ",
                  is_in_backward
                      ? "join gradients of several stages outside of the graph, and if they are "
                        "clipped, give no parameter a row for each sample"
                      : "number the stages in the order in which data passes through them"));
  }

  const Graph& graph_;
  const MicroBatchCut& cut_;
  bool has_weights_;
  graph::GraphUses uses_;
  StagePlan stages_;
  std::vector<bool> is_backward_, is_weight_;  // by node
};

class OrderMaker {
 public:
  OrderMaker(const Graph& graph, MicroBatchCut cut, const Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        stages_(plan_stages(graph, cut, schedule.has_weights())) {
    order_.cut = std::move(cut);
    sizes_ = order_.cut.sizes();
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
    order_.positions.resize(order_.ranks.size());
    for (auto& by_micro_batch : order_.positions)
      by_micro_batch.resize(static_cast<size_t>(order_.cut.num_micro_batches));
    for (const TimedAction& timed : simulate(schedule_).actions) {
      const Action& action = timed.action;
      const BlockId block = block_of({action.stage, action.kind});
      order_.positions[static_cast<size_t>(block)][static_cast<size_t>(action.micro_batch)] =
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
      for (const int64_t m : sizes_) {
        it.messages[m] = messages_between(sent_value(graph_, order_.cut, it, m),
                                          arrived_value(graph_, order_.cut, it, m));
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
        for (const Message& message : order_.messages(order_.edges[i], m)) {
          if (message.from == message.to) continue;
          order_.incoming[message.to][message.from].push_back({i, m});
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
                                  ? node.op->micro_batch.takes_sums &&
                                        cut.sbp_of(node.inputs[0]).is_partial() &&
                                        is_own(node.outputs[0])
                                  : cut.node_time[i] == NodeTime::kSequential &&
                                        std::any_of(node.inputs.begin(), node.inputs.end(), is_own);
      if (!is_of_part) continue;
      for (const int64_t m : sizes_)
        order_.attrs[i][m] = in_micro_batch(node, cut.batch, m).attrs;
    }
  }

  const Graph& graph_;
  const Schedule& schedule_;
  StagePlan stages_;
  std::vector<int64_t> sizes_;  // the first micro-batch of each size
  Order order_;
};

int64_t num_stages_of(const Graph& graph) {
  int64_t num_stages = 1;
  for (const graph::Node& node : graph.nodes)
    num_stages = std::max(num_stages, node.stage + 1);
  return num_stages;
}

// Local tensors are on the rank that runs the step.
bool share_a_rank(const std::set<int64_t>& a, const std::set<int64_t>& b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  return std::any_of(a.begin(), a.end(), [&](int64_t rank) { return b.contains(rank); });
}

}  // namespace

StagePlan plan_stages(const Graph& graph, const MicroBatchCut& cut, bool has_weights) {
  return StagePlanner(graph, cut, has_weights).run();
}

graph::Order make_order(const Graph& graph, MicroBatchCut cut, const Schedule& schedule) {
  validate(schedule);
  return OrderMaker(graph, std::move(cut), schedule).make();
}

Schedule schedule_on_ranks(const Schedule& schedule, const StagePlan& stages) {
  const std::vector<int64_t> given = workers_of(schedule);
  std::vector<int64_t> workers = given;  // by stage
  for (size_t a = 0; a < workers.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (!share_a_rank(stages.ranks[a], stages.ranks[b])) continue;
      const int64_t from = std::max(workers[a], workers[b]), to = std::min(workers[a], workers[b]);
      std::replace(workers.begin(), workers.end(), from, to);
    }
  }
  if (workers == given) return schedule;
  std::map<int64_t, std::vector<Action>> by_worker;
  for (const TimedAction& timed : simulate(schedule).actions)
    by_worker[workers[static_cast<size_t>(timed.action.stage)]].push_back(timed.action);
  Schedule joined{schedule.num_stages, schedule.num_micro_batches, {}};
  for (auto& [worker, actions] : by_worker)
    joined.actions.push_back(std::move(actions));
  return joined;
}

bool MicroBatching::is_needed(const Graph& graph) const {
  return micro_batches > 1 || num_stages_of(graph) > 1;
}

MicroBatchCut MicroBatching::cut(const Graph& graph) const {
  return plan_micro_batches(graph, micro_batches, graph.inputs.size() - num_arguments);
}

Schedule MicroBatching::schedule(const Graph& graph) const {
  return make_schedule(rule, num_stages_of(graph), micro_batches);
}

graph::Pass micro_batching_pass(const MicroBatching& batching) {
  const auto run = [batching](graph::UnloweredStep& step) -> int64_t {
    if (!batching.is_needed(step.graph)) return 0;
    MicroBatchCut cut = batching.cut(step.graph);
    if (batching.requires_exact) require_exact(step.graph, cut);
    const auto count = std::count(cut.node_time.begin(), cut.node_time.end(), NodeTime::kEach);
    step.order = make_order(step.graph, std::move(cut), batching.schedule(step.graph));
    step.order->receives_early = batching.receives_early;
    return count;
  };
  return {"micro_batching", true, run,
          str(batching.micro_batches, " micro-batches of ", batching.num_arguments, " inputs, ",
              to_string(batching.rule), batching.rule.table.empty() ? "" : " ", batching.rule.table,
              batching.requires_exact ? ", exact" : "",
              batching.receives_early ? ", early receives" : "")};
}

}  // namespace flow::pipeline
