#include "tools/flowrun/verdict.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "tools/flowrun/flight.h"
#include "tools/flowrun/job_error.h"
#include "tools/flowrun/limits.h"
#include "tools/flowrun/messages.h"
#include "tools/flowrun/session.h"

namespace flowrun {

namespace {

using Json = nlohmann::json;

std::map<long, Json> read_json(const std::string& session, const std::string& kind) {
  std::map<long, Json> all;
  for (const auto& [rank, text] : read_records(session, kind)) {
    Json content = parse_record(text);
    if (content.is_object()) all[rank] = std::move(content);
  }
  return all;
}

// The failure of one rank or node.
struct Finding {
  bool follows;  // it is no cause of the other failures
  double time;
  int exit_code;
  Json report;
};

constexpr long kUnknownRank = -1;  // of a process of thread ranks

// The exit code that a record of a failure gives, unless that is no code of a failure.
int failure_code(const Json& record) {
  const int code = record.value("exit_code", kRankLost);
  return code > 0 && code < 256 ? code : kRankLost;
}

std::string rank_text(long rank) {
  return rank == kUnknownRank ? "the process of the thread ranks" : "rank " + std::to_string(rank);
}

Json rank_json(long rank) {
  return rank == kUnknownRank ? Json("unknown") : Json(rank);
}

std::string signal_text(int number) {
  return std::string("was ended by signal ") + std::to_string(number) + " (" + strsignal(number) +
         ')';
}

Finding of_own_words(long rank, const Json& failed) {
  Json report = {{"cause", failed.value("cause", "error")},
                 {"rank", rank_json(rank)},
                 {"message", failed.value("message", "")}};
  for (const char* key : {"signal", "op", "seq", "site", "module", "other_site", "missing_ranks"}) {
    if (failed.contains(key)) report[key] = failed[key];
  }
  return {failed.value("cause", "") == "told", failed.value("time", 0.0), failure_code(failed),
          report};
}

// A rank that could not connect sees only the ranks of its host; the records are of all hosts.
void name_missing_ranks(const std::string& session, int64_t ranks, Json& report) {
  if (report.value("op", "") != "start" || report.value("cause", "") != "timeout") return;
  if (!report["missing_ranks"].empty()) return;
  const auto joining = read_json(session, "joining");
  std::string names;
  for (long rank = 0; rank < ranks; ++rank) {
    if (joining.contains(rank)) continue;
    report["missing_ranks"].push_back(rank);
    names += (names.empty() ? "" : ", ") + rank_text(rank);
  }
  if (names.empty()) return;
  report["message"] = report["message"].get<std::string>() + "; not connecting: " + names;
}

// All thread ranks share one process, whose end does not tell which of them is the cause.
Finding of_exit(long process, const Json& exit) {
  const long rank = exit.value("has_threads", false) ? kUnknownRank : process;
  const int code = exit.value("exit_code", 0);
  const int number = exit.value("signal", 0);
  const std::string who = rank_text(rank);
  Json report = {{"rank", rank_json(rank)}};
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
    exit_code = code == kUsage ? kUsage : std::clamp(code, 1, kHighestOwn);
    report["cause"] = "error";
    report["message"] = who + " ended with exit code " + std::to_string(code);
  }
  return {false, exit.value("time", 0.0), exit_code, report};
}

// A rank whose output was lost may have succeeded, so the failures of ranks come before it.
Finding of_lost_output(long process, const Json& exit) {
  const long rank = exit.value("has_threads", false) ? kUnknownRank : process;
  const Json report = {
      {"cause", "error"},
      {"rank", rank_json(rank)},
      {"message", rank_text(rank) + " has lost output that could not be written: " +
                      exit["output_error"].get<std::string>()}};
  return {true, exit.value("time", 0.0), kInputOutput, report};
}

Finding of_node(const Json& lost) {
  Json report = lost;
  report.erase("time");
  report.erase("exit_code");
  return {false, lost.value("time", 0.0), failure_code(lost), report};
}

std::vector<Finding> find_failures(const std::string& session) {
  const auto failed = read_json(session, "failed");
  std::vector<Finding> findings;
  for (const auto& [rank, content] : failed)
    findings.push_back(of_own_words(rank, content));
  for (const auto& [rank, content] : read_json(session, "exit")) {
    const bool is_explained =
        content.value("has_threads", false) ? !failed.empty() : failed.contains(rank);
    if (!content.value("good", true) && !is_explained) {
      findings.push_back(of_exit(rank, content));
    }
  }
  for (const auto& [rank, content] : read_json(session, "exit")) {
    if (content.contains("output_error")) findings.push_back(of_lost_output(rank, content));
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
  const std::string limits = describe_tight_limits();
  if (!limits.empty()) report["limits"] = limits;
  std::string summary = report["message"];
  if (report.contains("rank") && report["rank"].is_number()) {
    const std::string who = rank_text(report["rank"].get<long>());
    if (!summary.starts_with(who + ' ')) {
      summary = who + " (" + report["cause"].get<std::string>() + "): " + summary;
    }
    const std::string call = last_call(report["last_calls"], report["rank"].get<long>());
    if (!call.empty() && !report.contains("op")) summary += "; its last call: " + call;
  }
  if (!limits.empty()) summary += "; " + limits;
  return {exit_code, summary, report.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'};
}

// How many ranks have neither the record of a keeper nor, if the launcher ended without an error,
// their own record of an orderly end. The system may end a keeper of a busy host with the launcher.
int64_t count_unreported(const std::string& session, int64_t ranks, int launcher_status) {
  const auto over = read_json(session, "exit");
  const bool has_succeeded = WIFEXITED(launcher_status) && WEXITSTATUS(launcher_status) == 0;
  const auto ended = has_succeeded ? read_json(session, "ended") : std::map<long, Json>();
  int64_t count = 0;
  for (long rank = 0; rank < ranks; ++rank)
    count += over.contains(rank) || ended.contains(rank) ? 0 : 1;
  return count;
}

// The launcher has ended before some ranks. It does so at once if a rank ends before it has
// connected, often before another rank can tell which one that is.
Json report_of_launcher(const std::string& session, int64_t lost, int status) {
  const auto joining = read_json(session, "joining"), ended = read_json(session, "ended");
  for (const auto& [rank, exit] : read_json(session, "exit")) {
    if (exit.value("has_threads", false) || joining.contains(rank) || ended.contains(rank))
      continue;
    return {
        {"cause", "rank_lost"},
        {"rank", rank},
        {"op", "start"},
        {"message", rank_text(rank) + " has ended before its first flow call, and the launcher " +
                        "has ended the other ranks"}};
  }
  const std::string how = WIFSIGNALED(status)
                              ? signal_text(WTERMSIG(status))
                              : "exited with code " + std::to_string(WEXITSTATUS(status));
  return {{"cause", "rank_lost"},
          {"message",
           "the launcher " + how + " while " + std::to_string(lost) + " ranks were still running"}};
}

}  // namespace

Verdict judge(const std::string& session, int64_t ranks, const JobEnd& end) {
  std::vector<Finding> findings = find_failures(session);
  for (Finding& finding : findings)
    name_missing_ranks(session, ranks, finding.report);
  if (end.has_timed_out) {
    return make_verdict(session, kStoppedOrTimeout,
                        {{"cause", "timeout"}, {"message", "the job took longer than --timeout"}},
                        findings);
  }
  if (!findings.empty()) {
    return make_verdict(session, findings[0].exit_code, findings[0].report, findings);
  }
  if (const int64_t lost = count_unreported(session, ranks, end.launcher_status); lost > 0) {
    return make_verdict(session, kRankLost, report_of_launcher(session, lost, end.launcher_status),
                        findings);
  }
  return {};
}

}  // namespace flowrun
