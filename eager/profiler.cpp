#include "eager/profiler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/context.h"
#include "core/device/device_time.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "eager/timeline_observer.h"

namespace flow::profiler {

namespace {

std::string text_of(Site site) {
  if (!site.is_known()) return {};
  const std::string_view file = site.file();
  return str(file.substr(file.find_last_of('/') + 1), ':', site.line());
}

std::string shapes_of(const Call& call) {
  std::string text;
  for (const Tensor* input : call.inputs) {
    text += text.empty() ? "" : ", ";
    text += input->defined() ? str(input->shape()) : "none";
  }
  return text;
}

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "";
}

const std::string& key_of(const Event& event, Key key) {
  switch (key) {
    case Key::kOp:
      return event.name;
    case Key::kSite:
      return event.site;
    case Key::kModule:
      return event.module;
  }
  return event.name;
}

// `device_us` is null where no event was on a device.
void write_row(std::ostream& out, const std::string& key, const std::string& calls, double self_us,
               double total_us, double whole_us, const double* device_us) {
  out << std::left << std::setw(36) << key << std::right << std::setw(9) << calls
      << std::setprecision(3) << std::setw(13) << self_us / 1e3 << std::setprecision(1)
      << std::setw(8) << (whole_us > 0 ? 100 * self_us / whole_us : 0) << " %"
      << std::setprecision(3) << std::setw(13) << total_us / 1e3;
  if (device_us != nullptr) out << std::setw(14) << *device_us / 1e3;
  out << '\n';
}

// Returns whether one of the events around this one passes the test.
template <class Test>
bool is_within(const std::vector<Event>& events, const Event& event, const Test& test) {
  for (int64_t i = event.parent; i >= 0; i = events[static_cast<size_t>(i)].parent) {
    if (test(events[static_cast<size_t>(i)])) return true;
  }
  return false;
}

bool is_on_device(const Decision& decision) {
  return decision.outputs[0]->device != DeviceType::kCpu;
}

}  // namespace

// Records the calls of the thread that it was made on until it is stopped.
class Recording final : public CallObserver {
 public:
  Recording(const ProfileOptions& options, Site site) : options_(options), start_(Clock::now()) {
    if (thread_state().trace != nullptr) {
      throw InvalidArgument(
          "[profiler] a profile was started in build() of a graph, where ops are recorded and do "
          "not run; start it around the call of the graph",
          user_site(site));
    }
    if (recording_here() != nullptr) {
      throw InvalidArgument(
          "[profiler] a second profile was started while another one records this thread; stop the "
          "other one first",
          user_site(site));
    }
    outer_ = std::exchange(thread_state().observer, this);
  }

  ~Recording() override {
    if (thread_state().observer == this) thread_state().observer = outer_;
  }

  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void stop();
  double elapsed_us() const;
  void begin(const Call& call, const Decision& decision) override;
  void end(const Decision& decision, bool has_failed) override;

  // The event becomes the innermost one that has not ended.
  size_t begin(Event event);
  void end(size_t index);

  const std::vector<Event>& events() const { return events_; }

  // The recording of this thread; null if there is none.
  static Recording* recording_here() { return dynamic_cast<Recording*>(thread_state().observer); }

  // Unique in the process, from 1 on.
  uint64_t number() const { return number_; }

  // Who observes this thread as well: its rank's timeline. It is told of everything.
  CallObserver* outer() const { return outer_; }

 private:
  using Clock = std::chrono::steady_clock;

  static inline std::atomic<uint64_t> num_made_ = 0;

  ProfileOptions options_;
  uint64_t number_ = ++num_made_;
  CallObserver* outer_ = nullptr;
  bool is_active_ = true;
  Clock::time_point start_;
  double stopped_us_ = 0;
  std::vector<Event> events_;
  std::vector<double> inside_us_;  // by event: the time of the events in it that have ended

  // An event on a device, with the marks before and after it in the device's queue.
  struct OnDevice {
    size_t event;
    DeviceMark begin;
    DeviceMark end;
  };

  std::vector<OnDevice> on_device_;
  int64_t open_ = -1;  // the innermost event that has not ended
};

void Recording::stop() {
  if (!is_active_) return;
  if (thread_state().trace != nullptr) {
    throw InvalidArgument(
        "[profiler] the profile was stopped while a trace that began after it is open; end the "
        "trace first");
  }
  // A Scope that is still open ends here.
  while (open_ >= 0 && events_[static_cast<size_t>(open_)].is_scope)
    end(static_cast<size_t>(open_));
  stopped_us_ = elapsed_us();
  is_active_ = false;
  thread_state().observer = outer_;
  for (const OnDevice& entry : on_device_)
    events_[entry.event].device_us = entry.end.us_since(entry.begin);
  on_device_.clear();
}

double Recording::elapsed_us() const {
  if (!is_active_) return stopped_us_;
  return std::chrono::duration<double, std::micro>(Clock::now() - start_).count();
}

size_t Recording::begin(Event event) {
  const size_t index = events_.size();
  event.parent = std::exchange(open_, static_cast<int64_t>(index));
  events_.push_back(std::move(event));
  inside_us_.push_back(0);
  events_.back().start_us = elapsed_us();
  return index;
}

void Recording::end(size_t index) {
  Event& event = events_[index];
  event.total_us = elapsed_us() - event.start_us;
  event.self_us = event.total_us - inside_us_[index];
  open_ = event.parent;
  if (open_ >= 0) inside_us_[static_cast<size_t>(open_)] += event.total_us;
}

