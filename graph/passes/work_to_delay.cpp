#include "graph/passes/work_to_delay.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <set>
#include <span>

#include "graph/ir/memory_roots.h"
#include "graph/passes/node_cost.h"
#include "graph/passes/redistributions.h"

namespace flow::graph {

DelayableWork::DelayableWork(const Graph& graph, const GraphUses& uses)
    : graph_(graph),
      uses_(uses),
      root_(memory_roots(graph)),
      bytes_(graph.values.size(), 0),
      read_until_(graph.values.size(), 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId output : graph.nodes[i].outputs) {
      if (root_[output] != output) continue;
      bytes_[output] = part_bytes(graph.value(output));
      read_until_[output] = i + 1;
    }
    for (const ValueId input : graph.nodes[i].inputs) {
      if (input != kNoValue) read_until_[root_[input]] = i + 1;
    }
  }
  const auto keep = [&](ValueId id) {
    if (id != kNoValue) read_until_[root_[id]] = graph.nodes.size();
  };
  std::for_each(graph.inputs.begin(), graph.inputs.end(), keep);
  std::for_each(graph.outputs.begin(), graph.outputs.end(), keep);
  for (const Capture& capture : graph.captures) {
    keep(capture.initial);
    keep(capture.final_value);
  }
}

// What one search knows while it goes back from the transfer.
struct DelayableWork::Search {
  const DelayableWork& work;
  size_t transfer, from, place;
  std::set<ValueId> needed;   // the roots that the transfer and what it needs read
  std::set<ValueId> written;  // the roots that nodes write which stay before `place`
  std::set<size_t> delayed;
  std::vector<int64_t> live;  // predicted bytes at the nodes [from, place), with the delays so far
  int64_t most_live;

  bool contains_root(const std::set<ValueId>& set, ValueId id) const {
    return id != kNoValue && set.contains(work.root_[id]);
  }

  bool is_read_before_place(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      const std::span<const size_t> readers = work.uses_.readers(output);
      return std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
        // An earlier transfer starts as soon as its input exists.
        const bool is_early = reader < transfer && is_transfer(work.graph_.nodes[reader]);
        return (reader < place || is_early) && !delayed.contains(reader);
      });
    });
  }

  bool is_needed(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return contains_root(needed, id); });
  }

  bool reads_what_changes(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return contains_root(written, id); });
  }

  // The node stays where it is; whether the transfer needs it.
  void keep(const Node& node, bool is_needed) {
    if (is_needed) {
      for (const ValueId input : node.inputs) {
        if (input != kNoValue) needed.insert(work.root_[input]);
      }
    }
    for (uint32_t left = node.op->mutates; left != 0; left &= left - 1)
      written.insert(work.root_[node.inputs[static_cast<size_t>(std::countr_zero(left))]]);
  }

  // The predicted bytes with the node at `place`: what it reads lives until then, what it makes
  // only from then on.
  std::vector<int64_t> live_after(size_t index) const {
    const Node& node = work.graph_.nodes[index];
    std::vector<int64_t> bytes = live;
    std::set<ValueId> seen;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || !seen.insert(work.root_[input]).second) continue;
      for (size_t i = std::max(work.read_until_[work.root_[input]], index); i < place; ++i)
        bytes[i - from] += work.bytes_[work.root_[input]];
    }
    if (node.op->view == nullptr && node.op->mutates == 0) {
      for (const ValueId output : node.outputs) {
        for (size_t i = index; i < std::min(place, work.read_until_[output]); ++i)
          bytes[i - from] -= work.bytes_[output];
      }
    }
    return bytes;
  }

  bool try_to_delay(size_t index) {
    std::vector<int64_t> bytes = live_after(index);
    if (*std::max_element(bytes.begin(), bytes.end()) > most_live) return false;
    live = std::move(bytes);
    delayed.insert(index);
    return true;
  }
};

bool DelayableWork::may_wait(const Node& node, int64_t stage) const {
  return (node.phase == Phase::kBackward || node.phase == Phase::kUpdate) && node.stage == stage &&
         node.guard < 0 && !node.op->has_effect && !node.op->is_random && !node.is_transient &&
         !is_transfer(node);
}

const std::vector<int64_t>& DelayableWork::live_bytes(int64_t stage) {
  const auto [found, is_new] = live_.try_emplace(stage);
  std::vector<int64_t>& changes = found->second;
  if (!is_new) return changes;
  changes.resize(graph_.nodes.size() + 1, 0);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (node.stage != stage) continue;
    for (const ValueId output : node.outputs) {
      if (root_[output] != output) continue;
      changes[i] += bytes_[output];
      changes[read_until_[output]] -= bytes_[output];
    }
  }
  for (size_t i = 1; i < changes.size(); ++i)
    changes[i] += changes[i - 1];
  changes.pop_back();
  return changes;
}

std::vector<size_t> DelayableWork::find(size_t transfer, size_t from, size_t place,
                                        double wanted_us) {
  const int64_t stage = graph_.nodes[transfer].stage;
  const std::vector<int64_t>& live = live_bytes(stage);
  Search search{
      *this, transfer, from, place, {}, {}, {}, {}, *std::max_element(live.begin(), live.end())};
  search.live.assign(live.begin() + static_cast<std::ptrdiff_t>(from),
                     live.begin() + static_cast<std::ptrdiff_t>(place));
  search.keep(graph_.nodes[transfer], true);
  double found_us = 0;
  for (size_t i = std::min(place, transfer); i-- > from && found_us < wanted_us;) {
    const Node& node = graph_.nodes[i];
    if (node.phase == Phase::kForward) break;
    const bool is_needed = search.is_needed(node);
    if (!is_needed && may_wait(node, stage) && !search.is_read_before_place(node) &&
        !search.reads_what_changes(node) && search.try_to_delay(i)) {
      found_us += predicted_us(graph_, node);
    } else {
      search.keep(node, is_needed);
    }
  }
  // Views and updates that nothing waits for hide nothing by themselves.
  if (found_us == 0) return {};
  return {search.delayed.begin(), search.delayed.end()};
}

}  // namespace flow::graph
