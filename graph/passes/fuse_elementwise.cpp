#include "graph/passes/fuse_elementwise.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "boxing/redistribute_op.h"
#include "core/env.h"
#include "graph/ir/graph_uses.h"
#include "graph/ir/id_map.h"
#include "graph/passes/dead_nodes.h"
#include "ops/conv/conv_op.h"
#include "ops/elementwise/fused_op.h"

namespace flow::graph {

namespace {

using ops::FusedOperand;
using ops::FusedProgram;

// Smaller tensors stay in the first cache.
constexpr int64_t kLeastElements = 8192;
// How far the first and the last node of a group may be apart.
constexpr size_t kMostDistance = 256;

// Nodes that become one, in program order. The last one is where the result is computed.
struct Group {
  std::vector<size_t> nodes;

  size_t first() const { return nodes.front(); }

  size_t last() const { return nodes.back(); }

  bool contains(size_t node) const { return std::binary_search(nodes.begin(), nodes.end(), node); }
};

// The bytes of the values that are in use while each node runs. Inputs and captures are not
// counted, and neither is scratch memory.
class LiveBytes {
 public:
  LiveBytes(const Graph& graph, const GraphUses& uses)
      : graph_(graph), uses_(uses), root_(graph.values.size()), last_use_(graph.values.size(), 0) {
    for (ValueId id = 0; root_.contains(id); ++id)
      root_[id] = id;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      const bool is_view = node.op->view != nullptr && node.op != &boxing::kRedistribute;
      if (is_view) root_[node.outputs[0]] = root_[node.inputs[0]];
      for (const ValueId id : node.inputs) {
        if (id != kNoValue) last_use_[root_[id]] = i;
      }
      for (const ValueId id : node.outputs)
        last_use_[root_[id]] = i;
    }
    for (const ValueId id : graph.outputs)
      last_use_[root_[id]] = graph.nodes.size();
    for (const Capture& capture : graph.captures)
      last_use_[root_[capture.final_value]] = graph.nodes.size();
    count();
  }

  // Whether the peak stays if the nodes of the group run where its last one does. The memory is
  // then that of the graph with this group. `is_returned`: whether others read a node's result.
  template <class IsReturned>
  bool accept(const Group& group, std::span<const ValueId> inputs, const IsReturned& is_returned) {
    const size_t first = group.first(), last = group.last();
    std::vector<int64_t> change(last - first + 2, 0);
    const auto add = [&](size_t begin, size_t end, int64_t bytes) {  // nodes [begin, end)
      if (begin >= end) return;
      change[begin - first] += bytes;
      change[end - first] -= bytes;
    };
    std::map<ValueId, size_t> longer;  // values that are in use until the last node
    for (const ValueId input : inputs) {
      const ValueId root = root_[input];
      if (uses_.maker(root) >= 0 && last_use_[root] < last) longer[root] = last_use_[root];
    }
    for (const auto& [root, last_use] : longer)
      add(std::max(last_use + 1, first), last + 1, bytes_of(root));
    for (const size_t node : group.nodes) {
      if (node == last) continue;
      const ValueId result = graph_.nodes[node].outputs[0];
      add(node, is_returned(node) ? last : std::min(last_use_[result], last) + 1,
          -bytes_of(result));
    }
    int64_t sum = 0;
    for (size_t i = first; i <= last; ++i) {
      sum += change[i - first];
      if (live_[i] + sum > peak_ && sum > 0) return false;
    }
    sum = 0;
    for (size_t i = first; i <= last; ++i) {
      sum += change[i - first];
      live_[i] += sum;
    }
    for (const auto& [root, last_use] : longer)
      last_use_[root] = last;
    return true;
  }

 private:
  int64_t bytes_of(ValueId id) const {
    const Value& value = graph_.value(id);
    return value.shape.numel() * static_cast<int64_t>(dtype_size(value.dtype));
  }

  void count() {
    std::vector<int64_t> change(graph_.nodes.size() + 2, 0);
    for (ValueId id = 0; root_.contains(id); ++id) {
      const int64_t maker = uses_.maker(id);
      if (maker < 0 || root_[id] != id) continue;
      change[static_cast<size_t>(maker)] += bytes_of(id);
      change[last_use_[id] + 1] -= bytes_of(id);
    }
    int64_t sum = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      sum += change[i];
      live_.push_back(sum);
      peak_ = std::max(peak_, sum);
    }
  }