void Recording::begin(const Call& call, const Decision& decision) {
  if (outer_ != nullptr) outer_->begin(call, decision);
  const ThreadState& state = thread_state();
  const size_t index =
      begin({.name = str(call.op.name, call.mutates != call.op.mutates ? "_" : ""),
             .phase = state.phase,
             .site = text_of(user_site(call.site)),
             .module = state.module_path != nullptr ? *state.module_path : std::string(),
             .shapes = options_.record_shapes ? shapes_of(call) : std::string()});
  if (is_on_device(decision)) on_device_.push_back({index, DeviceMark::now(*state.context), {}});
}

// There is no end mark for what a failed call has queued on a device.
void Recording::end(const Decision& decision, bool has_failed) {
  const auto index = static_cast<size_t>(open_);
  if (is_on_device(decision)) {
    const auto entry = std::find_if(on_device_.rbegin(), on_device_.rend(),
                                    [&](const OnDevice& it) { return it.event == index; });
    if (has_failed) {
      on_device_.erase(std::next(entry).base(), on_device_.end());
    } else {
      entry->end = DeviceMark::now(*thread_state().context);
    }
  }
  end(index);
  if (outer_ != nullptr) outer_->end(decision, has_failed);
}

Profile::Profile(const ProfileOptions& options, Site site)
    : recording_(std::make_unique<Recording>(options, site)) {}

Profile::~Profile() = default;

void Profile::stop() {
  recording_->stop();
}

const std::vector<Event>& Profile::events() const {
  return recording_->events();
}

double Profile::elapsed_us() const {
  return recording_->elapsed_us();
}

std::vector<Average> Profile::key_averages(Key key) const {
  std::map<std::string, Average> by_key;
  for (const Event& event : events()) {
    const std::string& own = key_of(event, key);
    Average& average = by_key[own];
    ++average.calls;
    average.self_us += event.self_us;
    if (is_within(events(), event, [&](const Event& outer) { return key_of(outer, key) == own; }))
      continue;
    average.total_us += event.total_us;
    average.device_us += event.device_us;
  }
  std::vector<Average> averages;
  for (auto& [name, average] : by_key) {
    average.key = name;
    averages.push_back(average);
  }
  std::stable_sort(averages.begin(), averages.end(),
                   [](const Average& a, const Average& b) { return a.self_us > b.self_us; });
  return averages;
}

std::string Profile::table(Key key) const {
  constexpr const char* kTitles[] = {"op", "site", "module"};
  std::ostringstream out;
  out << std::fixed << std::left << std::setw(36) << kTitles[static_cast<size_t>(key)]
      << "    calls      self ms     share     total ms";
  const double whole = elapsed_us();
  double covered = 0;
  double on_device = 0;
  for (const Event& event : events()) {
    if (!is_within(events(), event, [](const Event& outer) { return !outer.is_scope; }))
      on_device += event.device_us;
  }
  if (on_device > 0) out << "     device ms";
  out << '\n';
  for (const Average& average : key_averages(key)) {
    covered += average.self_us;
    write_row(out, average.key.empty() ? "(none)" : average.key, str(average.calls),
              average.self_us, average.total_us, whole,
              on_device > 0 ? &average.device_us : nullptr);
  }
  write_row(out, "(between)", "", whole - covered, whole, whole,
            on_device > 0 ? &on_device : nullptr);
  return out.str();
}

void Profile::write_chrome_trace(const std::string& path) const {
  nlohmann::json events = nlohmann::json::array();
  for (const Event& event : this->events()) {
    nlohmann::json args = {{"phase", name_of(event.phase)}};
    if (!event.site.empty()) args["site"] = event.site;
    if (!event.module.empty()) args["module"] = event.module;
    if (!event.shapes.empty()) args["shapes"] = event.shapes;
    if (event.device_us > 0) args["device_us"] = event.device_us;
    events.push_back({{"ph", "X"},
                      {"name", event.name},
                      {"cat", event.is_scope ? "scope" : "op"},
                      {"ts", event.start_us},
                      {"dur", event.total_us},
                      {"pid", env::rank()},
                      {"tid", 0},
                      {"args", std::move(args)}});
  }
  std::ofstream file(path);
  const nlohmann::json trace = {{"traceEvents", std::move(events)}};
  // The name of a Scope may be no UTF-8.
  file << trace.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  file.close();
  if (!file)
    throw IoError(str("[profiler] cannot write ", path,
                      "; check that its folder exists and that the disk has room"));
}

namespace {

// The timeline of this thread's rank, which outlives the thread; null if there is none. Traced code
// does not run, so a timeline does not have it.
eager::TimelineObserver* timeline_here() {
  const ThreadState& state = thread_state();
  if (state.observer == nullptr || state.trace != nullptr) return nullptr;
  const Recording* recording = Recording::recording_here();
  return dynamic_cast<eager::TimelineObserver*>(recording != nullptr ? recording->outer()
                                                                     : state.observer);
}

}  // namespace

Scope::Scope(std::string_view name, Site site) {
  if (eager::TimelineObserver* timeline = timeline_here()) timeline->begin_scope(name, site);
  if (thread_state().trace != nullptr) return;
  Recording* const recording = Recording::recording_here();
  if (recording == nullptr) return;
  recording_ = recording->number();
  const ThreadState& state = thread_state();
  index_ = recording->begin(
      {.name = std::string(name),
       .is_scope = true,
       .phase = state.phase,
       .site = text_of(user_site(site)),
       .module = state.module_path != nullptr ? *state.module_path : std::string()});
}

Scope::~Scope() {
  // The profile may have been stopped or destroyed within the scope, and another one started.
  Recording* const recording = recording_ == 0 ? nullptr : Recording::recording_here();
  if (recording != nullptr && recording->number() == recording_) recording->end(index_);
  if (eager::TimelineObserver* timeline = timeline_here()) timeline->end_scope();
}

}  // namespace flow::profiler
