// Records what the threads of a rank do, in a mapped file (core/timeline/rank_file.h), if
// FLOW_TIMELINE names a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/site.h"
#include "core/timeline/rank_file.h"

namespace flow {

class RankContext;
struct RankIdentity;

namespace timeline {

// Thread safe. Events are written as they begin and end, so a rank that is killed leaves what it
// had.
class TimelineLog {
 public:
  // Creates or replaces the rank's file. Throws IoError.
  TimelineLog(const std::string& folder, const RankIdentity& rank, const Room& room = {});
  ~TimelineLog();
  TimelineLog(const TimelineLog&) = delete;
  TimelineLog& operator=(const TimelineLog&) = delete;

  // The offset of a text in the file; 0 if there is no room left. The first form is faster, for
  // texts that live for ever.
  uint32_t static_text(const char* text);
  uint32_t text(std::string_view text);

  // Returns the event's number for end(). Sets its number, begin and lane.
  uint64_t begin(Event event);
  void end(uint64_t number, bool has_failed);

  // The lane of this name; it is made at first use.
  uint16_t lane_named(const std::string& name);
  // A lane that no other thread has until it is given back.
  uint16_t take_lane();
  void give_back(uint16_t lane);

  // The rank is in a world of at least this size.
  void widen(int64_t world_size);
  // The rank has left its program.
  void close();

 private:
  Event& place(uint64_t number) const;

  FileHead* head_ = nullptr;  // of the mapped file
  char* texts_ = nullptr;
  Event* events_ = nullptr;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<const char*, uint32_t> static_texts_;
  std::map<std::string, uint32_t, std::less<>> known_texts_;
  std::vector<uint16_t> taken_;  // by take_lane(), also if they have been given back
  std::vector<uint16_t> free_;   // those of them that have been given back
};

// While it exists, what the thread that made it does is in one lane of a log.
class [[nodiscard]] ThreadLane {
 public:
  // The log must outlive it. It gives the lane back.
  ThreadLane(TimelineLog& log, uint16_t lane);
  ~ThreadLane();
  ThreadLane(const ThreadLane&) = delete;
  ThreadLane& operator=(const ThreadLane&) = delete;

  TimelineLog& log() const { return log_; }

 private:
  TimelineLog& log_;
  uint16_t lane_;
  const TimelineLog* outer_log_;
  uint16_t outer_lane_;
};

// What a thread does while the object lives; nothing if `log` is null.
class [[nodiscard]] TimelineSpan {
 public:
  TimelineSpan(TimelineLog* log, const Event& event)
      : log_(log), number_(log == nullptr ? 0 : log->begin(event)), exceptions_(count()) {}

  ~TimelineSpan() {
    if (log_ != nullptr) log_->end(number_, count() > exceptions_);
  }

  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

 private:
  static int count();  // of exceptions in flight

  TimelineLog* log_;
  uint64_t number_;
  int exceptions_;
};

// The rank's log; null unless FLOW_TIMELINE is set and a thread of the rank has attached.
TimelineLog* timeline_log(RankContext& context);

// Opens the rank's log if FLOW_TIMELINE is set, and puts the calling thread, which attaches to the
// rank, in a lane; null if it is not set. All worlds of a process write to the same file of a rank.
// Throws IoError.
std::unique_ptr<ThreadLane> attach_timeline(RankContext& context, bool is_comm_thread);

// Merges the files of FLOW_TIMELINE if it is set. A process whose ranks are all its own does so at
// its exit; a world of several processes when all have left. Writes a warning if that fails.
void merge_timelines_here();

}  // namespace timeline

}  // namespace flow
