#include "tools/flow_plan/page_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tools/flow_plan/memory_use.h"
#include "tools/flow_plan/step_names.h"
#include "tools/flow_plan/transfers.h"
#include "tools/page/markup.h"

namespace flow::tools {

namespace {

using graph::Program;

constexpr size_t kMostColumns = 500;  // of the memory in time
constexpr size_t kColours = 7;        // owners that the drawing tells apart; the last is for others
constexpr size_t kMostOwners = 20;    // rows of each table
constexpr size_t kMostTransfers = 100;
constexpr size_t kMostLines = 30;

std::string others_html(size_t count, size_t most) {
  return count > most ? str("<p class=\"note\">and ", count - most, " others</p>\n") : "";
}

// Where positions are drawn: shares of the width.
class Scale {
 public:
  Scale(const RankForecast* forecast, size_t num_positions)
      : forecast_(forecast), num_positions_(num_positions) {
    if (forecast == nullptr || forecast->positions.size() < num_positions ||
        !(forecast->positions.back().end > 0)) {
      forecast_ = nullptr;
    }
  }

  bool is_time() const { return forecast_ != nullptr; }

  double end_us() const { return forecast_->positions.back().end; }

  double at(size_t position) const {
    if (position >= num_positions_) return 1;
    return forecast_ == nullptr
               ? static_cast<double>(position) / static_cast<double>(num_positions_)
               : forecast_->positions[position].begin / end_us();
  }

 private:
  const RankForecast* forecast_;
  size_t num_positions_;
};

// The area between `below` and `above`, by column, in a drawing of 1000 x 1000.
std::string area(const Scale& scale, const MemoryUse& use, const std::vector<int64_t>& below,
                 const std::vector<int64_t>& above, size_t colour) {
  const size_t wide = (use.num_positions + kMostColumns - 1) / kMostColumns;
  const auto x = [&](size_t column) {
    return std::trunc(scale.at(column * wide) * 1000 * 10) / 10;
  };
  const auto y = [&](int64_t bytes) {
    return static_cast<int64_t>(
        1000 * (1 - static_cast<double>(bytes) / static_cast<double>(use.peak_bytes)));
  };
  std::string path = str("<path class=\"m", colour, "\" d=\"M0 ", y(below[0]));
  for (size_t i = 0; i < above.size(); ++i)
    path += str('V', y(above[i]), 'H', x(i + 1));
  for (size_t i = above.size(); i-- > 0;)
    path += str('V', y(below[i]), 'H', x(i));
  return path + "z\"/>\n";
}

std::string memory_drawing(const Scale& scale, const MemoryUse& use) {
  const size_t count = use.columns.size();
  std::vector<int64_t> below(count, 0);
  std::string html =
      "<div class=\"memory\"><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" "
      "role=\"img\" aria-label=\"bytes in use over time\">\n";
  for (size_t owner = 0; owner <= use.shown; ++owner) {
    const bool is_rest = owner == use.shown;
    std::vector<int64_t> above(count);
    for (size_t i = 0; i < count; ++i)
      above[i] = is_rest ? use.columns[i].bytes : below[i] + use.columns[i].by_owner[owner];
    if (above != below) html += area(scale, use, below, above, is_rest ? kColours : owner);
    below = std::move(above);
  }
  const double peak = scale.at(use.peak_position);
  const bool is_left = peak < 0.5;
  const OwnedBytes& owner = use.at_peak.front();
  html += str("</svg><svg class=\"over\"><line class=\"peak\" x1=\"", percent(peak), "\" x2=\"",
              percent(peak), "\" y1=\"-4\" y2=\"100%\"/><text class=\"p\" y=\"-8\" x=\"",
              percent(peak), "\" text-anchor=\"", is_left ? "start" : "end", "\">peak ",
              bytes_text(use.peak_bytes), ", the largest part by ", escaped(owner.origin.op),
              " in ", escaped(owner.origin.place()), "</text>\n");
  for (const int quarter : {0, 2, 4}) {
    html += str("<text class=\"a\" x=\"-8\" text-anchor=\"end\" y=\"", 100 - 25 * quarter,
                "%\" dy=\"4\">", bytes_text(use.peak_bytes * quarter / 4), "</text>");
    html += str("<line class=\"tick\" x1=\"-4\" x2=\"100%\" y1=\"", 100 - 25 * quarter, "%\" y2=\"",
                100 - 25 * quarter, "%\"/>\n");
  }
  const std::string end = scale.is_time() ? time_text(scale.end_us()) : "last step";
  html += str("<text class=\"a\" x=\"0\" y=\"100%\" dy=\"17\">",
              scale.is_time() ? "0 us" : "first step",
              "</text><text class=\"a\" x=\"100%\" y=\"100%\""
              " dy=\"17\" text-anchor=\"end\">",
              end, "</text></svg></div>\n");
  return html;
}

// How often a block runs.
struct RunCounts {
  int64_t first = 0;
  int64_t later = 0;

