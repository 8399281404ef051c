#include "boxing/ranks/main_boundary.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <cxxabi.h>
#include <unistd.h>

#include "boxing/comm/comm_thread.h"
#include "boxing/comm/process_world.h"
#include "boxing/comm/thread_world.h"
#include "boxing/ranks/crash_report.h"
#include "boxing/ranks/exit_codes.h"
#include "boxing/ranks/exit_limit.h"
#include "boxing/ranks/forked_child.h"
#include "boxing/ranks/rank_status.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/ranks/stop_request.h"
#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "core/launcher.h"

namespace flow::internal {

namespace {

using boxing::Failure;
using boxing::FailureCause;
using boxing::RankStatus;

using exit_codes::kBadFile;
using exit_codes::kError;
using exit_codes::kHighestOwn;
using exit_codes::kInputOutput;
using exit_codes::kOutOfMemory;
using exit_codes::kRankLost;
using exit_codes::kUsage;

// Maps a program's own exit code to a range that does not overlap the codes above. Wrong usage has
// the same code for programs and for flow.
int own_code(int code) {
  return code == kUsage ? kUsage : std::min(code & 0xFF, kHighestOwn);
}

// Thrown if main returned a code other than 0 on a thread rank.
class ReturnedCode : public std::runtime_error {
 public:
  explicit ReturnedCode(int code) : std::runtime_error(str("main returned ", code)), code_(code) {}

  int code() const { return code_; }

