#include "boxing/ranks/rank_status.h"

#include <chrono>
#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/env.h"
#include "core/error.h"

namespace flow::boxing {

RankStatus status_of(const Failure& failure, const std::string& message) {
  constexpr int kMismatch = 70, kTimeout = 71, kRankLost = 72;
  const bool is_told = failure.cause == FailureCause::kError;
  RankStatus status{.state = "failed",
                    .exit_code = kRankLost,
                    .cause = is_told ? "told" : name_of(failure.cause),
                    .message = message,
                    .failure = failure};
  if (failure.cause == FailureCause::kMismatch) status.exit_code = kMismatch;
  if (failure.cause == FailureCause::kTimeout) status.exit_code = kTimeout;
  return status;
}

void write_rank_status(int64_t rank, const RankStatus& status) {
  const std::string directory = env_string("FLOW_STATUS_DIR", "");
  if (directory.empty()) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  nlohmann::json content = {{"rank", rank},
                            {"time", std::chrono::duration<double>(now).count()},
                            {"exit_code", status.exit_code},
                            {"cause", status.cause},
                            {"message", status.message}};
  if (const Failure& failure = status.failure; !failure.op.empty()) {
    content["op"] = failure.op;
    if (failure.step != 0) content["seq"] = failure.step;
    content["site"] = failure.site;
    content["other_site"] = failure.other_site;
    content["missing_ranks"] = failure.missing_ranks;
  }
  const std::string name = str(directory, '/', status.state, '_', rank, ".json");
  const std::string scratch = name + ".new";
  {
    std::ofstream file(scratch);
    file << content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (!file.flush()) return;
  }
  std::rename(scratch.c_str(), name.c_str());
}

}  // namespace flow::boxing
