#include "tools/flow_plan/plan_diff.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "graph/program/program.h"
#include "tools/flow_plan/sequence_diff.h"
#include "tools/flow_plan/step_names.h"
#include "tools/flow_plan/transfers.h"

namespace flow::tools {

namespace {

using graph::CompiledArtifact;
using graph::Program;
using graph::SavedPlan;
using graph::Step;

constexpr size_t kMostLines = 200;  // of a section

// A section of the text; it is left out if it stays empty.
class Section {
 public:
  explicit Section(std::string title) : title_(std::move(title)) {}

  void line(char sign, const std::string& text) {
    if (++count_ <= kMostLines) lines_ += str("  ", sign, ' ', text, '\n');
  }

  // A value that may differ.
  template <class T>
  void pair(const char* what, const T& a, const T& b) {
    if (!(a == b)) line('~', str(what, ": ", a, " -> ", b));
  }

  std::string text() const {
    if (count_ == 0) return {};
    std::string all = title_ + ":\n" + lines_;
    if (count_ > kMostLines) all += str("  and ", count_ - kMostLines, " others\n");
    return all;
  }

 private:
  std::string title_;
  std::string lines_;
  size_t count_ = 0;
};

// A step in the parts by which it is compared.
struct StepText {
  std::string op;    // the op with its attributes, and the partner of a message
  std::string data;  // shapes, dtypes and layouts
  std::string line;  // line and module

  std::string all() const { return str(op, ' ', data, line.empty() ? "" : " at ", line); }
};

StepText text_of(const Program& program, const Step& step) {
  StepText text;
  text.op = step.name();
  if (const graph::OpCall* call = step.op_call(); call != nullptr && call->op->attrs != nullptr)
    text.op += str('{', call->op->attrs->to_string(call->raw_attrs()), '}');
  if (const auto* send = step.as<graph::SendStep>()) text.op += str(" to ", send->peer);
  if (const auto* receive = step.as<graph::ReceiveStep>()) text.op += str(" from ", receive->peer);
  if (step.turn == graph::StepTurn::kFirst) text.op += " in the first run";
  if (step.turn == graph::StepTurn::kLater) text.op += " in later runs";
  if (step.in_background) text.op += " in the background";
  if (step.guard != graph::kNoBuffer) text.op += " if allowed";
  const auto list = [&](const std::vector<graph::BufferId>& ids) {
    std::string all;
    for (const graph::BufferId id : ids) {
      if (!all.empty()) all += ", ";
      if (id == graph::kNoBuffer) {
        all += "none";
        continue;
      }
      const TensorMeta& meta = *program.buffer(id).meta;
      all += str(meta);
      if (!(meta.local_shape == meta.shape)) all += str(" here ", meta.local_shape);
    }
    return all;
  };
  text.data = str('(', list(step.inputs), ") -> ", list(step.outputs));
  text.line = line_of(step);
  if (!step.module.empty()) text.line += " in " + step.module;
  return text;
}

std::vector<StepText> texts_of(const Program& program) {
  std::vector<StepText> texts;
  for (const Step& step : program.steps)
    texts.push_back(text_of(program, step));
  return texts;
}

// Compares steps by all that is said of them; what remains between equal steps by less and less.
class StepDiff {
 public:
  StepDiff(const Program& a, const Program& b, Section& section)
      : a_(texts_of(a)), b_(texts_of(b)), section_(section) {}

  void run() {
    align(0, a_.size(), 0, b_.size(), 0);
    if (num_moved_ > 0) {
      section_.line('~', str(num_moved_, num_moved_ == 1 ? " step differs" : " steps differ",
                             " only in the line or module, for example ", moved_));
    }
  }

 private:
  // All; all but the line; op and line.
  static constexpr int kNumKeys = 3;

  static std::string key_of(const StepText& text, int which) {
    if (which == 0) return text.all();
    if (which == 1) return str(text.op, '\n', text.data);
    return str(text.op.substr(0, text.op.find('{')), '\n', text.line);
  }

