#include "boxing/comm/shared_board.h"

#include <algorithm>
#include <cstring>

namespace flow::boxing {

std::unique_ptr<SharedBoard> SharedBoard::make(SharedSegment& segment, uint64_t name, int64_t size,
                                               int64_t position, int64_t capacity) {
  const auto line = static_cast<int64_t>(sizeof(Place));
  const int64_t used = static_cast<int64_t>(offsetof(Place, data)) + capacity;
  const int64_t place_bytes = (used + line - 1) / line * line;
  std::byte* memory = segment.find(name, 2 * size * place_bytes);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedBoard>(new SharedBoard(memory, place_bytes, position));
}

SharedBoard::SharedBoard(std::byte* memory, int64_t place_bytes, int64_t position)
    : memory_(memory), place_bytes_(place_bytes), position_(position) {
  step_ = std::max(place(position, 0).step.load(), place(position, 1).step.load());
}

void SharedBoard::arrive(uint64_t hash, int32_t tag, std::span<const std::byte> data) {
  ++step_;
  Place& mine = place(position_);
  mine.hash = hash;
  mine.tag = tag;
  mine.bytes = static_cast<int32_t>(data.size());
  if (!data.empty()) std::memcpy(mine.data, data.data(), data.size());
  mine.step.store(step_, std::memory_order_release);
}

}  // namespace flow::boxing
