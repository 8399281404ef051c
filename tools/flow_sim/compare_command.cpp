#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/error.h"
#include "tools/flow_sim/commands.h"
#include "tools/flow_sim/timeline_sums.h"

namespace flow::sim {

namespace {

constexpr double kLeastDifference = 5e-4;  // the smallest share of the span that is listed

using pipeline::Action;
using pipeline::TimelineFile;

const char* source_of(const TimelineFile& file) {
  return file.is_measured ? "measured" : "simulated";
}

std::string stages_on(const TimelineFile& file, int64_t rank) {
  std::string text;
  for (size_t stage = 0; stage < file.ranks.size(); ++stage) {
    const std::vector<int64_t>& ranks = file.ranks[stage];
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    text += str(text.empty() ? "" : ",", stage);
  }
  return text;
}

// A text table with the numbers of one or two timelines.
class Table {
 public:
  Table() { out_ << std::fixed; }

  Table& text(const std::string& what, int width) {
    out_ << std::left << std::setw(width) << what << std::right;
    return *this;
  }

  Table& number(double value, int width, int digits) {
    out_ << std::setprecision(digits) << std::setw(width) << value;
    return *this;
  }

  Table& pair(double a, double b, int width, int digits) {
    return number(a, width, digits).word(" /").number(b, width - 2, digits);
  }

  Table& word(const std::string& what) {
    out_ << what;
    return *this;
  }

  std::string str() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

// The shares of the rank that has these stages; of several, those of `rank` if it is one of them,
// else the first one's, because a simulation may have one rank for a stage of several. Null if no
// rank has them.
const RankShares* shares_with(const TimelineFile& file, const TimelineSums& sums,
                              const std::string& stages, int64_t rank) {
  const RankShares* found = nullptr;
  for (const auto& [other, shares] : sums.ranks) {
    if (stages_on(file, other) != stages) continue;
    if (found == nullptr || other == rank) found = &shares;
  }
  return found;
}

void add_shares(Table& table, const RankShares* left, const RankShares& right) {
  const auto add = [&](int width, const auto& share) {
    if (left != nullptr) {
      table.pair(share(*left), share(right), width, 4);
    } else {
      table.word(std::string(static_cast<size_t>(width) - 1, ' ')).word("- /");
      table.number(share(right), width - 2, 4);
    }
  };
  add(10, [](const RankShares& it) { return 1 - it.busy; });
  add(12, [](const RankShares& it) { return it.start; });
  add(12, [](const RankShares& it) { return it.between; });
  add(12, [](const RankShares& it) { return it.end; });
  table.word("\n");
}

void add_actions(Table& table, const TimelineSums& a, const TimelineSums& b, bool has_weights) {
  table.word("\naction   mean us a micro-batch\n");
  for (size_t stage = 0; stage < a.stages.size(); ++stage) {
    const auto row = [&](char kind, double left, double right) {
      table.text(flow::str(stage, kind), 6).pair(left, right, 14, 1);
      if (left > 0) table.word("   x").number(right / left, 6, 3);
      table.word("\n");
    };
    row('F', a.stages[stage].forward, b.stages[stage].forward);
    row('B', a.stages[stage].backward, b.stages[stage].backward);
    if (has_weights) row('W', a.stages[stage].weight, b.stages[stage].weight);
  }
}

void add_messages(Table& table, const TimelineSums& sums) {
  if (sums.num_messages == 0) return;
  table
      .word(str("\nmessages measured: ", sums.num_messages, " with ", sums.message_bytes,
                " bytes in total; from send to receipt "))
      .number(sums.message_us, 0, 1)
      .word(" us on average\n");
}

}  // namespace

std::string compare(const std::string& predicted, const std::string& measured, int64_t num_waits) {
  const TimelineFile first = load_timeline(predicted), second = load_timeline(measured);
  if (!(first.schedule == second.schedule)) {
    throw InvalidArgument(
        str("[flow-sim] ", predicted, " (", first.schedule_name, ", ", first.schedule.num_stages,
            " stages, ", first.schedule.num_micro_batches, " micro-batches) and ", measured, " (",
            second.schedule_name, ", ", second.schedule.num_stages, ", ",
            second.schedule.num_micro_batches,
            ") have different schedules; compare two timelines of the same schedule"));
  }
  const TimelineSums a = sum_up(first), b = sum_up(second);
  Table table;
  table.word(str("schedule ", second.schedule_name, "; each pair: ", predicted, " (",
                 source_of(first), ") / ", measured, " (", source_of(second), ")\n"));
  table.text("span us", 10).pair(a.span_us, b.span_us, 14, 1).word("\n");
  table.text("bubble", 10).pair(a.bubble, b.bubble, 14, 4).word("\n");
  table.word(
      "\nrank stages        bubble            at start        between actions        at end\n");
  for (const auto& [rank, right] : b.ranks) {
    const std::string stages = stages_on(second, rank);
    table.text(str(rank), 5).text(stages, 8);
    add_shares(table, shares_with(first, a, stages, rank), right);
  }
  add_actions(table, a, b, first.schedule.has_weights());

  // Waits are shares of the span, because the times of the two may have different units.
  std::vector<std::pair<double, Action>> differences;
  for (const auto& [action, wait] : b.wait_before_us)
    differences.emplace_back(wait / b.span_us - a.wait_before_us.at(action) / a.span_us, action);
  std::stable_sort(differences.begin(), differences.end(), [](const auto& x, const auto& y) {
    return std::abs(x.first) > std::abs(y.first);
  });
  table.word("\nwait before    share of the span, where it differs most\n");
  for (const auto& [difference, action] : differences) {
    if (num_waits-- <= 0 || std::abs(difference) < kLeastDifference) break;
    table.text(to_string(action), 8)
        .pair(a.wait_before_us.at(action) / a.span_us, b.wait_before_us.at(action) / b.span_us, 14,
              4)
        .word("\n");
  }
  add_messages(table, b);
  return table.str();
}

std::string show(const std::string& path) {
  const TimelineFile file = load_timeline(path);
  const TimelineSums sums = sum_up(file);
  Table table;
  table.word(str(source_of(file), ", schedule ", file.schedule_name, ", ", file.schedule.num_stages,
                 " stages, ", file.schedule.num_micro_batches, " micro-batches\n"));
  table.word("span us ").number(sums.span_us, 0, 1).word(", bubble ").number(sums.bubble, 0, 4);
  table.word("\n\nrank stages    bubble  at start   between    at end\n");
  for (const auto& [rank, shares] : sums.ranks) {
    table.text(str(rank), 5).text(stages_on(file, rank), 8).number(1 - shares.busy, 8, 4);
    table.number(shares.start, 10, 4).number(shares.between, 10, 4).number(shares.end, 10, 4);
    table.word("\n");
  }
  table.word("\nstage       F us        B us        W us  kept\n");
  for (size_t stage = 0; stage < sums.stages.size(); ++stage) {
    const pipeline::StageCost& cost = sums.stages[stage];
    table.text(str(stage), 4).number(cost.forward, 12, 1).number(cost.backward, 12, 1);
    table.number(cost.weight, 12, 1).number(static_cast<double>(sums.kept_by_stage[stage]), 6, 0);
    table.word("\n");
  }
  add_messages(table, sums);
  return table.str();
}

}  // namespace flow::sim
