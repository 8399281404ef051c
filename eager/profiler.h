// Where the time of eager calls goes: by op, by the user's line, by module. On the calling thread,
// as they are carried out; off, it costs nothing.
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

// One op that was carried out, or one Scope. Times in microseconds, `start_us` since the profile's
// start; `self_us` leaves out the events inside (redistributions, ops of a Scope).
struct Event {
  std::string name;
  bool is_scope = false;
  Phase phase = Phase::kForward;
  std::string site = {};    // "train.cpp:12", the user's line; of a gradient its forward's
  std::string module = {};  // dotted path, empty outside of modules
  std::string shapes = {};  // "(4, 8), (8, 3)"
  int64_t parent = -1;
  double start_us = 0;
  double total_us = 0;
  double self_us = 0;
  // What the op took on its device, known after stop(); 0 on the CPU and for scopes. Calls do not
  // wait for a device, so total_us is the time to queue the work.
  double device_us = 0;
};

// All events of one key together.
struct Average {
  std::string key;
  int64_t calls = 0;
  double self_us = 0;
  double total_us = 0;
  double device_us = 0;
};

enum class Key : uint8_t { kOp, kSite, kModule };

// Records what its thread carries out while it lives, or until stop():
//
//   flow::profiler::Profile profile;
//   step();
//   profile.stop();
//   std::cout << profile.table() << profile.table(flow::profiler::Key::kSite);
//
// Profiles do not nest. Ops that are traced are not carried out and not recorded.
class [[nodiscard]] Profile {
 public:
  explicit Profile(const ProfileOptions& options = {});
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Ends the recording. InvalidArgument while a trace that began later still lives.
  void stop();

  // In the order in which they began.
  const std::vector<Event>& events() const;

  // From start to stop, or till now.
  double elapsed_us() const;

  // Events by key, the most own time first.
  std::vector<Average> key_averages(Key key = Key::kOp) const;
  // The same as text, with each key's share of the whole time; what no event covers (dispatch,
  // autograd, the program itself) is its last row.
  std::string table(Key key = Key::kOp) const;
  // The events in the format of Chrome's trace viewer (JSON, "X" events; pid is the rank). IoError
  // where the file cannot be written.
  void write_chrome_trace(const std::string& path) const;

 private:
  std::unique_ptr<class Recording> recording_;
};

// A region of the program with a name; nothing while no Profile records this thread.
class [[nodiscard]] Scope {
 public:
  explicit Scope(std::string_view name, Site site = Site::here());
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  class Recording* recording_;
  size_t index_ = 0;
};

}  // namespace flow::profiler