  void align(size_t begin_a, size_t end_a, size_t begin_b, size_t end_b, int which) {
    if (begin_a == end_a || begin_b == end_b || which == kNumKeys) {
      for (size_t i = begin_a; i < end_a; ++i)
        section_.line('-', a_[i].all());
      for (size_t i = begin_b; i < end_b; ++i)
        section_.line('+', b_[i].all());
      return;
    }
    std::map<std::string, uint32_t> ids;
    const auto numbers = [&](const std::vector<StepText>& texts, size_t begin, size_t end) {
      std::vector<uint32_t> list;
      for (size_t i = begin; i < end; ++i) {
        const auto next = static_cast<uint32_t>(ids.size());
        list.push_back(ids.try_emplace(key_of(texts[i], which), next).first->second);
      }
      return list;
    };
    const std::vector<uint32_t> left = numbers(a_, begin_a, end_a);
    const std::vector<uint32_t> right = numbers(b_, begin_b, end_b);
    size_t at_a = begin_a, at_b = begin_b;
    for (const auto& [i, j] : common_subsequence(left, right)) {
      align(at_a, begin_a + i, at_b, begin_b + j, which + 1);
      note(a_[begin_a + i], b_[begin_b + j], which);
      at_a = begin_a + i + 1;
      at_b = begin_b + j + 1;
    }
    align(at_a, end_a, at_b, end_b, which + 1);
  }

  void note(const StepText& a, const StepText& b, int which) {
    if (which == 0) return;
    if (which == 1) {
      if (num_moved_++ == 0) moved_ = str(a.op, " at ", a.line, " -> ", b.line);
      return;
    }
    const bool same_op = a.op == b.op, same_data = a.data == b.data;
    section_.line('~', str(a.op, same_op ? "" : " -> " + b.op,
                           same_data ? "" : " " + a.data + " -> " + b.data,
                           a.line.empty() ? "" : " at ", a.line));
  }

