#include "support/run_report.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "graph/run/compiled_step.h"
#include "support/run_lanes.h"
#include "tools/flow_plan/forecast.h"
#include "tools/flow_plan/page_parts.h"
#include "tools/page/chart.h"
#include "tools/page/markup.h"
#include "tools/page/shell.h"

namespace examples {

namespace {

using flow::graph::CompiledArtifact;
using flow::graph::CompiledStep;
using flow::tools::bytes_text;
using flow::tools::Chart;
using flow::tools::escaped;
using flow::tools::number_cell;
using flow::tools::Point;
using flow::tools::text_cell;
using flow::tools::tile;

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text.setf(std::ios::fixed);
  text.precision(digits);
  text << value;
  return text.str();
}

template <class Value>
std::vector<Point> points_of(const std::vector<StepRecord>& steps, Value value) {
  std::vector<Point> points;
  for (const StepRecord& record : steps)
    points.push_back({static_cast<double>(record.step + 1), value(record)});
  return points;
}

// Means over the neighbours of each point, a fortieth of all points; fewer at both ends.
std::vector<Point> smoothed(const std::vector<Point>& points) {
  std::vector<double> sums = {0};
  for (const Point& point : points)
    sums.push_back(sums.back() + point.y);
  std::vector<Point> means;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t reach = std::min({i, points.size() - 1 - i, points.size() / 80});
    const double sum = sums[i + reach + 1] - sums[i - reach];
    means.push_back({points[i].x, sum / static_cast<double>(2 * reach + 1)});
  }
  return means;
}

// A curve of each step, and its mean.
std::vector<flow::tools::Curve> with_mean(const std::vector<Point>& points, int colour,
                                          const std::string& what = "") {
  return {{.name = what + "each step", .colour = colour, .points = points, .is_faint = true},
          {.name = what + "mean", .colour = colour, .points = smoothed(points)}};
}

std::string curves_html(const RunReport& report) {
  const auto curve = [&](auto value) { return points_of(report.steps, value); };
  Chart loss{
      .title = "Loss in nats per character",
      .x_name = "step",
      .curves = with_mean(curve([](const StepRecord& it) { return it.loss; }), 0, "training, "),
      .levels = {{"counting characters", report.unigram}, {"counting triples", report.trigram}}};
  std::vector<Point> validation;
  for (const StepRecord& record : report.steps) {
    if (record.validation_loss)
      validation.push_back({static_cast<double>(record.step + 1), *record.validation_loss});
  }
  loss.curves.push_back(
      {.name = "validation", .colour = 1, .points = validation, .has_dots = true});
  const Chart speed{
      .title = "Tokens per second",
      .x_name = "step",
      .curves = with_mean(curve([](const StepRecord& it) { return it.tokens_per_s; }), 2),
      .from_zero = true};
  const Chart lr{.title = "Learning rate",
                 .x_name = "step",
                 .curves = {{.name = "of AdamW",
                             .colour = 3,
                             .points = curve([](const StepRecord& it) { return it.lr; })}},
                 .from_zero = true};
  const Chart norm{.title = "Norm of the gradients, before clipping to 1",
                   .x_name = "step",
                   .curves = with_mean(curve([](const StepRecord& it) { return it.grad_norm; }), 5),
                   .from_zero = true};
  return "<h2>Training</h2>\n<div class=\"tall\">" + chart_html(loss) +
         "</div>\n<div class=\"charts\">" + chart_html(speed) + chart_html(lr) + chart_html(norm) +
         "</div>\n";
}

// ---- memory

struct Owner {
  const char* name;
  int64_t bytes = 0;
};

