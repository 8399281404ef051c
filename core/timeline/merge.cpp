// Uses nothing of the library, because flowrun, which has nothing of it, merges files too.
#include "core/timeline/merge.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/timeline/rank_file.h"

namespace flow::timeline {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// By EventKind; docs/timelines.md lists them.
constexpr std::array kCategories = {"op", "kernel", "part", "collective", "message", "scope"};

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The rank of "rank_3.events"; -1 for other names.
int64_t rank_of(const std::string& name) {
  constexpr std::string_view kBegin = "rank_", kEnd = ".events";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return -1;
  if (name.size() <= kBegin.size() + kEnd.size()) return -1;
  const char* first = name.data() + kBegin.size();
  const char* last = name.data() + name.size() - kEnd.size();
  int64_t rank = -1;
  const auto [stop, status] = std::from_chars(first, last, rank);
  return status == std::errc() && stop == last ? rank : -1;
}

std::string read(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(content).str();
}

std::string site_of(const RankEvents& rank, const Event& event) {
  const std::string file = rank.text(event.file);
  return file.substr(file.find_last_of('/') + 1) + ':' + std::to_string(event.line);
}

class Merge {
 public:
  explicit Merge(std::string folder) : folder_(std::move(folder)) {}

  MergeResult run(const std::string& output) {
    find_files();
    if (files_.empty()) {
      result_.error = "there is no file rank_R.events in " + folder_;
      return result_;
    }
    if (!result_.error.empty()) return result_;
    const std::string scratch = output + ".new." + std::to_string(getpid());
    {
      std::ofstream out(scratch);
      write(out);
      if (!out.flush()) result_.error = "cannot write " + output;
    }
    std::error_code error;
    if (result_.error.empty()) fs::rename(scratch, output, error);
    if (error) result_.error = "cannot write " + output + ": " + error.message();
    if (!result_.error.empty()) fs::remove(scratch, error);
    return result_;
  }

 private:
  // What is known of a rank before its events are written.
  struct File {
    fs::path path;
    FileHead head;
    int64_t shift_ns = 0;  // to the clock of the first rank
    Json about;
  };

  bool parse(const fs::path& path, RankEvents& events) {
    const std::string why = parse_rank_file(read(path), events);
    if (why.empty()) return true;
    result_.remarks.push_back(path.string() + " is left out: " + why);
    return false;
  }

  void find_files() {
    std::map<int64_t, fs::path> paths;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      const int64_t rank = rank_of(entry.path().filename().string());
      if (rank >= 0) paths[rank] = entry.path();
    }
    if (error) result_.error = "cannot read the folder " + folder_ + ": " + error.message();
    for (const auto& [rank, path] : paths) {
      RankEvents events;
      if (!parse(path, events)) continue;
      File& file = files_[rank];
      file = {.path = path, .head = events.head, .about = about(events)};
      file.shift_ns = shift_of(file.head);
      for (const Event& event : events.events)
        start_ns_ = std::min(start_ns_, event.begin_ns + file.shift_ns);
    }
    if (files_.empty()) return;
    const int64_t world_size = files_.begin()->second.head.world_size;
    std::string missing;
    for (int64_t rank = 0; rank < world_size; ++rank) {
      if (!files_.contains(rank)) missing += ' ' + std::to_string(rank);
    }
    if (!missing.empty()) {
      result_.remarks.push_back("there are no events of rank" + missing +
                                "; copy the files of other hosts to " + folder_ +
                                " and run flow-sim merge");
    }
    if (has_other_clock_) {
      result_.remarks.emplace_back(
          "the ranks are on several hosts, whose clocks are aligned by their time of day");
    }
  }

  // Times of day differ by what the monotonic clocks of two hosts differ in.
  int64_t shift_of(const FileHead& head) {
    const FileHead& first = files_.begin()->second.head;
    if (head.boot == first.boot) return 0;
    has_other_clock_ = true;
    return (head.realtime_ns - head.monotonic_ns) - (first.realtime_ns - first.monotonic_ns);
  }

  static Json about(const RankEvents& rank) {
    return {{"rank", rank.head.rank},
            {"host", rank.head.host.data()},
            {"events", rank.events.size()},
            {"lost_events", rank.num_lost},
            {"lost_names", rank.head.num_lost_texts},
            {"has_ended", rank.head.is_closed != 0}};
  }

