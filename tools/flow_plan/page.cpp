#include "tools/flow_plan/page.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "graph/program/program.h"
#include "tools/flow_plan/forecast.h"
#include "tools/flow_plan/page_parts.h"
#include "tools/flow_plan/program_lane.h"
#include "tools/flow_plan/saved_plan.h"
#include "tools/page/markup.h"
#include "tools/page/shell.h"

namespace flow::tools {

namespace {

using graph::CompiledArtifact;
using graph::Graph;
using graph::Program;

// Ranks with one program.
struct RankClass {
  const Program* program;
  std::vector<int64_t> ranks;
};

std::vector<RankClass> classes_of(const CompiledArtifact& step, std::optional<int64_t> only) {
  std::vector<RankClass> classes;
  std::map<const Program*, size_t> known;
  for (size_t rank = 0; rank < step.programs.size(); ++rank) {
    const auto number = static_cast<int64_t>(rank);
    if (only && *only != number) continue;
    const Program* program = step.programs[rank].get();
    const auto [found, is_new] = known.try_emplace(program, classes.size());
    if (is_new) classes.push_back({program, {}});
    classes[found->second].ranks.push_back(number);
  }
  return classes;
}

// "0, 2, 4-7".
std::string ranks_text(const std::vector<int64_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
      ++end;
    text += str(text.empty() ? "" : ", ", ranks[i]);
    if (end - i > 1) text += str(end - i > 2 ? "-" : ", ", ranks[end - 1]);
    i = end;
  }
  return text;
}

// The stages whose actions a program has: "0, 2"; empty for a step without stages.
std::string stages_of(const Program& program) {
  std::set<int64_t> stages;
  for (const graph::ProgramPart& part : program.parts) {
    const size_t letter = part.name.find_first_not_of("0123456789");
    if (letter == 0 || letter == std::string::npos || letter > 9) continue;
    stages.insert(std::stoll(part.name.substr(0, letter)));
  }
  return ranks_text({stages.begin(), stages.end()});
}

int64_t micro_batches_of(const CompiledArtifact& step) {
  int64_t most = 0;
  for (const auto& program : step.programs) {
    for (const graph::BlockRun& run : program->runs)
      most = std::max<int64_t>(most, run.micro_batch + 1);
  }
  return most;
}

std::string tiles_html(const CompiledArtifact& step, const std::vector<RankClass>& classes,
                       const Forecast& times) {
  int64_t peak = 0, stages = 1;
  for (size_t rank = 0; rank < step.programs.size(); ++rank)
    peak = std::max(peak, peak_bytes_of(step, static_cast<int64_t>(rank)));
  for (const graph::Node& node : step.graph.nodes)
    stages = std::max(stages, node.stage + 1);
  double busy = 0;
  for (const RankForecast& rank : times.ranks)
    busy += rank.busy_us;
  std::string html = "<div class=\"tiles\">\n";
  html += tile(str(step.programs.size()), step.programs.size() == 1 ? "rank" : "ranks");
  if (classes.size() > 1) html += tile(str(classes.size()), "different programs");
  html += tile(str(step.graph.nodes.size()), "nodes after the passes");
  if (stages > 1) html += tile(str(stages), "stages");
  if (const int64_t count = micro_batches_of(step); count > 0)
    html += tile(str(count), "micro-batches");
  html += tile(bytes_text(peak), "peak memory of a rank");
  if (times.obstacle.empty()) {
    html += tile(time_text(times.span_us), "predicted time of a run");
    html += tile(share_text(busy, times.span_us * static_cast<double>(times.ranks.size())),
                 "of it in kernels, predicted");
  }
  return html + "</div>\n";
}

std::string ranks_html(const CompiledArtifact& step, const std::vector<RankClass>& classes,
                       const Forecast& times) {
  std::string html = "<h2>Ranks</h2>\n<div class=\"wide\"><table>\n" +
                     table_head({text_cell("ranks"), text_cell("stages"), number_cell("steps"),
                                 number_cell("arena"), number_cell("peak of values"),
                                 text_cell("at"), number_cell("scratch"), text_cell("of"),
                                 number_cell("collectives"), number_cell("messages sent"),
                                 number_cell("in kernels"), number_cell("exchanging")});
  for (size_t i = 0; i < std::min(classes.size(), kMostClasses); ++i) {
    const RankClass& it = classes[i];
    const graph::RankCertificate& proved =
        step.certificate.ranks[static_cast<size_t>(it.ranks.front())];
    const RankForecast* rank = i < times.ranks.size() ? &times.ranks[i] : nullptr;
    const std::string stages = stages_of(*it.program);
    html += table_row(
        {text_cell(ranks_text(it.ranks)), text_cell(stages.empty() ? "-" : stages),
         number_cell(str(it.program->steps.size())), number_cell(bytes_text(proved.arena_bytes)),
         number_cell(bytes_text(proved.peak_bytes)), text_cell(proved.peak_at),
         number_cell(bytes_text(proved.scratch_bytes)), text_cell(proved.scratch_at),
         number_cell(str(proved.num_collectives)), number_cell(str(proved.num_messages)),
         number_cell(rank == nullptr ? "-" : time_text(rank->busy_us)),
         number_cell(rank == nullptr ? "-" : time_text(rank->exchange_us))});
  }
  return html + "</table></div>\n";
}

std::string passes_html(const CompiledArtifact& step) {
  std::string html =
      "<h2>Passes</h2>\n<table>\n" + table_head({text_cell("pass"), number_cell("nodes changed")});
  for (const graph::PassResult& pass : step.passes)
    html += table_row({text_cell(pass.name), number_cell(str(pass.changes))});
  html += "</table>\n";
  int64_t buckets = 0, sums = 0;
  for (const graph::Step& it : step.programs.front()->steps) {
    if (it.route() == nullptr || it.inputs.size() < 2) continue;
    ++buckets;
    sums += static_cast<int64_t>(it.inputs.size());
  }
  if (buckets > 0) {
    html += str("<p class=\"note\">Rank 0 joins ", sums, " sums over ranks to ", buckets,
                buckets == 1 ? " transfer.</p>\n" : " transfers.</p>\n");
  }
  return html;
}

int64_t bytes_of(const Graph& graph, const std::vector<graph::ValueId>& ids, int64_t rank) {
  int64_t bytes = 0;
  for (const graph::ValueId id : ids)
    bytes += static_cast<int64_t>(graph.value(id).meta_on(rank)->local_bytes());
  return bytes;
}

std::string outside_html(const CompiledArtifact& step, int64_t rank) {
  std::vector<graph::ValueId> read, written;
  for (const graph::Capture& capture : step.graph.captures)
    (capture.initial == capture.final_value ? read : written).push_back(capture.initial);
  const auto row = [&](const char* what, const std::vector<graph::ValueId>& ids) {
    return table_row({text_cell(what), number_cell(str(ids.size())),
                      number_cell(bytes_text(bytes_of(step.graph, ids, rank)))});
  };
  return str("<h2>Tensors that are not in the arena, on rank ", rank, "</h2>\n<table>\n",
             table_head({text_cell("tensors"), number_cell("count"), number_cell("bytes")}),
             row("inputs of the step", step.graph.inputs),
             row("from outside, read: parameters that are not trained, constants", read),
             row("from outside, written: parameters, optimizer state, statistics", written),
             row("outputs of the step", step.graph.outputs), "</table>\n");
}

std::string facts_html(const CompiledArtifact& step) {
  if (step.key.facts.empty()) return {};
  std::string html = "<h2>Compiled from</h2>\n<table class=\"facts\">\n";
  for (const auto& [name, value] : step.key.facts)
    html += table_row({text_cell(name), text_cell(value.empty() ? "-" : value)});
  return html + "</table>\n";
}

std::string time_html(const std::vector<RankClass>& classes, const Forecast& times) {
  std::string html = "<h2>Time, predicted</h2>\n";
  if (!times.obstacle.empty())
    return html + "<p class=\"note\">There are no times: " + escaped(times.obstacle) + ".</p>\n";
  std::vector<Lane> lanes;
  for (size_t i = 0; i < times.ranks.size(); ++i) {
    const RankClass& it = classes[i];
    Lane lane = make_lane(*it.program, times.ranks[i]);
    const std::string stages = stages_of(*it.program);
    if (!stages.empty())
      lane.ranks =
          str(stages.find_first_of(",-") == std::string::npos ? "stage " : "stages ", stages);
    if (it.ranks.size() > 1)
      lane.ranks += str(lane.ranks.empty() ? "" : ", ", "also ranks ",
                        ranks_text({it.ranks.begin() + 1, it.ranks.end()}));
    lanes.push_back(std::move(lane));
  }
  html +=
      "<p class=\"note\">By the cost model, for one core a rank. Point at a bar for its "
      "details.</p>\n";
  return html + lanes_html(lanes, times.span_us,
                           {.id = "predicted",
                            .label = "predicted time of each rank",
                            .hint = "<code>flow-plan page --rank R</code> draws one rank."});
}

}  // namespace

