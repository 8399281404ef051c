#include "nn/checkpoint_cover.h"

#include <algorithm>
#include <span>

#include "boxing/layout.h"

namespace flow::nn {

namespace {

using Boxes = std::span<const Box*>;

int64_t end_of(const Box& box, int64_t dim) {
  return box.begin[dim] + box.size[dim];
}

bool overlap_pairwise(Boxes boxes) {
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (boxing::intersection(*boxes[i], *boxes[j]).size.numel() > 0) return true;
    }
  }
  return false;
}

// The parts of `boxes`, which this function sorts, whose intervals along `dim` have nothing in
// common.
std::vector<Boxes> separate(Boxes boxes, int64_t dim) {
  std::sort(boxes.begin(), boxes.end(),
            [&](const Box* a, const Box* b) { return a->begin[dim] < b->begin[dim]; });
  std::vector<Boxes> parts;
  size_t first = 0;
  int64_t end = end_of(*boxes[0], dim);
  for (size_t i = 1; i < boxes.size(); ++i) {
    if (boxes[i]->begin[dim] >= end) {
      parts.push_back(boxes.subspan(first, i - first));
      first = i;
    }
    end = std::max(end, end_of(*boxes[i], dim));
  }
  parts.push_back(boxes.subspan(first));
  return parts;
}

// Two boxes overlap only if no dim separates them, so boxes of different parts do not.
bool overlap(Boxes all) {
  std::vector<Boxes> waiting = {all};
  while (!waiting.empty()) {
    const Boxes boxes = waiting.back();
    waiting.pop_back();
    if (boxes.size() < 2) continue;
    bool is_cut = false;
    for (int64_t dim = 0; dim < boxes[0]->begin.size() && !is_cut; ++dim) {
      const std::vector<Boxes> parts = separate(boxes, dim);
      is_cut = parts.size() > 1;
      if (is_cut) waiting.insert(waiting.end(), parts.begin(), parts.end());
    }
    if (!is_cut && overlap_pairwise(boxes)) return true;
  }
  return false;
}

}  // namespace

bool have_overlap(const std::vector<CheckpointSlice>& slices) {
  std::vector<const Box*> boxes;
  for (const CheckpointSlice& slice : slices) {
    if (slice.box.size.numel() > 0) boxes.push_back(&slice.box);
  }
  return overlap(boxes);
}

}  // namespace flow::nn
