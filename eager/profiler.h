// Measures the time of eager calls by op, by line of user code and by module. It records the calls
// that run on the calling thread. While it is off, it costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/context.h"
#include "core/site.h"

namespace flow::profiler {

struct ProfileOptions {
  bool record_shapes = false;  // logical shapes of the inputs
};

// One op that ran, or one Scope. Times are in microseconds, and `start_us` counts from the start of
// the profile. `self_us` excludes the events inside (redistributions, ops of a Scope).
struct Event {
  std::string name;
  bool is_scope = false;
  Phase phase = Phase::kForward;
  std::string site = {};    // the user's line, "train.cpp:12"; a gradient has its forward's
  std::string module = {};  // dotted path; empty outside of modules
  std::string shapes = {};  // "(4, 8), (8, 3)"
  int64_t parent = -1;
  double start_us = 0;
  double total_us = 0;
  double self_us = 0;
  // The time of the op on its device, known after stop(); 0 on the CPU and for scopes. Calls do not
  // wait for a device, so total_us is the time to queue the work.
  double device_us = 0;
};

// All events with one key. The whole times (total, device) of an event within another one of its
// key are part of that one's.
struct Average {
  std::string key;
  int64_t calls = 0;
  double self_us = 0;
  double total_us = 0;
  double device_us = 0;
};

enum class Key : uint8_t { kOp, kSite, kModule };

// Records the calls that its thread runs, until stop() or the end of its life:
//
//   flow::profiler::Profile profile;
//   step();
//   profile.stop();
//   std::cout << profile.table() << profile.table(flow::profiler::Key::kSite);
//
// Profiles do not nest. Traced ops do not run, so they are not recorded. A profile that is started
// while a graph is traced is InvalidArgument.
class [[nodiscard]] Profile {
 public:
  explicit Profile(const ProfileOptions& options = {}, Site site = Site::here());
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Ends the recording. Throws InvalidArgument while a trace that began later is still open.
  void stop();

  // The events in the order in which they began. Those that have not ended have no times yet.
  const std::vector<Event>& events() const;

  // The time from the start until stop() or, while recording, until now.
  double elapsed_us() const;

  // The events by key, in descending order of their self time.
  std::vector<Average> key_averages(Key key = Key::kOp) const;
  // The same as text, with each key's share of the whole time. The last row is the time that no
  // event covers (dispatch, autograd, the program itself).
  std::string table(Key key = Key::kOp) const;
  // Writes the events in the format of Chrome's trace viewer (JSON, "X" events; pid is the rank).
  // Throws IoError if the file cannot be written.
  void write_chrome_trace(const std::string& path) const;

 private:
  std::unique_ptr<class Recording> recording_;
};

// A named region of the program, for a Profile that records this thread and for the timeline of the
// rank (FLOW_TIMELINE). It does nothing if there is neither.
class [[nodiscard]] Scope {
 public:
  explicit Scope(std::string_view name, Site site = Site::here());
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  uint64_t recording_ = 0;  // its number; 0: none
  size_t index_ = 0;
};

}  // namespace flow::profiler
