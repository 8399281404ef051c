#include "graph/passes/shard_captures.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "graph/ir/graph_uses.h"
#include "graph/passes/dead_nodes.h"
#include "graph/passes/value_map.h"
#include "ops/creation/copy_op.h"
#include "ops/elementwise/cast_op.h"

namespace flow::graph {

namespace {

class CaptureSharder {
 public:
  CaptureSharder(Graph& graph, std::span<const ShardedCapture> shards, const ShardOptions& options)
      : graph_(graph), options_(options) {
    const GraphUses traced(graph_);
    for (const ShardedCapture& shard : shards)
      keep_updated_parts(shard, traced);
    eliminate_dead_nodes(graph_);
    for (const ShardedCapture& shard : shards) {
      const ValueId id = graph_.captures[shard.capture].initial;
      Parameter& parameter = parameters_.emplace_back(graph_.value(id), shard.sbp);
      parameter.bytes =
          parameter.whole.meta_on(parameter.whole.placement.ranks()[0])->local_bytes();
      largest_ = std::max(largest_, parameter.bytes);
    }
    uses_.emplace(graph_);
    parameter_of_.assign(graph_.values.size(), -1);
    for (size_t i = 0; i < shards.size(); ++i) {
      const ValueId id = graph_.captures[shards[i].capture].initial;
      parameter_of_[id] = static_cast<int64_t>(i);
      graph_.value(id).nd_sbp = shards[i].sbp;
    }
  }

  void run() {
    ValueMap parts(graph_);  // redistributions that the sharded parameter makes unnecessary
    std::vector<Node> old = std::exchange(graph_.nodes, {});
    old_ = &old;
    const auto used = [&](ValueId id, const Node& use) {
      return parameter(id) >= 0 ? gathered(id, use) : parts(id);
    };
    for (const Node& node : old) {
      if (follows(node)) {
        graph_.nodes.push_back(node);  // nothing reads it any more
        continue;
      }
      if (moves_parameter(node)) {
        graph_.nodes.push_back(node);
        const bool is_there = graph_.value(node.outputs[0]) == graph_.value(node.inputs[0]);
        if (is_there) parts.replace(node.outputs[0], node.inputs[0]);
        continue;
      }
      Node use = node;
      for (ValueId& input : use.inputs)
        input = used(input, node);
      graph_.nodes.push_back(std::move(use));
    }
    if (graph_.nodes.empty()) return;
    const Node last = graph_.nodes.back();
    for (ValueId& output : graph_.outputs)
      output = used(output, last);
    const GraphUses rewritten(graph_);
    for (Capture& capture : graph_.captures) {
      capture.final_value = parts(capture.final_value);
      shard_result(capture, rewritten);
    }
    eliminate_dead_nodes(graph_);
  }

 private:
  struct Parameter {
    Parameter(Value value, NdSbp parts) : whole(std::move(value)), sbp(std::move(parts)) {}

    Value whole;
    NdSbp sbp;
    size_t bytes = 0;  // that a rank holds of the gathered parameter
  };

  // The gathered forms of a parameter that the nodes of one group share.
  struct Gathered {
    std::map<ValueId, ValueId> copies = {};  // by traced value
    size_t last_use = 0;                     // position in the group's uses
  };

  struct Group {
    std::vector<size_t> uses = {};  // parameters in order of use; consecutive uses count once
    std::map<size_t, Gathered> gathered = {};
  };

  // An update that gathers its sharded result and copies that into the whole parameter writes the
  // shards directly.
  void keep_updated_parts(const ShardedCapture& shard, const GraphUses& uses) {
    const auto made_by = [&](ValueId id, const OpDef& op) -> const Node* {
      const Node* node = uses.maker_node(id);
      return node != nullptr && node->op == &op ? node : nullptr;
    };
    Capture& capture = graph_.captures[shard.capture];
    const Node* copy = made_by(capture.final_value, ops::kCopy);
    const Node* gather =
        copy == nullptr ? nullptr : made_by(copy->inputs[1], boxing::kRedistribute);
    if (gather == nullptr) return;
    Value parts = graph_.value(capture.initial);
    parts.nd_sbp = shard.sbp;
    if (graph_.value(gather->inputs[0]) == parts) capture.final_value = gather->inputs[0];
  }

  int64_t parameter(ValueId id) const {
    return parameter_of_.contains(id) ? parameter_of_[id] : -1;
  }

  // The traced node that makes a traced value; null for captures and inputs.
  const Node* traced_maker(ValueId id) const {
    const int64_t maker = uses_->maker(id);
    return maker < 0 ? nullptr : &(*old_)[static_cast<size_t>(maker)];
  }

  // Whether the node only shows a parameter in another form, which each use then makes again.
  bool follows(const Node& node) {
    const bool shows = (node.op->view != nullptr || node.op == &ops::kCast) &&
                       node.op != &boxing::kRedistribute && node.inputs.size() == 1 &&
                       node.outputs.size() == 1 && node.op->mutates == 0 &&
                       node.phase != Phase::kUpdate;
    if (!shows || options_.once || parameter(node.inputs[0]) < 0) return false;
    parameter_of_[node.outputs[0]] = parameter(node.inputs[0]);
    return true;
  }

  // Whether the node redistributes a parameter, which works from its shards as well.
  bool moves_parameter(const Node& node) const {
    return node.op == &boxing::kRedistribute && parameter(node.inputs[0]) >= 0 &&
           uses_->maker(node.inputs[0]) < 0;
  }

