// Uses nothing of the library, because flowrun, which has nothing of it, reads these files.
#include "core/timeline/rank_file.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace flow::timeline {

namespace {

constexpr int64_t kMostNs = int64_t{1} << 62;
constexpr int64_t kMostRanks = 1 << 20;

template <size_t N>
bool is_text(const std::array<char, N>& text) {
  return std::find(text.begin(), text.end(), '\0') != text.end();
}

bool is_time(int64_t ns) {
  return ns >= 0 && ns < kMostNs;
}

bool is_event(const Event& event, uint64_t place, const FileHead& head) {
  if (event.number == 0 || event.number > head.num_events) return false;
  if (event.number % head.room.events != place) return false;
  for (const uint32_t text : {event.name, event.detail, event.file, event.module}) {
    if (text >= head.num_text_bytes) return false;
  }
  return is_time(event.begin_ns) && is_time(event.end_ns) &&
         (event.end_ns == 0 || event.end_ns >= event.begin_ns) && event.lane < kMostLanes &&
         event.kind <= EventKind::kScope;
}

}  // namespace

std::string rank_file(const std::string& folder, int64_t rank) {
  return folder + "/rank_" + std::to_string(rank) + ".events";
}

std::string parse_rank_file(std::string_view bytes, RankEvents& result) {
  FileHead& head = result.head;
  if (bytes.size() < sizeof(head)) return "it is too short";
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.magic != kMagic) return "it is no file of events, or of another version";
  constexpr Room kMost;
  const Room& room = head.room;
  if (room.events == 0 || room.events > kMost.events || room.text_bytes % alignof(Event) != 0 ||
      room.text_bytes > kMost.text_bytes || bytes.size() != file_bytes(room)) {
    return "its size differs from what its head says";
  }
  const bool has_texts = is_text(head.boot) && is_text(head.host) &&
                         std::all_of(head.lanes.begin(), head.lanes.end(),
                                     [](const auto& lane) { return is_text(lane); });
  if (!has_texts || head.rank < 0 || head.world_size > kMostRanks || head.rank >= head.world_size ||
      head.num_text_bytes == 0 || head.num_text_bytes > room.text_bytes ||
      head.num_lanes > kMostLanes || !is_time(head.monotonic_ns) || !is_time(head.realtime_ns)) {
    return "its head is damaged";
  }
  result.texts = bytes.substr(sizeof(head), head.num_text_bytes);
  result.texts.push_back('\0');
  const std::string_view all = bytes.substr(sizeof(head) + room.text_bytes);
  for (uint64_t place = 0; place < room.events; ++place) {
    Event event;
    std::memcpy(&event, all.data() + place * sizeof(event), sizeof(event));
    if (is_event(event, place, head)) result.events.push_back(event);
  }
  const auto key = [](const Event& event) {
    const int64_t end = event.end_ns == 0 ? kMostNs : event.end_ns;
    return std::tuple(event.begin_ns, -end, event.number);
  };
  std::sort(result.events.begin(), result.events.end(),
            [&](const Event& a, const Event& b) { return key(a) < key(b); });
  result.num_lost = head.num_events > room.events ? head.num_events - room.events : 0;
  return {};
}

}  // namespace flow::timeline