  int64_t of(graph::StepTurn turn) const {
    if (turn == graph::StepTurn::kEvery) return first + later;
    return turn == graph::StepTurn::kFirst ? first : later;
  }
};

// By block.
std::vector<RunCounts> count_runs(const graph::ProgramRuns& runs) {
  std::vector<RunCounts> counts(runs.blocks().size());
  for (const graph::BlockRun& run : runs.runs()) {
    RunCounts& count = counts[static_cast<size_t>(run.block)];
    ++(run.is_first ? count.first : count.later);
  }
  return counts;
}

}  // namespace

std::string memory_html(const Program& program, const RankForecast* forecast) {
  const MemoryUse use = memory_use(program, kMostColumns, kColours);
  std::string html = "<h3>Memory</h3>\n";
  if (use.peak_bytes == 0) return html + "<p class=\"note\">The program keeps nothing.</p>\n";
  html += memory_drawing(Scale(forecast, use.num_positions), use);
  html += str("<p class=\"note\">Values in the arena of ", bytes_text(program.arena_bytes),
              ", stacked by what makes them; grey are all others. At the peak these are in "
              "use:</p>\n<table>\n",
              table_head({text_cell("op"), text_cell("module"), text_cell("line"),
                          number_cell("values"), number_cell("bytes"), number_cell("share")}));
  for (size_t i = 0; i < std::min(use.at_peak.size(), kMostOwners); ++i) {
    const OwnedBytes& owner = use.at_peak[i];
    html += table_row(
        {{str("<i class=\"m m", std::min(i, kColours), "\"></i>", escaped(owner.origin.op))},
         text_cell(owner.origin.module),
         text_cell(owner.origin.line),
         number_cell(str(owner.num_values)),
         number_cell(bytes_text(owner.bytes)),
         number_cell(
             share_text(static_cast<double>(owner.bytes), static_cast<double>(use.peak_bytes)))});
  }
  return html + "</table>\n" + others_html(use.at_peak.size(), kMostOwners);
}

std::string transfers_html(const Program& program, int64_t rank) {
  const std::vector<Transfer> all = transfers_of(program, rank);
  std::string html = "<h3>Transfers in one run, the longest first</h3>\n";
  if (all.empty()) return html + "<p class=\"note\">The rank exchanges nothing.</p>\n";
  html += "<div class=\"wide\"><table>\n" +
          table_head({text_cell("what"), text_cell("reason"), text_cell("how"), text_cell("for"),
                      number_cell("times"), number_cell("bytes each"), number_cell("bytes"),
                      number_cell("predicted"), text_cell("instead of")});
  for (size_t i = 0; i < std::min(all.size(), kMostTransfers); ++i) {
    const Transfer& it = all[i];
    html += table_row({text_cell(it.what), text_cell(it.reason), text_cell(it.route),
                       text_cell(it.origin.text()), number_cell(str(it.count)),
                       number_cell(bytes_text(it.bytes)),
                       number_cell(bytes_text(static_cast<int64_t>(
                           sane(static_cast<double>(it.bytes) * static_cast<double>(it.count))))),
                       number_cell(time_text(it.total_us())), text_cell(it.instead)});
  }
  return html + "</table></div>\n" + others_html(all.size(), kMostTransfers);
}

std::string lines_html(const Program& program) {
  struct Sum {
    double us = 0;
    int64_t count = 0;
  };

  const graph::ProgramRuns runs(program);
  const std::vector<RunCounts> counts = count_runs(runs);
  std::map<Origin, Sum> by_origin;
  double whole = 0;
  for (size_t b = 0; b < runs.blocks().size(); ++b) {
    for (size_t i = runs.blocks()[b].first_step; i < runs.blocks()[b].end_step; ++i) {
      const graph::Step& step = program.steps[i];
      const int64_t count = counts[b].of(step.turn);
      if (step.op_call() == nullptr || step.route() != nullptr || count == 0) continue;
      Sum& sum = by_origin[origin_of(step)];
      const double us = predicted_us(program, step) * static_cast<double>(count);
      sum.us += us;
      sum.count += count;
      whole += us;
    }
  }
  std::vector<std::pair<Origin, Sum>> all(by_origin.begin(), by_origin.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  std::string html =
      "<h3>Predicted time of kernels by op, module and line</h3>\n<table>\n" +
      table_head({text_cell("op"), text_cell("module"), text_cell("line"), number_cell("times"),
                  number_cell("predicted"), number_cell("share")});
  for (size_t i = 0; i < std::min(all.size(), kMostLines); ++i) {
    const auto& [origin, sum] = all[i];
    html += table_row({text_cell(origin.op), text_cell(origin.module), text_cell(origin.line),
                       number_cell(str(sum.count)), number_cell(time_text(sum.us)),
                       number_cell(share_text(sum.us, whole))});
  }
  return html + "</table>\n" + others_html(all.size(), kMostLines);
}

}  // namespace flow::tools
