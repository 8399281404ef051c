#include "graph/run/rank_agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>
#include <string_view>

#include "core/context.h"
#include "core/error.h"
#include "core/hash.h"
#include "graph/ir/id_map.h"
#include "graph/program/communications.h"

namespace flow::graph {

namespace {

using Key = std::pair<uint64_t, uint64_t>;

// The keys on which this rank has agreed with the other ranks of a step.
struct AgreedKeys {
  std::set<Key> keys;
};

std::string text_of(const Value& value) {
  if (!value.placement.defined()) return str("local ", value.dtype);
  return str(value.dtype, ' ', value.shape, ' ', value.nd_sbp, " on ", value.placement);
}

// The lines about a step. Values are named by their number among the global ones, because ranks may
// compute different things with their local tensors.
class AgreementText {
 public:
  explicit AgreementText(const CompiledArtifact& step)
      : step_(step), graph_(step.graph), numbers_(graph_.values.size(), -1) {}

  std::vector<std::string> lines() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (is_global(graph_.inputs[i])) add(graph_.inputs[i], str("input ", i));
    }
    for (const Capture& capture : graph_.captures) {
      if (is_global(capture.initial)) add(capture.initial, "outside tensor");
    }
    for (const Node& node : graph_.nodes) {
      if (concerns_others(node)) add(node);
    }
    for (const Capture& capture : graph_.captures) {
      if (!is_global(capture.initial)) continue;
      lines_.push_back(
          str("outside tensor ", name_of(capture.initial), " to ", name_of(capture.final_value)));
    }
    for (const ValueId output : graph_.outputs) {
      if (is_global(output)) lines_.push_back(str("output ", name_of(output)));
    }
    const bool has_local = std::any_of(graph_.values.begin(), graph_.values.end(),
                                       [](const Value& v) { return !v.placement.defined(); });
    if (!has_local || draws_together_) lines_.push_back(str("draws ", graph_.num_draws));
    if (has_local) add_communications();
    for (const auto& [name, value] : step_.key.facts) {
      // The kernels of ranks may differ; the step itself was compared above.
      if (name != "step" && name != "build" && name != "instruction set") {
        lines_.push_back(str(name, ": ", value));
      }
    }
    return std::move(lines_);
  }

 private:
  bool is_global(ValueId id) const {
    return id != kNoValue && graph_.value(id).placement.defined();
  }

  bool concerns_others(const Node& node) const {
    const auto is_it = [&](ValueId id) { return is_global(id); };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_it) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_it);
  }

  std::string name_of(ValueId id) const {
    if (id == kNoValue) return "none";
    return is_global(id) ? str('%', numbers_[id]) : "local";
  }

  void add(ValueId id, const std::string& what) {
    number(id);
    lines_.push_back(str(what, ": ", text_of(graph_.value(id))));
  }

  void number(ValueId id) {
    if (is_global(id)) numbers_[id] = num_global_++;
  }

  void add(const Node& node) {
    std::string text = node.op->name;
    bool reads_local = false;
    const auto add_names = [&](const std::vector<ValueId>& ids) {
      text += '(';
      for (const ValueId id : ids)
        text += str(text.back() == '(' ? "" : ", ", name_of(id));
      text += ')';
    };
    add_names(node.inputs);
    for (const ValueId id : node.inputs)
      reads_local |= id != kNoValue && !is_global(id);
    const bool makes_global = std::any_of(node.outputs.begin(), node.outputs.end(),
                                          [&](ValueId id) { return is_global(id); });
    // Attrs of ops on local tensors may contain their shapes.
    if (makes_global && node.op->attrs != nullptr) {
      text += str(' ', node.op->attrs->to_string(node.raw_attrs()));
    }
    text += " -> ";
    for (const ValueId id : node.outputs)
      number(id);
    add_names(node.outputs);
    for (const ValueId id : node.outputs)
      text += str(' ', text_of(graph_.value(id)));
    text += str(" stage ", node.stage, " phase ", static_cast<int>(node.phase), " draw ", node.draw,
                " guard ", node.guard, node.is_transient ? " transient" : "", " transfer ",
                static_cast<int>(node.transfer_start));
    // Tells local tensors apart, such as the gradients of different parameters.
    if (makes_global && reads_local) text += str(" in ", node.module);
    draws_together_ |= makes_global && node.draw >= 0;
    lines_.push_back(str(text, '\t', node.file, ':', node.line));
  }

  // What the certificate has simulated. The programs of the other ranks were made from this rank's
  // local tensors; if all ranks have the same communications of all ranks, the proof holds.
  void add_communications() {
    std::set<const Program*> known;
    for (size_t rank = 0; rank < step_.programs.size(); ++rank) {
      const Program& program = *step_.programs[rank];
      if (!known.insert(&program).second) continue;
      for (const Communication& it : communications_of(program, static_cast<int64_t>(rank))) {
        lines_.push_back(str("communication of rank ", rank, ": kind ", static_cast<int>(it.kind),
                             ' ', it.what, " among", listed(it.ranks), ", ", it.bytes,
                             " bytes, tag ", it.tag, it.is_guarded ? ", guarded" : "",
                             it.in_background ? ", in the background" : ""));
      }
    }
  }

  static std::string listed(const std::vector<int64_t>& ranks) {
    std::string text;
    for (const int64_t rank : ranks)
      text += str(' ', rank);
    return text;
  }

  const CompiledArtifact& step_;
  const Graph& graph_;
  IdMap<ValueId, int64_t> numbers_;
  int64_t num_global_ = 0;
  bool draws_together_ = false;
  std::vector<std::string> lines_;
};