 private:
  int code_;
};

// The status of a rank that ends with `error`.
RankStatus status_of_error(int code, const std::exception& error, const char* cause = "error") {
  RankStatus status{.state = "failed", .exit_code = code, .cause = cause, .message = error.what()};
  if (const auto* own = dynamic_cast<const Error*>(&error)) {
    const Site site = own->site();
    if (site.is_known()) status.site = str(site.file(), ':', site.line());
    status.module = own->module_path();
  }
  return status;
}

// The status for the exception that is being handled.
RankStatus status_of_exception(const std::optional<Failure>& failure) {
  try {
    throw;
  } catch (const DistributedError& error) {
    RankStatus status = status_of_error(kRankLost, error, name_of(FailureCause::kRankLost));
    if (!failure) return status;
    RankStatus told = boxing::status_of(*failure, error.what());
    told.site = std::move(status.site);
    told.module = std::move(status.module);
    return told;
  } catch (const OutOfMemory& error) {
    return status_of_error(kOutOfMemory, error);
  } catch (const std::bad_alloc& error) {
    return status_of_error(kOutOfMemory, error);
  } catch (const BadFile& error) {
    return status_of_error(kBadFile, error);
  } catch (const IoError& error) {
    return status_of_error(kInputOutput, error);
  } catch (const std::filesystem::filesystem_error& error) {
    return status_of_error(kInputOutput, error);
  } catch (const Error& error) {
    return status_of_error(kError, error);
  } catch (const ReturnedCode& returned) {
    return status_of_error(own_code(returned.code()), returned);
  } catch (const std::exception& error) {
    return status_of_error(kRankLost, error);
  } catch (...) {  // reported like the others
    return {.state = "failed",
            .exit_code = kRankLost,
            .cause = "error",
            .message = "the program threw an exception that is not a std::exception"};
  }
}

void print(const std::string& line) {
  // A single write, so that lines of several ranks do not mix.
  const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(written);  // there is nobody left to tell
}

void report(int64_t rank, const RankStatus& status) {
  boxing::write_rank_status(rank, status);
  print(str("rank ", rank, ": ", status.message, '\n'));
}

std::optional<Failure> failure_of_process() {
  const boxing::ProcessWorld* world = boxing::process_world();
  return world == nullptr ? std::nullopt : world->failure();
}

void tell_others(int64_t rank, const std::string& message) {
  if (auto* world = boxing::process_world()) world->fail({.rank = rank, .message = message});
}

// ---------------------------------------------------------------- processes

// The process whose main the launcher started. A child that it forks before its first flow call may
// be the rank in its place, but otherwise its end is no end of the rank.
std::atomic<pid_t> process_of_main{0};

bool is_process_of_rank() {
  return getpid() == process_of_main.load() || boxing::process_world() != nullptr;
}

// The program has ended; what is left are its handlers of atexit and its static objects.
void limit_exit(int64_t rank) {
  const boxing::ProcessWorld* world = boxing::process_world();
  if (world != nullptr && world->identity().world_size > 1) boxing::start_exit_limit(rank);
}

void leave_as_process(int64_t rank, int code, const std::string& message) {
  if (!is_process_of_rank()) return;
  limit_exit(rank);
  if (code == 0) return;
  boxing::write_rank_status(
      rank, {.state = "failed", .exit_code = own_code(code), .cause = "error", .message = message});
  tell_others(rank, message);
}

int run_as_process(ProgramMain program, int argc, char** argv, char** environment) {
  const int64_t rank = find_launcher().rank;
  process_of_main.store(getpid());
  try {
    const int code = program(argc, argv, environment);
    leave_as_process(rank, code, str("main returned ", code));
    return code;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {  // reported, and told to the other ranks
    const RankStatus status = status_of_exception(failure_of_process());
    if (!is_process_of_rank()) {
      print(str(status.message, '\n'));
      return status.exit_code;
    }
    report(rank, status);
    tell_others(rank, status.message);
    limit_exit(rank);
    return status.exit_code;
  }
}

// ---------------------------------------------------------------- threads

int64_t parse_ranks(const std::string& text) {
  constexpr std::string_view kPrefix = "threads:";
  int64_t ranks = 0;
  const char* end = text.data() + text.size();
  if (text.starts_with(kPrefix)) {
    const auto [stop, status] = std::from_chars(text.data() + kPrefix.size(), end, ranks);
    if (status != std::errc() || stop != end) ranks = 0;
  }
  if (ranks < 1) {
    throw InvalidArgument(
        str("[ranks] FLOW_RANKS must be threads:N with N of at least 1; got '", text, "'"));
  }
  if (find_launcher().is_present) {
    throw InvalidArgument(
        "[ranks] a launcher started this process as a rank, but FLOW_RANKS requests thread ranks; "
        "a world consists either of processes or of threads: unset FLOW_RANKS, or start the "
        "program without the launcher");
  }
  return ranks;
}

// The failed ranks of a world, in the order in which they ended.
struct Endings {
  std::mutex mutex;
  std::vector<std::pair<int64_t, RankStatus>> failed;  // guarded by mutex

  int exit_code() {
    const std::lock_guard lock(mutex);
    for (const auto& [rank, status] : failed) {
      if (status.cause != "told") return status.exit_code;
    }
    return failed.empty() ? 0 : failed.front().second.exit_code;
  }
};

// A thread rank that calls exit(0) takes part in nothing more, but the process ends only with the
// last rank. Returns the exit code of the process.
int leave_as_thread(RankContext& context, boxing::ThreadWorld& world) {
  const int64_t rank = context.rank();
  const double time = boxing::status_time();
  boxing::write_rank_status(rank, {.state = "ended"});
  boxing::drain_comm_thread(context);
  world.end(rank);
  world.wait_for_all_ends();
  if (world.has_failed()) {
    const std::vector<int64_t> missing = world.failure().missing_ranks;
    if (std::find(missing.begin(), missing.end(), rank) != missing.end()) {
      const std::string message =
          "the program called exit(0) before the job was over; another rank still waited for it";
      boxing::write_rank_status(rank, {.state = "failed",
                                       .exit_code = kRankLost,
                                       .cause = name_of(FailureCause::kRankLost),
                                       .message = message,
                                       .time = time});
    }
  }
  return world.slot<Endings>().exit_code();
}

int fail_as_thread(int64_t rank, int code) {
  boxing::write_rank_status(rank, {.state = "failed",
                                   .exit_code = own_code(code),
                                   .cause = "error",
                                   .message = str("the program called exit(", code, ")")});
  return code;
}

void run_main(ProgramMain program, int argc, char** argv, char** environment) {
  std::vector<std::string> texts(argv, argv + argc);
  std::vector<char*> words;
  for (std::string& text : texts)
    words.push_back(text.data());
  words.push_back(nullptr);
  if (const int code = program(argc, words.data(), environment); code != 0) {
    throw ReturnedCode(code);
  }
}

int run_as_threads(const std::string& wanted, ProgramMain program, int argc, char** argv,
                   char** environment) {
  std::shared_ptr<boxing::ThreadWorld> world;  // once a rank runs
  std::once_flag is_known;
  try {
    const int64_t num_ranks = parse_ranks(wanted);
    boxing::take_over_stop_signals();
    boxing::report_crashes();
    run_ranks(num_ranks, [&] {
      RankContext& context = *thread_state().context;
      std::call_once(is_known, [&] { world = context.slot_ptr<boxing::ThreadWorld>(); });
      const boxing::CrashStack crash_stack;
      boxing::write_rank_status(context.rank(), {.state = "running"});
      try {
        run_main(program, argc, argv, environment);
        boxing::write_rank_status(context.rank(), {.state = "ended"});
      } catch (const abi::__forced_unwind&) {
        throw;
      } catch (...) {  // reported, and passed on to run_ranks
        const RankStatus status = status_of_exception(
            world->has_failed() ? std::optional(world->failure()) : std::nullopt);
        {
          auto& endings = world->slot<Endings>();
          const std::lock_guard lock(endings.mutex);
          endings.failed.emplace_back(context.rank(), status);
        }
        report(context.rank(), status);
        throw;
      }
    });
  } catch (const std::exception& error) {
    if (world == nullptr || world->slot<Endings>().exit_code() == 0) {
      print(str(error.what(), '\n'));  // no rank has started
      return dynamic_cast<const OutOfMemory*>(&error) != nullptr ? kOutOfMemory : kUsage;
    }
  } catch (...) {  // reported above
  }
  boxing::start_exit_limit(-1);
  return world->slot<Endings>().exit_code();
}

// An exception that leaves main() ends the process without a flush, so what the program printed
// into a pipe or file would be lost.
void flush_before_terminate() {
  static std::terminate_handler outer = nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    outer = std::set_terminate([] {
      std::fflush(stdout);
      outer();
    });
  });
}

}  // namespace

int run_program(ProgramMain program, int argc, char** argv, char** environment) {
  const std::string ranks = env_string("FLOW_RANKS", "");
  if (!ranks.empty()) return run_as_threads(ranks, program, argc, argv, environment);
  if (find_launcher().is_present) return run_as_process(program, argc, argv, environment);
  flush_before_terminate();
  return program(argc, argv, environment);
}

std::optional<int> leave_program(int code) {
  if (boxing::is_forked_child()) return std::nullopt;
  const ThreadState* state = current_thread_state;
  if (state != nullptr) {
    if (const auto& world = state->context->slot_ptr<boxing::ThreadWorld>()) {
      if (code != 0) return fail_as_thread(state->context->rank(), code);
      return leave_as_thread(*state->context, *world);
    }
  }
  if (find_launcher().is_present) {
    leave_as_process(find_launcher().rank, code, str("the program called exit(", code, ")"));
  }
  return std::nullopt;
}

}  // namespace flow::internal
