#include "tools/flowrun/attempts.h"

#include <nlohmann/json.hpp>

namespace flowrun {

namespace {

using Json = nlohmann::json;

// An attempt that succeeded has no report of its own.
Json report_of(const Attempt& attempt) {
  if (attempt.verdict.summary.empty())
    return {{"cause", "none"}, {"message", "all ranks ended without an error"}};
  return Json::parse(attempt.verdict.report);
}

// Adds to `target` what the report of a job says of each attempt.
void add_outline(const Json& report, Json& target) {
  for (const char* key : {"cause", "rank", "node", "signal", "message"}) {
    if (report.contains(key)) target[key] = report[key];
  }
}

Json short_report(const Attempt& attempt, size_t number) {
  Json entry = {
      {"attempt", number}, {"exit_code", attempt.verdict.exit_code}, {"seconds", attempt.seconds}};
  add_outline(report_of(attempt), entry);
  return entry;
}

}  // namespace

void shorten(Attempt& attempt) {
  Json outline = Json::object();
  add_outline(report_of(attempt), outline);
  attempt.verdict.report = outline.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string complete_report(const std::vector<Attempt>& attempts, const Json& nodes, int exit_code,
                            const std::string& obstacle) {
  Json report = report_of(attempts.back());
  report["exit_code"] = exit_code;
  if (!obstacle.empty()) report["not_restarted"] = obstacle;
  if (!nodes.empty()) report["nodes"] = nodes;
  if (attempts.size() > 1) {
    report["attempts"] = Json::array();
    for (size_t i = 0; i < attempts.size(); ++i)
      report["attempts"].push_back(short_report(attempts[i], i));
  }
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace flowrun
