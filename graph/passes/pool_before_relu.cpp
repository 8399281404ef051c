#include "graph/passes/pool_before_relu.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/passes/dead_nodes.h"
#include "ops/conv/pool_op.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/unary_op.h"

namespace flow::graph {

namespace {

// Nodes by their positions: a relu, the max_pool of its result, and for each gradient of the
// max_pool the gradient of the relu that alone reads it.
struct Match {
  size_t relu = 0;
  size_t pool = 0;
  std::vector<std::pair<size_t, size_t>> gradients = {};
};

class Exchange {
 public:
  explicit Exchange(Graph& graph) : graph_(graph), uses_(graph) {}

  int64_t run() {
    std::vector<Match> matches;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op != &ops::op_of<ops::Relu>()) continue;
      if (const std::optional<Match> match = match_of(i)) matches.push_back(*match);
    }
    for (const Match& match : matches)
      rewrite(match);
    if (!matches.empty()) reorder();
    return static_cast<int64_t>(matches.size());
  }

 private:
  const Node& node(size_t index) const { return graph_.nodes[index]; }

  bool is_result(ValueId id) const {
    return uses_.num_uses(id) != static_cast<int64_t>(uses_.readers(id).size());
  }

  // A window without elements has the maximum -inf, of which relu would make 0.
  static bool has_full_windows(const Node& pool) {
    const auto& attrs = *static_cast<const ops::MaxPoolAttrs*>(pool.raw_attrs());
    const bool is_padded = std::any_of(attrs.padding.begin(), attrs.padding.end(),
                                       [](int64_t padding) { return padding != 0; });
    return attrs.is_adaptive() || (!is_padded && !attrs.ceil_mode);
  }

  std::optional<Match> match_of(size_t index) const {
    const Node& relu = node(index);
    const ValueId middle = relu.outputs[0];
    if (is_result(middle) || graph_.value(relu.inputs[0]) != graph_.value(middle)) return {};
    const std::span<const size_t> readers = uses_.readers(middle);
    const auto pool = std::find_if(readers.begin(), readers.end(), [&](size_t reader) {
      return node(reader).op == &ops::kMaxPool;
    });
    if (pool == readers.end() || !runs_alike(relu, node(*pool)) || !has_full_windows(node(*pool)))
      return {};
    Match match{.relu = index, .pool = *pool};
    size_t num_matched = 1;
    for (const size_t reader : readers) {
      if (node(reader).op != &ops::kMaxPoolBackward) continue;
      const std::optional<size_t> next = gradient_after(reader, match);
      if (!next) return {};
      match.gradients.emplace_back(reader, *next);
      num_matched += 2;  // both read the result of the relu
    }
    if (num_matched != readers.size()) return {};
    return match;
  }

  // The gradient of the relu that alone reads that of the max_pool.
  std::optional<size_t> gradient_after(size_t index, const Match& match) const {
    const Node &gradient = node(index), &pool = node(match.pool);
    const ValueId middle = node(match.relu).outputs[0], passed = gradient.outputs[0];
    const std::span<const size_t> readers = uses_.readers(passed);
    const bool fits = gradient.inputs[0] == middle && gradient.inputs[1] != middle &&
                      pool.op->attrs->equal(pool.raw_attrs(), gradient.raw_attrs(), true) &&
                      graph_.value(gradient.inputs[1]) == graph_.value(pool.outputs[0]) &&
                      graph_.value(passed) == graph_.value(middle);
    if (!fits || readers.size() != 1 || is_result(passed)) return {};
    const Node& next = node(readers[0]);
    const bool is_gradient = next.op == &ops::kReluGrad && next.inputs[0] == passed &&
                             next.inputs[1] == middle && runs_alike(gradient, next);
    if (!is_gradient) return {};
    return readers[0];
  }

  ValueId new_value_like(ValueId id) { return graph_.add_value(Value(graph_.value(id))); }

  void rewrite(const Match& match) {
    Node &relu = graph_.nodes[match.relu], &pool = graph_.nodes[match.pool];
    const ValueId x = relu.inputs[0], y = pool.outputs[0];
    relu.inputs = pool.outputs = {new_value_like(y)};
    relu.outputs = {y};
    pool.inputs = {x};
    relu_after_[match.pool] = match.relu;
    for (const auto& [first, second] : match.gradients) {
      Node &of_pool = graph_.nodes[first], &of_relu = graph_.nodes[second];
      const ValueId dy = of_pool.inputs[1], dx = of_relu.outputs[0];
      of_relu.inputs = {dy, y};
      of_relu.outputs = {new_value_like(y)};
      of_pool.inputs = {x, of_relu.outputs[0]};
      of_pool.outputs = {dx};
      std::swap(of_pool, of_relu);
    }
  }

  // Each relu comes right after its max_pool.
  void reorder() {
    std::vector<bool> is_moved(graph_.nodes.size(), false);
    for (const auto& [pool, relu] : relu_after_)
      is_moved[relu] = true;
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_moved[i]) continue;
      nodes.push_back(std::move(graph_.nodes[i]));
      const auto after = relu_after_.find(i);
      if (after != relu_after_.end()) nodes.push_back(std::move(graph_.nodes[after->second]));
    }
    graph_.nodes = std::move(nodes);
    renumber_values(graph_);
  }

  Graph& graph_;
  GraphUses uses_;
  std::map<size_t, size_t> relu_after_;  // by the max_pool
};

}  // namespace

int64_t pool_before_relu(Graph& graph) {
  return Exchange(graph).run();
}

}  // namespace flow::graph