// Who owns the memory of a rank while a step runs.
std::array<Owner, 5> owners_on(const CompiledStep& plan,
                               const std::vector<flow::Tensor>& parameters, int64_t rank) {
  std::array<Owner, 5> owners = {{{"parameters"},
                                  {"optimizer state"},
                                  {"values of the step"},
                                  {"outputs and scratch memory of kernels"},
                                  {"other tensors"}}};
  const CompiledArtifact& step = plan.step();
  for (size_t i = 0; i < step.graph.captures.size(); ++i) {
    const flow::graph::Capture& capture = step.graph.captures[i];
    const bool is_parameter = std::any_of(
        parameters.begin(), parameters.end(),
        [&](const flow::Tensor& parameter) { return parameter.is_same(plan.captures()[i]); });
    const size_t owner = is_parameter ? 0 : capture.final_value != capture.initial ? 1 : 4;
    owners[owner].bytes +=
        static_cast<int64_t>(step.graph.value(capture.initial).meta_on(rank)->local_bytes());
  }
  const int64_t arena = step.program_of(rank).arena_bytes;
  owners[2].bytes = arena;
  owners[3].bytes = peak_bytes_of(step, rank) - arena;
  return owners;
}

std::string memory_html(const CompiledStep& plan, const std::vector<flow::Tensor>& parameters) {
  const size_t ranks = plan.step().certificate.ranks.size();
  std::vector<std::array<Owner, 5>> all;
  int64_t most = 1;
  for (size_t rank = 0; rank < ranks; ++rank) {
    all.push_back(owners_on(plan, parameters, static_cast<int64_t>(rank)));
    int64_t sum = 0;
    for (const Owner& owner : all.back())
      sum += owner.bytes;
    most = std::max(most, sum);
  }
  std::string legend, bars;
  for (size_t i = 0; i < all.front().size(); ++i) {
    const bool is_used = std::any_of(all.begin(), all.end(),
                                     [&](const auto& owners) { return owners[i].bytes > 0; });
    if (is_used)
      legend += flow::str("<span><i class=\"m m", i, "\"></i>", all.front()[i].name, "</span> ");
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    int64_t sum = 0;
    bars += flow::str("<b>rank ", rank, "</b><div class=\"bar\">");
    for (size_t i = 0; i < all[rank].size(); ++i) {
      const Owner& owner = all[rank][i];
      sum += owner.bytes;
      if (owner.bytes == 0) continue;
      bars += flow::str(
          "<span class=\"m", i, "\" style=\"width:",
          flow::tools::percent(static_cast<double>(owner.bytes) / static_cast<double>(most)),
          "\" title=\"", owner.name, ": ", bytes_text(owner.bytes), "\"></span>");
    }
    bars += flow::str("</div><span>", bytes_text(sum), "</span>\n");
  }
  return "<h2>Memory by owner, predicted</h2>\n<p class=\"legend\">" + legend +
         "</p>\n<div class=\"bars\">\n" + bars +
         "</div>\n<p class=\"note\">Values of the step are activations, gradients and messages at "
         "their peak; what makes them:</p>\n";
}

// ---- parts about single ranks

// Ranks of which the same is to be said.
struct RankGroup {
  std::string html, ranks;
};

// What `html_of(i)` says of each rank; the first part is open.
template <class HtmlOf>
std::string rank_parts_html(size_t num_ranks, HtmlOf html_of) {
  std::vector<RankGroup> groups;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    std::string html = html_of(rank);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const RankGroup& group) { return group.html == html; });
    if (same != groups.end()) {
      same->ranks += flow::str(", ", rank);
    } else {
      groups.push_back({std::move(html), flow::str(rank)});
    }
  }
  std::string html;
  for (const RankGroup& group : groups) {
    const bool is_one = group.ranks.find(',') == std::string::npos;
    html += flow::str("<details", html.empty() ? " open" : "", "><summary>Rank",
                      is_one ? " " : "s ", group.ranks, "</summary>\n", group.html, "</details>\n");
  }
  return html;
}

std::string ranks_html(const CompiledArtifact& step) {
  const size_t count = step.programs.size();
  std::vector<int64_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  const flow::tools::Forecast times = flow::tools::forecast(step.programs, ranks);
  const auto program_of = [&](size_t rank) -> const flow::graph::Program& {
    return *step.programs[rank];
  };
  return rank_parts_html(count,
                         [&](size_t i) {
                           return flow::tools::memory_html(
                               program_of(i), i < times.ranks.size() ? &times.ranks[i] : nullptr);
                         }) +
         "<h2>Redistributions</h2>\n" +
         rank_parts_html(
             count,
             [&](size_t i) { return flow::tools::transfers_html(program_of(i), ranks[i]); }) +
         "<h2>Kernels</h2>\n" +
         rank_parts_html(count, [&](size_t i) { return flow::tools::lines_html(program_of(i)); });
}

