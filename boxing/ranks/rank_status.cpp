#include "boxing/ranks/rank_status.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "boxing/ranks/exit_codes.h"
#include "boxing/ranks/forked_child.h"
#include "core/env.h"
#include "core/error.h"

namespace flow::boxing {

namespace {

std::string file_name(const std::string& directory, const std::string& state, int64_t rank) {
  return str(directory, '/', state, '_', rank, ".json");
}

}  // namespace

RankStatus status_of(const Failure& failure, const std::string& message) {
  const bool is_told = failure.cause == FailureCause::kError;
  RankStatus status{.state = "failed",
                    .exit_code = exit_codes::kRankLost,
                    .cause = is_told ? "told" : name_of(failure.cause),
                    .message = message,
                    .failure = failure};
  if (failure.cause == FailureCause::kMismatch) status.exit_code = exit_codes::kMismatch;
  if (failure.cause == FailureCause::kTimeout) status.exit_code = exit_codes::kStoppedOrTimeout;
  return status;
}

double status_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

void write_rank_status(int64_t rank, const RankStatus& status) {
  const std::string directory = env_string("FLOW_STATUS_DIR", "");
  if (directory.empty() || is_forked_child()) return;
  nlohmann::json content = {{"rank", rank},
                            {"time", status.time > 0 ? status.time : status_time()},
                            {"exit_code", status.exit_code},
                            {"cause", status.cause},
                            {"message", status.message}};
  if (!status.site.empty()) content["site"] = status.site;
  if (!status.module.empty()) content["module"] = status.module;
  if (const Failure& failure = status.failure; !failure.op.empty()) {
    content["op"] = failure.op;
    if (failure.step != 0) content["seq"] = failure.step;
    if (!failure.site.empty() || status.site.empty()) content["site"] = failure.site;
    content["other_site"] = failure.other_site;
    content["missing_ranks"] = failure.missing_ranks;
  }
  const std::string name = file_name(directory, status.state, rank);
  const std::string scratch = name + ".new";
  {
    std::ofstream file(scratch);
    file << content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (!file.flush()) return;
  }
  std::rename(scratch.c_str(), name.c_str());
}

void end_process(int64_t rank, const RankStatus& status) {
  const std::string directory = env_string("FLOW_STATUS_DIR", "");
  std::error_code error;  // a file that cannot be looked for is not there
  if (!std::filesystem::exists(file_name(directory, status.state, rank), error)) {
    write_rank_status(rank, status);
  }
  const std::string who = rank < 0 ? "" : str("rank ", rank, ": ");
  const std::string line = str(who, status.message, '\n');
  static_cast<void>(write(STDERR_FILENO, line.data(), line.size()) == 0);
  _exit(status.exit_code);
}

}  // namespace flow::boxing
