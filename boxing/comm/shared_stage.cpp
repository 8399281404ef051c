#include "boxing/comm/shared_stage.h"

namespace flow::boxing {

std::unique_ptr<SharedStage> SharedStage::make(SharedSegment& segment, uint64_t name, int64_t size,
                                               int64_t position) {
  const int64_t bytes = size * (static_cast<int64_t>(sizeof(Progress)) + kPieces * kPieceBytes);
  std::byte* memory = segment.find(name, bytes);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedStage>(new SharedStage(memory, size, position));
}

// Every collective uses the same number of pieces on all members, so a member's own count is that
// of all members.
SharedStage::SharedStage(std::byte* memory, int64_t size, int64_t position)
    : progress_(reinterpret_cast<Progress*>(memory)),
      pieces_(memory + size * static_cast<int64_t>(sizeof(Progress))),
      position_(position),
      num_before_(progress_[position].num_put.load()) {}

}  // namespace flow::boxing