std::string page_of(const CompiledArtifact& step, const PageOptions& options) {
  if (options.rank) checked_rank(step, *options.rank);
  const std::vector<RankClass> classes = classes_of(step, options.rank);
  std::vector<int64_t> drawn;
  for (size_t i = 0; i < std::min(classes.size(), kMostClasses); ++i)
    drawn.push_back(classes[i].ranks.front());
  const Forecast times = forecast(step.programs, drawn);
  std::string html = tiles_html(step, classes, times) + time_html(classes, times);
  html += ranks_html(step, classes, times);
  if (classes.size() > kMostClasses) {
    html += str("<p class=\"note\">The plan has ", classes.size(),
                " different programs; the first ", kMostClasses,
                " are shown. <code>flow-plan page --rank R</code> shows another "
                "rank.</p>\n");
  }
  html += "<h2>Memory, transfers and kernels</h2>\n";
  for (size_t i = 0; i < drawn.size(); ++i) {
    const Program& program = *classes[i].program;
    const bool is_only_one = classes[i].ranks.size() == 1;
    html += str("<details", i == 0 ? " open" : "", "><summary>", is_only_one ? "Rank " : "Ranks ",
                ranks_text(classes[i].ranks), "</summary>\n",
                memory_html(program, i < times.ranks.size() ? &times.ranks[i] : nullptr),
                transfers_html(program, drawn[i]), lines_html(program), "</details>\n");
  }
  html += outside_html(step, drawn.front()) + passes_html(step) + facts_html(step);
  return page_html("Plan " + options.name, "key " + step.key.name(), html);
}

}  // namespace flow::tools
