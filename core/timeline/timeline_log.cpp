#include "core/timeline/timeline_log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/context.h"
#include "core/env.h"
#include "core/error.h"
#include "core/log.h"
#include "core/timeline/merge.h"

namespace flow::timeline {

namespace {

// std::chrono::steady_clock is CLOCK_MONOTONIC, which the processes of a host share.
int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <size_t N>
void set_text(std::array<char, N>& target, std::string_view text) {
  target.fill('\0');
  std::copy_n(text.data(), std::min(text.size(), N - 1), target.begin());
}

// Equal for all processes between two boots of a host.
std::string boot_of_host() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
  return boot;
}

std::string host_name() {
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Where the calling thread writes.
struct Here {
  const TimelineLog* log = nullptr;
  uint16_t lane = 0;
};

constinit thread_local Here here;

struct Logs {
  std::mutex mutex;
  // Guarded by mutex.
  std::map<int64_t, std::unique_ptr<TimelineLog>> by_rank;
  int64_t world_size = 0;
  pid_t process = 0;
};

// Of this process. They outlive static objects, whose destructors may call flow.
Logs& logs() {
  static auto& all = *new Logs;
  return all;
}

std::string folder_of_timelines() {
  return env_string("FLOW_TIMELINE", "");
}

// Files of an earlier run with more ranks.
void remove_further_ranks(const std::string& folder, int64_t world_size) {
  std::error_code ignored;  // what remains is named by the merge
  for (int64_t rank = world_size; std::filesystem::remove(rank_file(folder, rank), ignored); ++rank)
    continue;
}

void end_of_process() {
  Logs& all = logs();
  {
    const std::lock_guard lock(all.mutex);
    if (all.process != getpid()) return;  // a child that was forked
    for (const auto& [rank, log] : all.by_rank)
      log->close();
    const bool is_complete = static_cast<int64_t>(all.by_rank.size()) >= all.world_size;
    if (!is_complete) return;  // the ranks are several processes
  }
  merge_timelines_here();
}

TimelineLog* open_log(const std::string& folder, const RankIdentity& rank) {
  Logs& all = logs();
  const std::lock_guard lock(all.mutex);
  auto known = all.by_rank.find(rank.rank);
  if (known == all.by_rank.end()) {
    auto made = std::make_unique<TimelineLog>(folder, rank);  // throws if there is no room
    known = all.by_rank.emplace(rank.rank, std::move(made)).first;
  }
  TimelineLog& log = *known->second;
  if (all.process == 0) {
    all.process = getpid();
    std::atexit(end_of_process);
  }
  if (rank.world_size > all.world_size) all.world_size = rank.world_size;
  log.widen(rank.world_size);
  if (rank.rank == 0) remove_further_ranks(folder, all.world_size);
  return &log;
}

// In the rank's context.
struct RankTimeline {
  TimelineLog* log = nullptr;
};

}  // namespace

TimelineLog::TimelineLog(const std::string& folder, const RankIdentity& rank, const Room& room) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // open() says what is wrong
  const std::string path = rank_file(folder, rank.rank);
  const std::string scratch = path + ".new";
  const int file = ::open(scratch.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const size_t bytes = file_bytes(room);
  void* memory = MAP_FAILED;
  int problem = errno;
  if (file >= 0) {
    // Room is taken now: a store into a page without room would end the rank.
    problem = posix_fallocate(file, 0, static_cast<off_t>(bytes));
    if (problem == 0) {
      memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      problem = errno;
    }
  }
  if (file >= 0) ::close(file);
  if (memory != MAP_FAILED && std::rename(scratch.c_str(), path.c_str()) != 0) {
    problem = errno;
    munmap(memory, bytes);
    memory = MAP_FAILED;
  }
  if (memory == MAP_FAILED) {
    throw IoError(str("[timeline] cannot write ", path, ": ",
                      std::error_code(problem, std::generic_category()).message(),
                      "; set FLOW_TIMELINE to a folder that can be written"));
  }
  head_ = new (memory) FileHead;
  texts_ = static_cast<char*>(memory) + sizeof(FileHead);
  events_ = reinterpret_cast<Event*>(texts_ + room.text_bytes);
  head_->room = room;
  head_->rank = rank.rank;
  head_->world_size = rank.world_size;
  head_->process = getpid();
  head_->monotonic_ns = now_ns();
  head_->realtime_ns =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  set_text(head_->boot, boot_of_host());
  set_text(head_->host, host_name());
}

TimelineLog::~TimelineLog() {
  munmap(head_, file_bytes(head_->room));
}

uint32_t TimelineLog::static_text(const char* text) {
  if (*text == '\0') return 0;
  {
    const std::lock_guard lock(mutex_);
    const auto known = static_texts_.find(text);
    if (known != static_texts_.end()) return known->second;
  }
  const uint32_t offset = this->text(text);
  const std::lock_guard lock(mutex_);
  static_texts_[text] = offset;
  return offset;
}

uint32_t TimelineLog::text(std::string_view text) {
  if (text.empty()) return 0;
  const std::lock_guard lock(mutex_);
  const auto known = known_texts_.find(text);
  if (known != known_texts_.end()) return known->second;
  const uint32_t offset = head_->num_text_bytes;
  if (text.size() + 1 > head_->room.text_bytes - offset) {
    ++head_->num_lost_texts;
    return 0;
  }
  std::memcpy(texts_ + offset, text.data(), text.size());
  head_->num_text_bytes = offset + static_cast<uint32_t>(text.size()) + 1;
  return known_texts_.emplace(text, offset).first->second;
}

Event& TimelineLog::place(uint64_t number) const {
  return events_[number % head_->room.events];
}

uint64_t TimelineLog::begin(Event event) {
  event.number = std::atomic_ref(head_->num_events).fetch_add(1, std::memory_order_relaxed) + 1;
  event.lane = here.log == this ? here.lane : static_cast<uint16_t>(kMostLanes - 1);
  event.begin_ns = now_ns();
  place(event.number) = event;
  return event.number;
}

void TimelineLog::end(uint64_t number, bool has_failed) {
  Event& event = place(number);
  if (event.number != number) return;  // the ring has gone round meanwhile
  event.has_failed = has_failed ? 1 : 0;
  event.end_ns = now_ns();
}

uint16_t TimelineLog::lane_named(const std::string& name) {
  const std::lock_guard lock(mutex_);
  uint32_t lane = 0;
  while (lane < head_->num_lanes && name != head_->lanes[lane].data())
    ++lane;
  if (lane == head_->num_lanes && lane < kMostLanes) {
    set_text(head_->lanes[lane], lane + 1 == kMostLanes ? "other threads" : name);
    ++head_->num_lanes;
  }
  return static_cast<uint16_t>(std::min(lane, kMostLanes - 1));
}

uint16_t TimelineLog::take_lane() {
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const uint16_t lane = free_.back();
      free_.pop_back();
      return lane;
    }
    number = taken_.size() + 1;
  }
  const uint16_t lane = lane_named(str("thread ", number));
  const std::lock_guard lock(mutex_);
  if (lane + 1U < kMostLanes) taken_.push_back(lane);
  return lane;
}