  std::vector<StepText> a_, b_;
  Section& section_;
  size_t num_moved_ = 0;
  std::string moved_;
};

void compare_lists(const std::vector<std::string>& a, const std::vector<std::string>& b,
                   Section& section) {
  std::map<std::string, uint32_t> ids;
  const auto numbers = [&](const std::vector<std::string>& texts) {
    std::vector<uint32_t> list;
    for (const std::string& text : texts)
      list.push_back(ids.try_emplace(text, static_cast<uint32_t>(ids.size())).first->second);
    return list;
  };
  const std::vector<uint32_t> left = numbers(a), right = numbers(b);
  size_t at_a = 0, at_b = 0;
  const auto skip_to = [&](size_t i, size_t j) {
    for (; at_a < i; ++at_a)
      section.line('-', a[at_a]);
    for (; at_b < j; ++at_b)
      section.line('+', b[at_b]);
  };
  for (const auto& [i, j] : common_subsequence(left, right)) {
    skip_to(i, j);
    ++at_a;
    ++at_b;
  }
  skip_to(a.size(), b.size());
}

std::string origin_difference(const SavedPlan& a, const SavedPlan& b) {
  Section section("compiled from");
  for (const auto& [name, value] : a.key.facts) {
    if (name == "build") continue;
    const std::string other = b.key.fact(name);
    if (other != value)
      section.line('~', str(name, ": ", value, " -> ", other.empty() ? "nothing" : other));
  }
  for (const auto& [name, value] : b.key.facts) {
    const bool is_known =
        std::any_of(a.key.facts.begin(), a.key.facts.end(),
                    [&, &name = name](const auto& fact) { return fact.first == name; });
    if (!is_known && name != "build") section.line('+', str(name, ": ", value));
  }
  return section.text();
}

std::vector<std::string> values_of(const graph::Graph& graph) {
  std::vector<std::string> texts;
  const auto add = [&](const char* what, size_t number, graph::ValueId id) {
    texts.push_back(str(what, ' ', number, ": ", *graph.value(id).meta_on(0)));
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    add("input", i, graph.inputs[i]);
  for (size_t i = 0; i < graph.captures.size(); ++i) {
    const graph::Capture& capture = graph.captures[i];
    add(capture.initial == capture.final_value ? "tensor from outside, read,"
                                               : "tensor from outside, written,",
        i, capture.initial);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    add("output", i, graph.outputs[i]);
  return texts;
}

std::vector<std::string> passes_of(const CompiledArtifact& step) {
  std::vector<std::string> texts;
  for (const graph::PassResult& pass : step.passes)
    texts.push_back(str(pass.name, ": ", pass.changes, " changes"));
  return texts;
}

std::string memory_difference(const CompiledArtifact& a, const CompiledArtifact& b, int64_t rank,
                              const std::string& whose) {
  Section section("memory of " + whose);
  const auto& left = a.certificate.ranks[static_cast<size_t>(rank)];
  const auto& right = b.certificate.ranks[static_cast<size_t>(rank)];
  section.pair("arena bytes", left.arena_bytes, right.arena_bytes);
  section.pair("peak bytes of values", left.peak_bytes, right.peak_bytes);
  section.pair("peak at", left.peak_at, right.peak_at);
  section.pair("scratch bytes", left.scratch_bytes, right.scratch_bytes);
  section.pair("scratch of", left.scratch_at, right.scratch_at);
  section.pair("peak bytes from the allocator", peak_bytes_of(a, rank), peak_bytes_of(b, rank));
  section.pair("collectives", left.num_collectives, right.num_collectives);
  section.pair("messages", left.num_messages, right.num_messages);
  return section.text();
}

std::string transfer_difference(const Program& a, const Program& b, int64_t rank,
                                const std::string& whose) {
  const auto texts = [&](const Program& program) {
    std::vector<std::string> list;
    for (const Transfer& it : transfers_of(program, rank)) {
      list.push_back(str(it.route, " of ", it.what, ", ", it.reason, ", ", it.count, " times ",
                         it.bytes, " bytes, for ", it.origin.text()));
    }
    std::sort(list.begin(), list.end());
    return list;
  };
  Section section("transfers of " + whose);
  compare_lists(texts(a), texts(b), section);
  return section.text();
}

std::string runs_of(const Program& program) {
  std::string text;
  for (const graph::ProgramPart& part : program.parts)
    text += str(text.empty() ? "" : " ", part.name);
  return text;
}

std::string program_difference(const CompiledArtifact& a, const CompiledArtifact& b, int64_t rank,
                               const std::string& whose) {
  const Program &left = a.program_of(rank), &right = b.program_of(rank);
  Section section(
      str("steps of ", whose, " (", left.steps.size(), " -> ", right.steps.size(), ")"));
  StepDiff(left, right, section).run();
  section.pair("blocks", left.blocks.size(), right.blocks.size());
  section.pair("runs of blocks", left.runs.size(), right.runs.size());
  section.pair("order of actions", runs_of(left), runs_of(right));
  return section.text() + memory_difference(a, b, rank, whose) +
         transfer_difference(left, right, rank, whose);
}

}  // namespace

std::string difference(const SavedPlan& a, const SavedPlan& b) {
  std::string text = origin_difference(a, b);
  Section values("inputs, tensors from outside and outputs");
  compare_lists(values_of(a.step.graph), values_of(b.step.graph), values);
  Section passes("passes");
  compare_lists(passes_of(a.step), passes_of(b.step), passes);
  Section ranks("ranks");
  ranks.pair("number", a.step.programs.size(), b.step.programs.size());
  text += values.text() + passes.text() + ranks.text();
  std::set<std::pair<const Program*, const Program*>> known;
  const size_t both = std::min(a.step.programs.size(), b.step.programs.size());
  for (size_t rank = 0; rank < both; ++rank) {
    const std::pair programs(a.step.programs[rank].get(), b.step.programs[rank].get());
    if (!known.insert(programs).second) continue;
    const auto number = static_cast<int64_t>(rank);
    text += program_difference(a.step, b.step, number, str("rank ", rank));
  }
  return text;
}

}  // namespace flow::tools