  // Adds `node` with another input, in the stage, phase and guard of `use`. Returns its output.
  ValueId add(Node node, ValueId input, Value result, const Node& use) {
    node.inputs = {input};
    node.outputs = {graph_.add_value(std::move(result))};
    node.stage = use.stage;
    node.phase = use.phase;
    node.guard = use.guard;
    node.is_transient = !options_.once;
    const ValueId made = node.outputs[0];
    graph_.nodes.push_back(std::move(node));
    return made;
  }

  ValueId redistributed(ValueId id, const NdSbp& sbp, const Node& use) {
    Value to = graph_.value(id);
    const boxing::RedistributeAttrs attrs{.placement = to.placement, .nd_sbp = sbp};
    Node node;
    node.op = &boxing::kRedistribute;
    node.attrs.resize(sizeof(attrs));
    std::memcpy(node.attrs.data(), &attrs, sizeof(attrs));
    node.file = use.file;
    node.line = use.line;
    to.nd_sbp = sbp;
    return add(std::move(node), id, std::move(to), use);
  }

  // The gathered form, for `use`, of a parameter or of a value that shows it.
  ValueId gathered(ValueId id, const Node& use) {
    const auto of = static_cast<size_t>(parameter(id));
    const auto key = options_.by_phase && !options_.once
                         ? std::pair(use.stage, static_cast<int64_t>(use.phase))
                         : std::pair<int64_t, int64_t>(0, 0);
    Group& group = groups_[key];
    Gathered& own = group.gathered[of];
    if (!options_.once && !is_near(group, of, own.last_use)) own.copies.clear();
    if (group.uses.empty() || group.uses.back() != of) group.uses.push_back(of);
    own.last_use = group.uses.size() - 1;
    return copy_of(id, own, use);
  }

  // Whether the parameters used since then take at most as many bytes as the largest parameter.
  bool is_near(const Group& group, size_t parameter, size_t last_use) const {
    size_t bytes = 0;
    std::vector<size_t> seen;
    for (size_t i = last_use + 1; i < group.uses.size(); ++i) {
      const size_t other = group.uses[i];
      if (other == parameter || std::find(seen.begin(), seen.end(), other) != seen.end()) continue;
      seen.push_back(other);
      bytes += parameters_[other].bytes;
      if (bytes > largest_) return false;
    }
    return true;
  }

  ValueId copy_of(ValueId id, Gathered& own, const Node& use) {
    const auto known = own.copies.find(id);
    if (known != own.copies.end()) return known->second;
    const Parameter& parameter = parameters_[static_cast<size_t>(this->parameter(id))];
    // The traced nodes from the parameter to the value.
    std::vector<const Node*> steps;
    ValueId root = id;
    for (const Node* node = traced_maker(id); node != nullptr; node = traced_maker(root)) {
      steps.push_back(node);
      root = node->inputs[0];
    }
    std::reverse(steps.begin(), steps.end());
    ValueId now = root;
    size_t next = 0;
    for (; next < steps.size() && narrows(*steps[next]); ++next) {
      Value part = graph_.value(steps[next]->outputs[0]);
      part.nd_sbp = parameter.sbp;
      now = add(*steps[next], now, std::move(part), use);
    }
    const ValueId origin = next == 0 ? root : steps[next - 1]->outputs[0];
    const auto whole = own.copies.find(origin);
    now =
        whole != own.copies.end() ? whole->second : redistributed(now, parameter.whole.nd_sbp, use);
    own.copies[origin] = now;
    for (; next < steps.size(); ++next) {
      const ValueId traced = steps[next]->outputs[0];
      const auto made = own.copies.find(traced);
      now = made != own.copies.end() ? made->second
                                     : add(*steps[next], now, graph_.value(traced), use);
      own.copies[traced] = now;
    }
    return now;
  }

  bool narrows(const Node& node) const {
    return node.op == &ops::kCast && dtype_size(graph_.value(node.outputs[0]).dtype) <
                                         dtype_size(graph_.value(node.inputs[0]).dtype);
  }

  // Brings the value that is written to a sharded capture to the capture's layout.
  void shard_result(Capture& capture, const GraphUses& uses) {
    const NdSbp& wanted = graph_.value(capture.initial).nd_sbp;
    if (parameter(capture.initial) < 0 || capture.final_value == capture.initial ||
        graph_.value(capture.final_value).nd_sbp == wanted) {
      return;
    }
    const Node* writer = uses.maker_node(capture.final_value);
    FLOW_ASSERT(writer != nullptr, "value %", capture.final_value, " is never made");
    capture.final_value = redistributed(capture.final_value, NdSbp(wanted), Node(*writer));
  }

  Graph& graph_;
  ShardOptions options_;
  std::vector<Parameter> parameters_;
  size_t largest_ = 0;             // bytes of the largest parameter
  std::optional<GraphUses> uses_;  // of the traced nodes
  // By traced value: the parameter that the value is or shows, or -1.
  IdMap<ValueId, int64_t> parameter_of_;
  const std::vector<Node>* old_ = nullptr;
  std::map<std::pair<int64_t, int64_t>, Group> groups_;
};

}  // namespace

int64_t shard_captures(Graph& graph, std::span<const ShardedCapture> shards,
                       const ShardOptions& options) {
  if (!shards.empty()) CaptureSharder(graph, shards, options).run();
  return static_cast<int64_t>(shards.size());
}

}  // namespace flow::graph
