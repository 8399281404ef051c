// What flowruns send to each other, and the records of ranks from which flowrun tells how a job
// ended.
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "boxing/comm/flight_record.h"
#include "core/context.h"
#include "core/timeline/merge.h"
#include "core/timeline/rank_file.h"
#include "core/timeline/timeline_log.h"
#include "tests/fuzz/formats.h"
#include "tools/flowrun/daemon.h"
#include "tools/flowrun/flight.h"
#include "tools/flowrun/link.h"
#include "tools/flowrun/messages.h"
#include "tools/flowrun/verdict.h"

namespace flow::fuzz {

namespace {

using flowrun::Frame;
using flowrun::Link;
using Json = nlohmann::json;

std::vector<std::string> parts_of(const std::string& bytes) {
  std::vector<std::string> parts(1);
  for (const char c : bytes) {
    if (c == '\0') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Two links whose bytes pass through this object.
class Wire {
 public:
  Wire() : head_(connect(0), Link::Side::kHead, "secret"), node_(connect(1), kNode, "secret") {}

  ~Wire() {
    for (const int file : files_)
      close(file);
  }

  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // What the node says when it greets and sends frames, changed by `difference`: its bytes are
  // added to those of the node, which ends where it ends, or goes on with its remaining bytes.
  // Returns the frames that the head takes.
  std::vector<Frame> talk(const std::string& difference) {
    head_.step();
    give(1, hear(0));
    node_.step();
    std::string greeting = changed(hear(1), difference.substr(0, kGreeting));
    give(0, greeting);
    head_.step();
    if (head_.state() != Link::State::kOpen) return {};
    give(1, hear(0));
    node_.step();
    node_.send(Frame::Kind::kHello, "a name");
    node_.send(Frame::Kind::kFile, std::string("exit_0.json") + '\0' + "{}");
    give(0, changed(hear(1), difference.substr(kGreeting)));
    head_.step();
    std::vector<Frame> frames;
    while (auto frame = head_.take())
      frames.push_back(*frame);
    return frames;
  }

  static constexpr size_t kGreeting = 8 + 32 + 32;  // word, number, signature
  static constexpr size_t kFrames = (5 + 6 + 32) + (5 + 14 + 32);

 private:
  static constexpr Link::Side kNode = Link::Side::kNode;

  int connect(size_t side) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) != 0)
      throw std::runtime_error("no sockets");
    files_[side] = ends[1];
    return ends[0];
  }

  std::string hear(size_t side) const {
    std::string text(1 << 16, '\0');
    const ssize_t count = recv(files_[side], text.data(), text.size(), 0);
    text.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return text;
  }

  void give(size_t side, const std::string& text) const {
    if (!text.empty()) send(files_[side], text.data(), text.size(), MSG_NOSIGNAL);
  }

  static std::string changed(const std::string& text, std::string difference) {
    for (size_t i = 0; i < std::min(text.size(), difference.size()); ++i)
      difference[i] = static_cast<char>(difference[i] + text[i]);
    return difference;
  }

