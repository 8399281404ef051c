#include "tools/flowrun/verdict.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "tools/flowrun/exit_codes.h"
#include "tools/flowrun/flight.h"
#include "tools/flowrun/session.h"

namespace flowrun {

namespace {

using Json = nlohmann::json;

std::map<long, Json> read_json(const std::string& session, const std::string& kind) {
  std::map<long, Json> all;
  for (const auto& [rank, text] : read_records(session, kind)) {
    Json content = Json::parse(text, nullptr, false);
    if (content.is_object()) all[rank] = std::move(content);
  }
  return all;
}

// The failure of one rank or node.
struct Finding {
  bool follows;  // it was caused by the failure of another rank
  double time;
  int exit_code;
  Json report;
};

std::string rank_text(long rank) {
  return "rank " + std::to_string(rank);
}

std::string signal_text(int number) {
  return std::string("was ended by signal ") + std::to_string(number) + " (" + strsignal(number) +
         ')';
}

Finding of_own_words(long rank, const Json& failed) {
  Json report = {{"cause", failed.value("cause", "error")},
                 {"rank", rank},
                 {"message", failed.value("message", "")}};
  for (const char* key : {"op", "seq", "site", "other_site", "missing_ranks"}) {
    if (failed.contains(key)) report[key] = failed[key];
  }
  return {failed.value("cause", "") == "told", failed.value("time", 0.0),
          failed.value("exit_code", kRankLost), report};
}

Finding of_exit(long rank, const Json& exit) {
  const int code = exit.value("exit_code", 0);
  const int number = exit.value("signal", 0);
  const std::string who = rank_text(rank);
  Json report = {{"rank", rank}};
  int exit_code = kRankLost;
  if (!exit.value("was_started", true)) {
    report["cause"] = "rank_lost";
    report["message"] = "the system could not start a process for " + who;
  } else if (exit.value("was_stopped", false)) {
    exit_code = kStoppedOrTimeout;
    report["cause"] = "stopped";
    report["message"] = who + " was stopped and did not continue";
  } else if (number != 0) {
    report["cause"] = "rank_lost";
    report["signal"] = number;
    report["message"] = who + ' ' + signal_text(number);
  } else if (exit.value("left_silently", false)) {
    report["cause"] = "rank_lost";
    report["message"] =
        who + " exited with code 0 before the job was over; other ranks may still wait for it";
  } else {
    exit_code = std::min(code, kHighestOwnCode);
    report["cause"] = "error";
    report["message"] = who + " ended with exit code " + std::to_string(code);
  }
  return {false, exit.value("time", 0.0), exit_code, report};
}

Finding of_node(const Json& lost) {
  Json report = lost;
  report.erase("time");
  report.erase("exit_code");
  return {false, lost.value("time", 0.0), lost.value("exit_code", kRankLost), report};
}

std::vector<Finding> find_failures(const std::string& session) {
  const auto failed = read_json(session, "failed");
  std::vector<Finding> findings;
  for (const auto& [rank, content] : failed)
    findings.push_back(of_own_words(rank, content));
  for (const auto& [rank, content] : read_json(session, "exit")) {
    if (!content.value("good", true) && !failed.contains(rank)) {
      findings.push_back(of_exit(rank, content));
    }
  }
  for (const auto& [number, content] : read_json(session, "node"))
    findings.push_back(of_node(content));
  std::sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    // The ranks of a lost node fail a little before the node counts as lost.
    const auto key = [](const Finding& finding) {
      return std::tuple(finding.follows, !finding.report.contains("node"), finding.time);
    };
    return key(a) < key(b);
  });
  return findings;
}

Verdict make_verdict(const std::string& session, int exit_code, Json report,
                     const std::vector<Finding>& findings) {
  constexpr size_t kCalls = 8;
  report["exit_code"] = exit_code;
  report["last_calls"] = read_flights(session, kCalls);
  report["ranks"] = Json::array();
  for (const Finding& finding : findings)
    report["ranks"].push_back(finding.report);
  std::string summary = report["message"];
  if (report.contains("rank")) {
    const std::string who = rank_text(report["rank"].get<long>());
    if (!summary.starts_with(who + ' ')) {
      summary = who + " (" + report["cause"].get<std::string>() + "): " + summary;
    }
    const std::string call = last_call(report["last_calls"], report["rank"].get<long>());
    if (!call.empty() && !report.contains("op")) summary += "; its last call: " + call;
  }
  return {exit_code, summary, report.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'};
}

}  // namespace

Verdict judge(const std::string& session, int64_t ranks, const JobEnd& end) {
  const std::vector<Finding> findings = find_failures(session);
  if (end.has_timed_out) {
    return make_verdict(session, kStoppedOrTimeout,
                        {{"cause", "timeout"}, {"message", "the job took longer than --timeout"}},
                        findings);
  }
  if (!findings.empty()) {
    return make_verdict(session, findings[0].exit_code, findings[0].report, findings);
  }
  if (const auto over = read_records(session, "exit"); over.size() < static_cast<size_t>(ranks)) {
    const std::string how =
        WIFSIGNALED(end.launcher_status)
            ? signal_text(WTERMSIG(end.launcher_status))
            : "exited with code " + std::to_string(WEXITSTATUS(end.launcher_status));
    return make_verdict(session, kRankLost,
                        {{"cause", "rank_lost"},
                         {"message", "the launcher " + how + " while " +
                                         std::to_string(static_cast<size_t>(ranks) - over.size()) +
                                         " ranks were still running"}},
                        findings);
  }
  return {};
}

}  // namespace flowrun
