#include "graph/program/step_uses.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "graph/ir/memory_roots.h"
#include "ops/creation/copy_op.h"
#include "ops/shape/diagonal_op.h"
#include "ops/shape/slice_op.h"

namespace flow::graph {

namespace {

// Whether the node writes its input 1 into a copy of its input 0, as a write to a view is recorded.
bool is_put_back(const Node& node) {
  return node.op == &ops::kSliceScatter || node.op == &ops::kDiagonalScatter;
}

// Whether the node writes the whole value without reading it.
bool overwrites(const Node& node, ValueId id) {
  return (node.op == &ops::kCopy || node.op == &ops::kFill) && node.inputs[0] == id &&
         std::find(node.inputs.begin() + 1, node.inputs.end(), id) == node.inputs.end();
}

// What the node makes of a value that it writes in place; kNoValue: it does not write it.
ValueId written_form(const Node& node, ValueId id) {
  size_t output = 0;
  for (uint32_t left = node.op->mutates; left != 0; left &= left - 1, ++output) {
    if (node.inputs[static_cast<size_t>(std::countr_zero(left))] == id) return node.outputs[output];
  }
  return kNoValue;
}

}  // namespace

StepUses::StepUses(const Graph& graph, const Order& order)
    : graph_(graph),
      order_(order),
      uses_(graph),
      root_(memory_roots(graph)),
      last_read_(graph.values.size(), 0),
      is_summed_(graph.values.size(), false),
      is_read_in_parts_(graph.values.size(), false) {
  const MicroBatchCut& cut = order.cut;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs) {
      if (id == kNoValue) continue;
      if (cut.node_time[i] == NodeTime::kEach || cut.is_per_micro_batch_of(id)) {
        is_read_in_parts_[id] = true;
        read(id, time_of(i));
      } else {
        read_whole(id, time_of(i));
      }
    }
  }
  for (const ValueId id : graph.outputs)
    read_whole(id, std::numeric_limits<size_t>::max());
  // Captures are written at the end, with values that nothing writes in place any more.
  for (const Capture& capture : graph.captures)
    read_whole(capture.final_value, 0);
  // The output of a view op may share memory with its input, so a read of the output is a read of
  // both.
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.op->view != nullptr) read(node.inputs[0], last_read_[node.outputs[0]]);
  }
}

std::vector<ValueId> StepUses::values_in(ValueId root) const {
  std::vector<ValueId> values;
  for (ValueId value = 0; root_.contains(value); ++value) {
    if (root_[value] == root) values.push_back(value);
  }
  return values;
}

std::set<ValueId> StepUses::made_of(std::vector<ValueId> left, ValueId root,
                                    std::set<size_t>& put_backs) const {
  std::set<ValueId> made;
  while (!left.empty()) {
    const ValueId id = left.back();
    left.pop_back();
    if (!made.insert(id).second) continue;
    for (const size_t reader : uses_.readers(id)) {
      const Node& node = graph_.nodes[reader];
      const bool puts_back = is_put_back(node) && node.inputs[1] == id;
      if (puts_back && root_[node.inputs[0]] == root) put_backs.insert(reader);
      if (puts_back || node.op->view != nullptr) left.push_back(node.outputs[0]);
      const ValueId next = written_form(node, id);
      if (next != kNoValue) left.push_back(next);
    }
  }
  return made;
}

bool StepUses::damages_base(ValueId id, size_t node) const {
  const ValueId root = root_[id];
  if (root == id) return false;
  const std::vector<ValueId> values = values_in(root);
  std::vector<ValueId> written{written_form(graph_.nodes[node], id)};
  for (const ValueId value : values) {
    // What is written over as a whole later is not old any more.
    if (graph_.value(value).shape.numel() != graph_.value(root).shape.numel()) continue;
    for (const size_t reader : uses_.readers(value)) {
      if (time_of(reader) > time_of(node) && overwrites(graph_.nodes[reader], value))
        written.push_back(graph_.nodes[reader].outputs[0]);
    }
  }
  std::set<size_t> put_backs;
  const std::set<ValueId> made = made_of(std::move(written), root, put_backs);
  const auto is_old = [&](ValueId value) {
    return value != kNoValue && root_[value] == root && !made.contains(value);
  };
  const auto is_read_later = [&](ValueId value) {
    const auto readers = uses_.readers(value);
    return std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
      const Node& reading = graph_.nodes[reader];
      return time_of(reader) > time_of(node) && reading.op->view == nullptr &&
             !overwrites(reading, value) && !put_backs.contains(reader);
    });
  };
  return std::any_of(
             values.begin(), values.end(),
             [&](ValueId value) { return value != id && is_old(value) && is_read_later(value); }) ||
         std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is_old) ||
         std::any_of(graph_.captures.begin(), graph_.captures.end(),
                     [&](const Capture& capture) { return is_old(capture.final_value); });
}

void StepUses::read(ValueId id, size_t time) {
  last_read_[id] = std::max(last_read_[id], time);
}

void StepUses::read_whole(ValueId id, size_t time) {
  read(id, time);
  is_summed_[id] = order_.cut.sbp_of(id).is_partial();
}

}  // namespace flow::graph