  std::array<int, 2> files_ = {-1, -1};
  Link head_;
  Link node_;
};

// A file of this format says how the bytes differ that arrive from a node; zeros change nothing.
Format link() {
  return {.name = "launcher_link",
          .seeds = {std::string(Wire::kGreeting + Wire::kFrames, '\0')},
          .read = [](const std::string& bytes) {
            const std::vector<Frame> frames = Wire().talk(bytes);
            require(frames.size() <= 2, "the head takes frames that were not sent");
            const std::array<std::string, 2> sent = {"a name",
                                                     std::string("exit_0.json") + '\0' + "{}"};
            for (size_t i = 0; i < frames.size(); ++i)
              require(frames[i].content == sent[i], "the head takes a changed frame");
            return frames.size() == 2;
          }};
}

template <class Parse>
Format message(const std::string& name, const std::string& seed, Parse parse) {
  return {.name = name, .seeds = {seed}, .read = [parse](const std::string& text) {
            const auto value = parse(text);
            if (!value) return false;
            require(parse(flowrun::to_text(*value)) == value, "a message does not read back");
            return true;
          }};
}

Format daemon_command() {
  const std::string seed = std::string("orted") + '\0' + "-mca" + '\0' + "ess" + '\0' + "\"env\"" +
                           '\0' + "-mca" + '\0' + "orte_node_regex" + '\0' +
                           "\"vm,flow-node-[1:1]@0(2)\"";
  return {
      .name = "launcher_daemon", .seeds = {seed}, .read = [](const std::string& bytes) {
        return reads_or_refuses<std::runtime_error>("command", [&] {
          const auto words =
              flowrun::check_daemon_words(flowrun::parse_daemon_command(parts_of(bytes)), "/here");
          require(words[0] == "orted" && words.back() == "/here", "a command that is not checked");
        });
      }};
}

// A verdict on records, whatever these say, is a report of a failure, or none.
bool judged() {
  const std::string folder = scratch_folder() + "/session";
  const flowrun::Verdict verdict = flowrun::judge(folder, 2, {});
  const bool is_failure = verdict.exit_code != 0;
  require(verdict.exit_code >= 0 && verdict.exit_code < 256, "no exit code");
  require(is_failure != verdict.summary.empty(), "a failure without a summary");
  require(!is_failure || Json::accept(verdict.report), "a report that is no JSON");
  return !is_failure;
}

std::string record_name(size_t i) {
  constexpr std::array<const char*, 4> kNames = {"exit_0", "exit_1", "failed_1", "joining_0"};
  return std::string("session/") + kNames[i] + ".json";
}

// The records of two ranks, with a zero byte between two of them. A rank that did not fail has an
// empty record of its failure.
Format records() {
  const Json exit = {{"good", true},           {"exit_code", 0},       {"signal", 0},
                     {"was_started", true},    {"has_threads", false}, {"was_stopped", false},
                     {"left_silently", false}, {"time", 1.5}};
  const Json failed = {{"rank", 1},
                       {"time", 1.25},
                       {"exit_code", 71},
                       {"cause", "timeout"},
                       {"message", "it waits"},
                       {"op", "start"},
                       {"seq", 4},
                       {"site", "a.cpp:1"},
                       {"other_site", "b.cpp:2"},
                       {"missing_ranks", {0}}};
  const std::string zero(1, '\0');
  const std::string good = exit.dump() + zero + exit.dump();
  return {.name = "launcher_records",
          .seeds = {good, good + zero + failed.dump() + zero + "{}"},
          .read =
              [](const std::string& bytes) {
                std::filesystem::create_directories(scratch_folder() + "/session");
                const std::vector<std::string> contents = parts_of(bytes);
                for (size_t i = 0; i < 4; ++i) {
                  if (i < contents.size()) {
                    write_scratch(record_name(i), contents[i]);
                  } else {
                    std::filesystem::remove(scratch_folder() + '/' + record_name(i));
                  }
                }
                judged();
                std::filesystem::remove_all(scratch_folder() + "/session");
                return true;
              },
          .share_refused = -1};
}

Format flights() {
  std::string seed;
  for (uint64_t number = 1; number <= 3; ++number) {
    boxing::FlightRecord record;
    record.number = number;
    record.state = boxing::FlightRecord::State::kMet;
    record.num_dims = 2;
    record.shape = {4, 3};
    record.op = {"matmul"};
    record.collective = {"all_reduce"};
    record.dtype = {"float32"};
    record.file = {"a.cpp"};
    record.line = 7;
    seed.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  return {.name = "launcher_flights",
          .seeds = {seed},
          .read =
              [](const std::string& bytes) {
                std::filesystem::create_directories(scratch_folder() + "/flights");
                write_scratch("flights/flight_0", bytes);
                const Json read = flowrun::read_flights(scratch_folder() + "/flights", 8);
                require(read.size() == 1 && read[0]["calls"].size() <= 8, "too many calls");
                require(Json::accept(read.dump(-1, ' ', false, Json::error_handler_t::replace)),
                        "calls that are no JSON");
                flowrun::last_call(read, 0);
                return true;
              },
          .share_refused = -1};
}

// The events of a rank, which flowrun merges.
Format events_of_rank() {
  const std::string folder = scratch_folder() + "/timeline";
  {
    timeline::TimelineLog log(folder, {.rank = 0, .world_size = 2},
                              {.events = 4, .text_bytes = 128});
    const timeline::ThreadLane lane(log, log.lane_named("program"));
    for (int i = 0; i < 6; ++i) {
      log.end(
          log.begin({.bytes = 8, .name = log.text("add"), .file = log.text("a.cpp"), .line = 7}),
          false);
    }
  }
  std::ostringstream seed;
  seed << std::ifstream(timeline::rank_file(folder, 0), std::ios::binary).rdbuf();
  return {.name = "rank_events",
          .seeds = {seed.str()},
          .read =
              [folder](const std::string& bytes) {
                write_scratch("timeline/rank_0.events", bytes);
                const std::string output = timeline::merged_file(folder);
                const timeline::MergeResult result = timeline::merge_timelines(folder, output);
                require(result.num_events <= 4, "more events than a file has room for");
                if (!result.error.empty()) return true;
                std::ostringstream text;
                text << std::ifstream(output).rdbuf();
                require(Json::accept(text.str()), "a timeline that is no JSON");
                std::filesystem::remove(output);
                return true;
              },
          .share_refused = -1};
}

}  // namespace

void add_launcher_formats(std::vector<Format>& formats) {
  formats.push_back(link());
  const flowrun::Hello hello{.node = 1,
                             .num_nodes = 2,
                             .num_ranks = 4,
                             .command = {"program", "argument"},
                             .flowrun = "/bin/flowrun",
                             .host = "a",
                             .network = "10.0.0.0/24",
                             .may_rename = true};
  formats.push_back(message("launcher_hello", to_text(hello), flowrun::parse_hello));
  formats.push_back(message("launcher_ending",
                            to_text(flowrun::Ending{.exit_code = 72, .summary = "rank 1 ended"}),
                            flowrun::parse_ending));
  formats.push_back(daemon_command());
  formats.push_back(records());
  formats.push_back(flights());
  formats.push_back(events_of_rank());
}

}  // namespace flow::fuzz