  const Graph& graph_;
  const GraphUses& uses_;
  IdMap<ValueId, ValueId> root_;  // the value whose memory a view shows
  IdMap<ValueId, size_t> last_use_;
  std::vector<int64_t> live_;  // by node
  int64_t peak_ = 0;
};

class Fusion {
 public:
  Fusion(Graph& graph, const MicroBatchCut* cut)
      : graph_(graph), cut_(cut), uses_(graph), group_of_(graph.nodes.size(), kNone) {
    int64_t barriers = 0;
    for (const Node& node : graph.nodes) {
      if (node.op->mutates != 0 || node.op->has_effect) ++barriers;
      barriers_before_.push_back(barriers);
      is_convolved_ |= node.op == &ops::kConv;
    }
  }

  int64_t run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_candidate(i)) join_with_makers(i);
    }
    return rewrite();
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // What a group computes, and the values that it reads.
  struct Fused {
    FusedProgram program;
    std::vector<ValueId> inputs;
  };

  ValueId result_of(size_t node) const { return graph_.nodes[node].outputs[0]; }

  bool is_candidate(size_t index) const {
    const Node& node = graph_.nodes[index];
    if (node.outputs.size() != 1 || node.inputs.empty() || !FusedProgram::can_contain(*node.op))
      return false;
    const Value& result = graph_.value(node.outputs[0]);
    if (result.shape.numel() < least_elements_) return false;
    const bool is_on_cuda = result.device == DeviceType::kCuda;
    if (is_on_cuda && !(ops::fused_code_on_cuda(*node.op) && ops::is_fused_on_cuda(result.dtype)))
      return false;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) return false;
      const Value& value = graph_.value(input);
      if (value.device != result.device || (is_on_cuda && !ops::is_fused_on_cuda(value.dtype)))
        return false;
    }
    return cut_ == nullptr || is_in_parts(index);
  }

  // Whether the node runs in each micro-batch on parts of the batch.
  bool is_in_parts(size_t index) const {
    const Node& node = graph_.nodes[index];
    if (cut_->node_time[index] != NodeTime::kEach || cut_->is_positional[index] ||
        !cut_->sbp_of(node.outputs[0]).is_split()) {
      return false;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_plain = cut_->input_sbp[index][i] == cut_->sbp_of(node.inputs[i]);
      if (!is_plain || cut_->is_per_micro_batch_of(node.inputs[i])) return false;
    }
    return true;
  }

  bool is_alike(size_t a, size_t b) const {
    const Node &left = graph_.nodes[a], &right = graph_.nodes[b];
    const Value &x = graph_.value(left.outputs[0]), &y = graph_.value(right.outputs[0]);
    return runs_alike(left, right) && x.shape == y.shape && x.placement == y.placement &&
           x.nd_sbp == y.nd_sbp &&
           (cut_ == nullptr || cut_->sbp_of(left.outputs[0]) == cut_->sbp_of(right.outputs[0]));
  }

  void join_with_makers(size_t index) {
    size_t own = groups_.size();
    groups_.push_back({{index}});
    group_of_[index] = own;
    for (const ValueId input : graph_.nodes[index].inputs) {
      const int64_t maker = uses_.maker(input);
      if (maker < 0) continue;
      const size_t other = group_of_[static_cast<size_t>(maker)];
      if (other == kNone || other == own || !is_alike(static_cast<size_t>(maker), index)) continue;
      Group joined;
      std::ranges::merge(groups_[own].nodes, groups_[other].nodes,
                         std::back_inserter(joined.nodes));
      if (!is_allowed(joined)) continue;
      for (const size_t node : joined.nodes)
        group_of_[node] = own;
      groups_[own] = std::move(joined);
      groups_[other].nodes.clear();
    }
  }

  // True if a node outside of the group reads the result, or the step returns or keeps it.
  bool is_returned(const Group& group, size_t node) const {
    const std::span<const size_t> readers = uses_.readers(result_of(node));
    return uses_.num_uses(result_of(node)) != static_cast<int64_t>(readers.size()) ||
           std::any_of(readers.begin(), readers.end(),
                       [&](size_t reader) { return !group.contains(reader); });
  }

  bool is_allowed(const Group& group) const {
    const bool is_far = group.last() - group.first() > kMostDistance ||
                        barriers_before_[group.last()] != barriers_before_[group.first()];
    if (is_far || !fused(group)) return false;
    int64_t num_returned = 0;
    for (const size_t node : group.nodes) {
      const std::span<const size_t> readers = uses_.readers(result_of(node));
      const bool is_early = std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
        return reader < group.last() && !group.contains(reader);
      });
      if (is_early) return false;
      if (node == group.last() || is_returned(group, node)) ++num_returned;
    }
    return num_returned == 1 || !may_be_blocked(group);
  }

  // A single op keeps the blocked layout of a convolution only if all its operands have it. With
  // several results, the layout of the first may differ from that of the last.
  bool may_be_blocked(const Group& group) const {
    const Value& result = graph_.value(result_of(group.last()));
    return is_convolved_ && result.shape.size() > 2;
  }

  // Returns nothing if a program has no room for the group.
  std::optional<Fused> fused(const Group& group) const {
    Fused made;
    if (group.nodes.size() > FusedProgram::kMaxInstructions) return {};
    for (size_t i = 0; i < group.nodes.size(); ++i) {
      const Node& node = graph_.nodes[group.nodes[i]];
      std::vector<FusedOperand> operands;
      for (const ValueId input : node.inputs) {
        const auto maker = static_cast<size_t>(uses_.maker(input));
        const auto inside = std::lower_bound(group.nodes.begin(), group.nodes.end(), maker);
        if (uses_.maker(input) >= 0 && inside != group.nodes.end() && *inside == maker) {
          operands.push_back(
              FusedOperand::result(static_cast<size_t>(inside - group.nodes.begin())));
          continue;
        }
        const auto known = std::find(made.inputs.begin(), made.inputs.end(), input);
        const auto number = static_cast<size_t>(known - made.inputs.begin());
        if (number == FusedProgram::kMaxInputs) return {};
        if (known == made.inputs.end()) made.inputs.push_back(input);
        operands.push_back(FusedOperand::input(number));
      }
      if (!made.program.add(*node.op, operands, node.raw_attrs())) return {};
      if (is_returned(group, group.nodes[i])) made.program.set_returned(i);
    }
    return made;
  }

  int64_t rewrite() {
    const bool has_groups = std::any_of(groups_.begin(), groups_.end(),
                                        [](const Group& group) { return group.nodes.size() > 1; });
    if (!has_groups) return 0;
    LiveBytes live(graph_, uses_);
    std::vector<bool> is_removed(graph_.nodes.size(), false);
    std::map<size_t, Node> joined;  // by the node that each replaces
    for (const Group& group : groups_) {
      if (group.nodes.size() < 2) continue;
      const std::optional<Fused> made = fused(group);
      FLOW_ASSERT(made.has_value(), "a group that has grown does not fit a program");
      const auto returned = [&](size_t node) { return is_returned(group, node); };
      if (!live.accept(group, made->inputs, returned)) continue;
      for (const size_t node : group.nodes)
        is_removed[node] = true;
      joined.emplace(group.last(), node_of(group, *made));
    }
    if (joined.empty()) return 0;
    const size_t before = graph_.nodes.size();
    std::vector<Node> nodes;
    for (size_t i = 0; i < before; ++i) {
      const auto found = joined.find(i);
      if (found != joined.end()) {
        nodes.push_back(std::move(found->second));
      } else if (!is_removed[i]) {
        nodes.push_back(std::move(graph_.nodes[i]));
      }
    }
    graph_.nodes = std::move(nodes);
    renumber_values(graph_);
    return static_cast<int64_t>(before - graph_.nodes.size());
  }

  // At the line of the last node.
  Node node_of(const Group& group, const Fused& made) const {
    Node node = graph_.nodes[group.last()];
    const ops::FusedAttrs attrs{made.program};
    node.op = &ops::kFusedElementwise;
    node.attrs.resize(sizeof(attrs));
    std::memcpy(node.attrs.data(), &attrs, sizeof(attrs));
    node.inputs = made.inputs;
    node.outputs.clear();
    for (size_t i = 0; i < group.nodes.size(); ++i) {
      if (made.program.is_returned(i)) node.outputs.push_back(result_of(group.nodes[i]));
    }
    return node;
  }

  Graph& graph_;
  const MicroBatchCut* cut_;
  GraphUses uses_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  // by node
  std::vector<int64_t> barriers_before_;
  bool is_convolved_ = false;
  int64_t least_elements_ = least_fused_elements();
};

}  // namespace

int64_t least_fused_elements() {
  return env_int("FLOW_FUSE_LEAST_ELEMENTS", kLeastElements);
}

int64_t fuse_elementwise(Graph& graph) {
  return Fusion(graph, nullptr).run();
}

int64_t fuse_elementwise(Graph& graph, const MicroBatchCut& cut) {
  return Fusion(graph, &cut).run();
}

}  // namespace flow::graph
