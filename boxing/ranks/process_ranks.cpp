#include "boxing/ranks/process_ranks.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boxing/comm/comm_thread.h"
#include "boxing/comm/mpi_transport.h"
#include "boxing/comm/process_communicator.h"
#include "boxing/comm/process_world.h"
#include "boxing/cost.h"
#include "boxing/ranks/exit_limit.h"
#include "boxing/ranks/forked_child.h"
#include "boxing/ranks/join_watch.h"
#include "boxing/ranks/own_descriptors.h"
#include "boxing/ranks/rank_status.h"
#include "boxing/ranks/stop_request.h"
#include "boxing/ranks/watchdog.h"
#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/launcher.h"
#include "core/log.h"
#include "core/timeline/timeline_log.h"
#include "core/version.h"
#include "ops/linear/cpu_table.h"

namespace flow::boxing {

namespace {

uint64_t hash_of(std::string_view text) {
  Hasher hasher;
  for (const char c : text)
    hasher.add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  return hasher.value();
}

// A value on which ranks must agree, and its name.
struct Agreed {
  std::string_view name;
  uint64_t hash;
};

// Variables that do not affect results: hosts differ in their cores and in the folders of their
// launchers. For FLOW_COST_TABLE the content of the file is compared instead, and so is that of
// FLOW_CPU_TABLE, which may differ.
bool may_differ(std::string_view variable) {
  return variable == "FLOW_COST_TABLE" || variable == "FLOW_CPU_TABLE" ||
         variable == "FLOW_CUDA_LIBS" || variable == "FLOW_JOB_SECRET" ||
         variable == "FLOW_NUM_THREADS" || variable == "FLOW_STATUS_DIR" ||
         variable == "FLOW_TIMELINE";
}

std::vector<Agreed> what_must_agree() {
  std::vector<Agreed> all = {{"the build of flow", hash_of(build_configuration())},
                             {"the cost table (FLOW_COST_TABLE)", hash_of(cost_table())}};
  for (const EnvVariable& variable : env_table()) {
    if (may_differ(variable.name)) continue;
    all.push_back({variable.name, hash_of(env_string(variable.name, ""))});
  }
  return all;
}

// Null if there is no other rank to watch.
std::atomic<Watchdog*> watchdog{nullptr};

void end_process_rank() {
  if (is_forked_child()) return;
  ProcessWorld& world = *process_world();
  const bool has_others = world.identity().world_size > 1;
  write_rank_status(world.identity().rank, {.state = "ended"});
  if (has_others) pause_exit_limit();
  // After a failure the tasks fail by themselves.
  if (has_others && !world.has_failed()) drain_comm_thread(*thread_state().context);
  const bool has_finished = world.finish();
  if (has_others && world.identity().rank == 0) timeline::merge_timelines_here();
  if (has_others) start_exit_limit(world.identity().rank);
  // After a failure the rest of the exit may take long, so the watchdog must keep running.
  if (!has_finished) return;
  const std::unique_ptr<Watchdog> stopped(watchdog.exchange(nullptr));
}

// Rank 0 warns if another rank has a different table of this kind of CPU. Those ranks keep rank
// 0's table for graphs that must be exact. `hashes` are those of the tables by rank.
void compare_cpu_tables(Communicator& communicator, std::string text,
                        std::span<const uint64_t> hashes, int64_t rank) {
  const auto other = std::find_if(hashes.begin(), hashes.end(),
                                  [&](uint64_t hash) { return hash != hashes.front(); });
  if (other == hashes.end()) return;
  const Fingerprint what{.op = "start", .site = Site::here()};
  auto size = static_cast<int64_t>(text.size());
  communicator.broadcast(&size, sizeof size, 0, what);
  text.resize(static_cast<size_t>(size));
  communicator.broadcast(text.data(), size, 0, what);
  if (rank == 0) {
    log_warning(str("[ranks] rank ", other - hashes.begin(),
                    " and rank 0 use different tables of matrix products (",
                    ops::cpu_table().origin, " on rank 0, for ", ops::cpu_and_isa(),
                    "), so their results may differ in the last bits; graphs with the passes "
                    "`exact` use rank 0's table on all ranks"));
  } else if (hashes[static_cast<size_t>(rank)] != hashes.front()) {
    ops::keep_cpu_table_of_rank_0(ops::parse_cpu_table(text, "rank 0"));
  }
}

}  // namespace

void check_agreement(ProcessWorld& world) {
  const int64_t size = world.identity().world_size;
  const int64_t rank = world.identity().rank;
  if (size == 1) return;
  std::vector<int64_t> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  const auto communicator = make_process_communicator(world, ranks, rank);
  const std::vector<Agreed> all = what_must_agree();
  std::string table = ops::to_string(ops::cpu_table());
  std::vector<uint64_t> mine;
  for (const Agreed& one : all)
    mine.push_back(one.hash);
  mine.push_back(hash_of(table));
  std::vector<uint64_t> theirs(mine.size() * ranks.size());
  const std::vector<int64_t> bytes(ranks.size(),
                                   static_cast<int64_t>(mine.size() * sizeof(uint64_t)));
  communicator->all_gather(mine.data(), theirs.data(), bytes,
                           {.op = "start", .site = Site::here()});
  std::vector<uint64_t> tables;
  for (size_t other = 0; other < ranks.size(); ++other) {
    const auto hashes = std::span(theirs).subspan(other * mine.size(), mine.size());
    tables.push_back(hashes.back());
    for (size_t which = 0; which < all.size(); ++which) {
      if (hashes[which] == theirs[which]) continue;
      world.fail(
          {.cause = FailureCause::kMismatch,
           .message = str("[ranks] rank ", other, " and rank 0 differ in ", all[which].name,
                          "; start all ranks with the same program and the same environment"),
           .op = "start"});
      world.check(Site::none());
    }
  }
  compare_cpu_tables(*communicator, std::move(table), tables, rank);
}

RankIdentity join_process_ranks() {
  if (!env_string("FLOW_RANKS", "").empty()) {
    throw InvalidArgument(
        "[ranks] FLOW_RANKS requests thread ranks, but this call was not made on one of them; link "
        "the program to the CMake target flow::flow, which wraps its main, and do not call flow "
        "before main");
  }
  const Launcher launcher = find_launcher();
  if (!launcher.is_present || (launcher.world_size == 1 && !has_mpi())) return {};
  if (process_world() == nullptr) {
    std::unique_ptr<ProcessWorld> connected;
    const std::vector<int> earlier = OwnDescriptors::list_event_queues();
    {
      const JoinWatch watch(launcher);
      connected = std::make_unique<ProcessWorld>(connect_mpi());
    }
    OwnDescriptors descriptors(earlier);
    write_rank_status(connected->identity().rank, {.state = "running"});
    ProcessWorld& world = set_process_world(std::move(connected));
    forbid_forked_children();
    std::atexit(end_process_rank);
    take_over_stop_signals();
    if (world.identity().world_size > 1 && world.transport().is_own()) {
      watchdog.store(std::make_unique<Watchdog>(world, std::move(descriptors)).release());
    }
    check_agreement(world);
  }
  return process_world()->identity();
}

}  // namespace flow::boxing