// ---- texts

// The text as HTML with its lines; bytes that are no UTF-8 are shown as replacement characters.
std::string lines_html(const std::string& text) {
  std::string html, line;
  const auto flush = [&] {
    html += escaped(line);
    line.clear();
  };
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    bool is_valid = byte < 0x80 || (byte >= 0xc2 && byte < 0xf5 && i + length <= text.size());
    for (size_t j = 1; is_valid && j < length; ++j)
      is_valid = (static_cast<unsigned char>(text[i + j]) & 0xc0) == 0x80;
    if (byte == '\n') {
      flush();
      html += '\n';
      ++i;
    } else if (is_valid) {
      line += text.substr(i, length);
      i += length;
    } else {
      line += "\xef\xbf\xbd";
      ++i;
    }
  }
  flush();
  return html;
}

std::string details_html(const std::string& summary, const std::string& text) {
  return "<details><summary>" + escaped(summary) + "</summary>\n<pre>" + lines_html(text) +
         "</pre></details>\n";
}

std::string facts_html(const RunReport& report) {
  std::string html = "<h2>Run</h2>\n<table class=\"facts\">\n";
  for (const auto& [name, value] : report.facts)
    html += flow::tools::table_row({text_cell(name), text_cell(value)});
  return html + "</table>\n";
}

// The rate of the middle step.
double typical_rate(const std::vector<StepRecord>& steps) {
  std::vector<double> rates;
  for (const StepRecord& record : steps)
    rates.push_back(record.tokens_per_s);
  if (rates.empty()) return 0;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

std::string tiles_html(const RunReport& report, const CompiledArtifact& step,
                       const RunTimelines& timelines) {
  int64_t peak = 0;
  for (size_t rank = 0; rank < step.certificate.ranks.size(); ++rank)
    peak = std::max(peak, peak_bytes_of(step, static_cast<int64_t>(rank)));
  return "<div class=\"tiles\">\n" + tile(flow::str(report.steps.size()), "steps") +
         tile(fixed(report.validation_loss, 3),
              "validation loss; triples: " + fixed(report.trigram, 3)) +
         tile(fixed(typical_rate(report.steps), 0), "tokens per second, median") +
         tile(flow::str(step.certificate.ranks.size()), "ranks") +
         tile(bubble_text(timelines.predicted) + " / " + bubble_text(timelines.measured),
              "bubble, predicted / measured") +
         tile(bytes_text(peak), "memory of a step, predicted") + "</div>\n";
}

}  // namespace

void write_report(const RunFolder& run, const RunReport& report,
                  const flow::nn::CompiledGraph& plan, const flow::nn::ModuleBase& model) {
  const CompiledStep& step = plan.plan();
  const RunTimelines timelines = read_timelines(run.predicted_timeline(), run.timeline());
  std::string body = tiles_html(report, step.step(), timelines) + curves_html(report);
  body += pipeline_html(timelines) + memory_html(step, model.parameters());
  body += ranks_html(step.step());
  body += "<h2>Sample</h2>\n<pre class=\"text\"><b>" + lines_html(report.prompt) + "</b>" +
          lines_html(report.sample) +
          "</pre>\n<p class=\"note\">The model continues the grey text, "
          "which it has not seen in training.</p>\n";
  body += facts_html(report) + "<h2>Details</h2>\n" +
          details_html("Layout of parameters and buffers", model.layout_table()) +
          details_html("Certificate", to_string(step.certificate())) +
          details_html("Summary of the compiled step", plan.summary());
  std::ofstream file(run.report());
  file << flow::tools::page_html(report.title, report.subtitle, body);
  file.flush();
  if (!file) throw flow::IoError("[report] cannot write " + run.report() + "; is the disk full?");
}

}  // namespace examples