void TimelineLog::give_back(uint16_t lane) {
  const std::lock_guard lock(mutex_);
  if (std::find(taken_.begin(), taken_.end(), lane) != taken_.end()) free_.push_back(lane);
}

ThreadLane::ThreadLane(TimelineLog& log, uint16_t lane)
    : log_(log), lane_(lane), outer_log_(here.log), outer_lane_(here.lane) {
  here = {&log, lane};
}

ThreadLane::~ThreadLane() {
  here = {outer_log_, outer_lane_};
  log_.give_back(lane_);
}

void TimelineLog::widen(int64_t world_size) {
  head_->world_size = std::max(head_->world_size, world_size);
}

void TimelineLog::close() {
  head_->is_closed = 1;
}

int TimelineSpan::count() {
  return std::uncaught_exceptions();
}

TimelineLog* timeline_log(RankContext& context) {
  return context.slot<RankTimeline>().log;
}

std::unique_ptr<ThreadLane> attach_timeline(RankContext& context, bool is_comm_thread) {
  const std::string folder = folder_of_timelines();
  if (folder.empty()) return nullptr;
  auto& timeline = context.slot<RankTimeline>();
  const bool is_first = timeline.log == nullptr;
  if (is_first) timeline.log = open_log(folder, context.identity());
  TimelineLog& log = *timeline.log;
  uint16_t lane = 0;
  if (is_comm_thread) {
    lane = log.lane_named("communication thread");
  } else {
    lane = is_first ? log.lane_named("program") : log.take_lane();
  }
  return std::make_unique<ThreadLane>(log, lane);
}

void merge_timelines_here() {
  const std::string folder = folder_of_timelines();
  if (folder.empty()) return;
  const MergeResult result = merge_timelines(folder, merged_file(folder));
  if (!result.error.empty()) log_warning(str("[timeline] ", result.error));
}

}  // namespace flow::timeline
