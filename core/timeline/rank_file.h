// The file in which a rank records what it does, rank_R.events in FLOW_TIMELINE: plain bytes that
// survive the rank. Writer and reader must run on machines of one kind and come from one version.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flow::timeline {

enum class EventKind : uint8_t { kOp, kKernel, kPart, kCollective, kMessage, kScope };

// What a thread of the rank did from begin to end. Texts are offsets in the file's texts; 0: none.
struct Event {
  uint64_t number = 0;   // from 1; 0: the place is unused
  int64_t begin_ns = 0;  // of the monotonic clock
  int64_t end_ns = 0;    // 0: it has not ended
  int64_t bytes = 0;
  uint32_t name = 0;
  uint32_t detail = 0;
  uint32_t file = 0;  // of the user's line
  uint32_t module = 0;
  uint32_t line = 0;
  int32_t peer = -1;       // world rank of the other side of a message
  int32_t number_in = -1;  // the tag of a message; the run of a kernel or part
  uint16_t lane = 0;
  EventKind kind = EventKind::kOp;
  uint8_t has_failed = 0;
};

static_assert(sizeof(Event) == 64);

// What a file has room for. The events form a ring: event n is at place n modulo their number, so
// the last ones are kept.
struct Room {
  uint32_t events = 1U << 16;
  uint32_t text_bytes = 1U << 18;
};

inline constexpr uint32_t kMostLanes = 16;  // the last one is shared by all further threads

inline constexpr std::array<char, 16> kMagic = {'f', 'l', 'o', 'w', '-', 'e',  'v', 'e',
                                                'n', 't', 's', ' ', '1', '\n', 0,   0};

// The file is a head, zero-terminated texts, and events.
struct FileHead {
  std::array<char, 16> magic = kMagic;
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t process = 0;
  // Both clocks when the file was opened.
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
  std::array<char, 40> boot = {};  // equal for processes that share the monotonic clock
  std::array<char, 64> host = {};
  Room room = {};
  uint64_t num_events = 0;  // also those that the ring has lost
  uint32_t num_text_bytes = 1;
  uint32_t num_lost_texts = 0;
  uint32_t num_lanes = 0;
  uint32_t is_closed = 0;  // the rank has left its program
  std::array<std::array<char, 32>, kMostLanes> lanes = {};
};

constexpr size_t file_bytes(const Room& room) {
  return sizeof(FileHead) + room.text_bytes + room.events * sizeof(Event);
}

// "FOLDER/rank_3.events".
std::string rank_file(const std::string& folder, int64_t rank);

// What a file says.
struct RankEvents {
  FileHead head;
  std::string texts;
  std::vector<Event> events;  // by begin; those that enclose others come before them
  uint64_t num_lost = 0;      // events that the ring has lost

  std::string text(uint32_t offset) const { return texts.c_str() + offset; }
};

// Reads the bytes of a file. Returns what is wrong with them, or an empty text.
std::string parse_rank_file(std::string_view bytes, RankEvents& result);

}  // namespace flow::timeline