// A line without its call site.
std::string_view compared(const std::string& line) {
  return std::string_view(line).substr(0, line.find('\t'));
}

std::string readable(const std::string& line) {
  const size_t tab = line.find('\t');
  return tab == std::string::npos ? line : str(line.substr(0, tab), " at ", line.substr(tab + 1));
}

Key hash_of(const std::vector<std::string>& lines) {
  Hasher first(1), second(2);
  for (const std::string& line : lines) {
    std::string_view text = compared(line);
    first.add(uint64_t{text.size()});
    second.add(uint64_t{text.size()});
    while (!text.empty()) {
      uint64_t word = 0;
      const size_t bytes = std::min(sizeof(word), text.size());
      std::memcpy(&word, text.data(), bytes);
      first.add(word);
      second.add(word);
      text.remove_prefix(bytes);
    }
  }
  return {uint64_t{first.value()}, uint64_t{second.value()}};
}

std::vector<int64_t> ranks_of(const Graph& graph) {
  std::set<int64_t> ranks;
  for (const Value& value : graph.values) {
    if (!value.placement.defined()) continue;
    const auto& own = value.placement.ranks();
    ranks.insert(own.begin(), own.end());
  }
  return {ranks.begin(), ranks.end()};
}

std::string text_of_inputs(const Graph& graph) {
  std::string text;
  for (const ValueId input : graph.inputs)
    text += str(text.empty() ? "" : ", ", text_of(graph.value(input)));
  return text.empty() ? "no inputs" : text;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end, text.size() - 1) + 1);
  }
  return lines;
}

// Throws what two ranks compile differently. Collective: all members pass their own lines.
[[noreturn]] void throw_difference(boxing::Communicator& group,
                                   const std::vector<std::string>& own_lines,
                                   const std::vector<Key>& keys) {
  std::string own;
  for (const std::string& line : own_lines)
    own += line + '\n';
  const auto num_ranks = keys.size();
  const auto size = static_cast<int64_t>(own.size());
  std::vector<int64_t> sizes(num_ranks);
  group.all_gather(&size, sizes.data(), std::vector<int64_t>(num_ranks, sizeof size),
                   {.op = "compare steps"});
  std::string all(static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})), 0);
  group.all_gather(own.data(), all.data(), sizes, {.op = "compare steps"});
  const auto text_of_member = [&](size_t member) {
    const int64_t begin = std::accumulate(
        sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(member), int64_t{0});
    return split_lines(std::string_view(all).substr(static_cast<size_t>(begin),
                                                    static_cast<size_t>(sizes[member])));
  };
  const auto other = static_cast<size_t>(
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key != keys[0]; }) -
      keys.begin());
  const std::vector<std::string> first = text_of_member(0), second = text_of_member(other);
  size_t i = 0;
  while (i < std::min(first.size(), second.size()) && compared(first[i]) == compared(second[i]))
    ++i;
  const auto line = [&](const std::vector<std::string>& lines) {
    return i < lines.size() ? readable(lines[i]) : "nothing more";
  };
  throw InvalidArgument(str("[graph] ranks ", group.ranks()[0], " and ", group.ranks()[other],
                            " compiled different steps; rank ", group.ranks()[0], " has: ",
                            line(first), "; rank ", group.ranks()[other], " has: ", line(second),
                            "; let build(), its inputs and the options be the same on all ranks"));
}

}  // namespace

std::vector<std::string> agreement_lines(const CompiledArtifact& step) {
  return AgreementText(step).lines();
}

RankAgreement::RankAgreement(const CompiledArtifact& step)
    : step_(step),
      ranks_(ranks_of(step.graph)),
      concerns_others_(ranks_.size() > 1 &&
                       std::binary_search(ranks_.begin(), ranks_.end(), env::rank())),
      key_(concerns_others_ ? hash_of(agreement_lines(step)) : Key()),
      running_(&boxing::running_step(key_.first, text_of_inputs(step.graph))),
      is_reached_(!concerns_others_),
      has_errors_of_one_rank_(
          concerns_others_ &&
          std::any_of(step.graph.values.begin(), step.graph.values.end(), [&](const Value& value) {
            return !value.placement.defined() || value.placement.ranks().size() != ranks_.size();
          })) {}

void RankAgreement::reach(RankContext& rank) {
  if (is_reached_) return;
  std::set<Key>& agreed = rank.slot<AgreedKeys>().keys;
  if (!agreed.contains(key_)) {
    boxing::Communicator& group = boxing::communicator_for(rank, ranks_);
    const std::array<uint64_t, 2> own{key_.first, key_.second};
    std::vector<std::array<uint64_t, 2>> all(ranks_.size());
    group.all_gather(&own, all.data(), std::vector<int64_t>(ranks_.size(), sizeof own),
                     {.op = "compare steps"});
    std::vector<Key> keys;
    for (const auto& [first, second] : all)
      keys.emplace_back(first, second);
    const bool is_same =
        std::all_of(keys.begin(), keys.end(), [&](const Key& key) { return key == keys[0]; });
    if (!is_same) throw_difference(group, agreement_lines(step_), keys);
    agreed.insert(key_);
  }
  is_reached_ = true;
}

}  // namespace flow::graph
