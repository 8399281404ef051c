#include "boxing/ranks/join_watch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "boxing/comm/failure.h"
#include "boxing/ranks/rank_status.h"
#include "core/env.h"
#include "core/error.h"
#include "core/signals.h"

namespace flow::boxing {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kBeat(200);
// Ranks that are all connecting are slow because the host is busy, not because the program is
// wrong.
constexpr seconds kLeastWhileAllConnect(60);
constexpr const char* kAdvice =
    "; let every rank make a flow call, such as flow::env::rank(), at the start of the program";

// flowrun's folder, else the folder that mpirun has for the processes of this host.
std::string meeting_folder() {
  std::string session = env_string("FLOW_STATUS_DIR", "");
  if (!session.empty()) return session;
  const char* of_mpirun = std::getenv("PMIX_SERVER_TMPDIR");
  return of_mpirun == nullptr ? "" : of_mpirun;
}

std::string file_of(const std::string& folder, const char* kind, int64_t rank) {
  return str(folder, '/', kind, '_', rank, ".json");
}

bool exists(const std::string& file) {
  std::error_code error;  // a file that cannot be looked for is not there
  return std::filesystem::exists(file, error);
}

}  // namespace

JoinWatch::JoinWatch(const Launcher& launcher)
    : launcher_(launcher), folder_(meeting_folder()), limit_(time_limit()) {
  if (launcher.world_size < 2) return;
  write_rank_status(launcher.rank, {.state = "joining"});
  if (!folder_.empty() && env_string("FLOW_STATUS_DIR", "").empty()) {
    std::ofstream(file_of(folder_, "joining", launcher.rank));  // mpirun removes the folder
  }
  thread_ = start_quiet_thread([this] { run(); });
}

JoinWatch::~JoinWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JoinWatch::run() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto warn_at = start + std::min<Clock::duration>(seconds(10), Clock::duration(limit_) / 2);
  bool has_warned = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBeat, [&] { return is_over_; })) {
    end_if_a_rank_has_left();
    const auto now = Clock::now();
    if (now >= start + limit_) {
      const seconds limit = all_are_joining() ? std::max(limit_, kLeastWhileAllConnect) : limit_;
      if (now >= start + limit) give_up(limit);
    }
    if (has_warned || now < warn_at) continue;
    has_warned = true;
    const std::string line =
        str("[rank ", launcher_.rank, "] warning: waiting for ", list_missing(), " to connect\n");
    static_cast<void>(write(STDERR_FILENO, line.data(), line.size()) == 0);
  }
}

bool JoinWatch::sees_all() const {
  return !folder_.empty() && launcher_.ranks_on_host == launcher_.world_size &&
         exists(file_of(folder_, "joining", launcher_.rank));
}

bool JoinWatch::all_are_joining() const {
  return sees_all() && missing_ranks().empty();
}

// Empty if this rank cannot tell.
std::vector<int64_t> JoinWatch::missing_ranks() const {
  std::vector<int64_t> missing;
  if (!sees_all()) return missing;
  for (int64_t rank = 0; rank < launcher_.world_size; ++rank) {
    if (!exists(file_of(folder_, "joining", rank))) missing.push_back(rank);
  }
  return missing;
}

std::string JoinWatch::list_missing() const {
  const std::vector<int64_t> missing = missing_ranks();
  return missing.empty() ? "other ranks" : list_ranks(missing);
}

// The keeper of a rank writes a file when the rank has ended.
void JoinWatch::end_if_a_rank_has_left() const {
  for (const int64_t rank : missing_ranks()) {
    if (!exists(file_of(folder_, "exit", rank))) continue;
    const std::vector<int64_t> still_missing = missing_ranks();
    if (std::find(still_missing.begin(), still_missing.end(), rank) == still_missing.end()) return;
    const Failure failure{
        .cause = FailureCause::kRankLost,
        .message = str("[ranks] rank ", rank, " has ended before its first flow ", "call, so rank ",
                       launcher_.rank, " cannot connect with it", kAdvice),
        .op = "start",
        .missing_ranks = {rank}};
    end_process(launcher_.rank, status_of(failure, failure.message));
  }
}

void JoinWatch::give_up(seconds limit) const {
  const Failure failure{
      .cause = FailureCause::kTimeout,
      .message = str("[ranks] rank ", launcher_.rank, " could not connect with ", list_missing(),
                     " within ", limit.count(), " s", kAdvice, ", or raise FLOW_TIMEOUT_S"),
      .op = "start",
      .missing_ranks = missing_ranks()};
  end_process(launcher_.rank, status_of(failure, failure.message));
}

}  // namespace flow::boxing