  void write(std::ostream& out) {
    Json ranks = Json::array();
    for (const auto& [rank, file] : files_)
      ranks.push_back(file.about);
    const Json head = {{"format", "flow-timeline"}, {"version", 1},
                       {"source", "measured"},      {"schedule_name", ""},
                       {"schedule", Json::array()}, {"ranks", Json::array()},
                       {"costs", Json::array()},    {"recorded", std::move(ranks)},
                       {"remarks", result_.remarks}};
    out << "{\"flow\": " << dump(head) << ",\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [";
    for (const auto& [rank, file] : files_) {
      RankEvents events;
      if (!parse(file.path, events)) continue;
      write_rank(out, file, events);
      ++result_.num_ranks;
      result_.num_lost += events.num_lost;
    }
    out << "\n]}\n";
  }

  void write_line(std::ostream& out, const Json& json) {
    out << (is_first_ ? "\n" : ",\n") << dump(json);
    is_first_ = false;
  }

  void write_rank(std::ostream& out, const File& file, const RankEvents& rank) {
    const auto name = [&](const char* what, uint32_t lane, const std::string& text) {
      write_line(out, {{"name", what},
                       {"ph", "M"},
                       {"pid", rank.head.rank},
                       {"tid", lane},
                       {"args", {{"name", text}}}});
    };
    name("process_name", 0,
         "rank " + std::to_string(rank.head.rank) + " on " + rank.head.host.data());
    for (uint32_t lane = 0; lane < rank.head.num_lanes; ++lane)
      name("thread_name", lane, rank.head.lanes[lane].data());
    int64_t last_ns = 0;
    for (const Event& event : rank.events)
      last_ns = std::max({last_ns, event.begin_ns, event.end_ns});
    for (const Event& event : rank.events) {
      write_line(out, json_of(file, rank, event, last_ns));
      ++result_.num_events;
    }
  }

  Json json_of(const File& file, const RankEvents& rank, const Event& event,
               int64_t last_ns) const {
    Json args = Json::object();
    const bool is_step = event.kind == EventKind::kKernel || event.kind == EventKind::kPart;
    if (is_step) args["run"] = std::max(event.number_in, 0);
    if (event.line != 0) args["site"] = site_of(rank, event);
    if (event.module != 0) args["module"] = rank.text(event.module);
    if (event.detail != 0) args["what"] = rank.text(event.detail);
    if (event.bytes > 0) args["bytes"] = event.bytes;
    if (event.peer >= 0) args["peer"] = event.peer;
    if (!is_step && event.number_in >= 0) args["tag"] = event.number_in;
    if (event.has_failed != 0) args["failed"] = true;
    // What had not ended when the rank died lasts until the rank's last sign of life.
    if (event.end_ns == 0) args["unfinished"] = true;
    const int64_t end_ns = event.end_ns == 0 ? last_ns : event.end_ns;
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
    return {{"name", rank.text(event.name)},
            {"cat", kCategories[static_cast<size_t>(event.kind)]},
            {"ph", "X"},
            {"pid", rank.head.rank},
            {"tid", event.lane},
            {"ts", us(event.begin_ns + file.shift_ns - start_ns_)},
            {"dur", us(end_ns - event.begin_ns)},
            {"args", std::move(args)}};
  }

  std::string folder_;
  std::map<int64_t, File> files_;  // by rank
  int64_t start_ns_ = std::numeric_limits<int64_t>::max();
  bool has_other_clock_ = false;
  bool is_first_ = true;
  MergeResult result_;
};

}  // namespace

MergeResult merge_timelines(const std::string& folder, const std::string& output) {
  return Merge(folder).run(output);
}

std::string merged_file(const std::string& folder) {
  return folder + "/timeline.json";
}

std::string describe(const MergeResult& result, const std::string& output) {
  if (!result.error.empty()) return result.error + '\n';
  std::string text = "timeline of " + std::to_string(result.num_ranks) +
                     (result.num_ranks == 1 ? " rank, " : " ranks, ") +
                     std::to_string(result.num_events) + " events: " + output + '\n';
  if (result.num_lost > 0) {
    text += "the first " + std::to_string(result.num_lost) +
            " events are lost: a rank keeps its last " + std::to_string(Room().events) + '\n';
  }
  for (const std::string& remark : result.remarks)
    text += remark + '\n';
  return text;
}

}  // namespace flow::timeline
