#include "ops/conv/blocked_copy.h"

#include <array>
#include <string_view>

#include "core/tensor_meta.h"

namespace flow::ops {

namespace {

// The dims of a blocked array in the order of its memory, and the distance between neighbours along
// each of them in the row-major array.
struct Permutation {
  Shape size;
  Strides row_major;
};

// Reads a layout's name: the dims from the outermost to the innermost, in capitals if they are
// divided into blocks, and then the sizes and dims of the blocks ("ABcd16b16a"). Empty if the
// layout pads a dim, or if there are more than kMaxDims dims and blocks.
std::optional<Permutation> permutation_of(const Shape& shape, const BlockedLayout& layout) {
  if (layout.bytes != static_cast<size_t>(shape.numel()) * sizeof(float)) return std::nullopt;

  struct Block {
    int64_t dim;
    int64_t size;
  };

  std::array<Block, kMaxDims> blocks{};
  size_t num_blocks = 0;
  std::array<int64_t, kMaxDims> block_of{};  // by dim: the product of its blocks
  block_of.fill(1);
  const std::string_view name = layout.name;
  const auto order = name.substr(0, name.find_first_of("0123456789"));
  int64_t size = 0;
  for (const char c : name.substr(order.size())) {
    if (c >= '0' && c <= '9') {
      size = size * 10 + (c - '0');
      continue;
    }
    if (num_blocks == blocks.size()) return std::nullopt;
    blocks[num_blocks++] = {c - 'a', size};
    block_of[static_cast<size_t>(c - 'a')] *= size;
    size = 0;
  }
  if (order.size() + num_blocks > static_cast<size_t>(kMaxDims)) return std::nullopt;
  const Strides strides = contiguous_strides(shape);
  Permutation permutation;
  for (const char c : order) {
    const int64_t dim = c >= 'a' ? c - 'a' : c - 'A';
    const int64_t block = block_of[static_cast<size_t>(dim)];
    permutation.size.push_back(shape[dim] / block);
    permutation.row_major.push_back(strides[dim] * block);
  }
  for (size_t i = 0; i < num_blocks; ++i) {
    int64_t& inside = block_of[static_cast<size_t>(blocks[i].dim)];
    inside /= blocks[i].size;
    permutation.size.push_back(blocks[i].size);
    permutation.row_major.push_back(strides[blocks[i].dim] * inside);
  }
  return permutation;
}

}  // namespace

BlockedCopy BlockedCopy::to_blocked(const Shape& shape, const BlockedLayout& layout) {
  BlockedCopy copy;
  if (const auto permutation = permutation_of(shape, layout)) {
    copy.loop_.emplace(permutation->size, contiguous_strides(permutation->size),
                       permutation->row_major, sizeof(float));
  } else {
    copy.reorder_ = make_onednn(ReorderSpec{.shape = shape, .to = &layout});
  }
  return copy;
}

BlockedCopy BlockedCopy::to_row_major(const Shape& shape, const BlockedLayout& layout) {
  BlockedCopy copy;
  if (const auto permutation = permutation_of(shape, layout)) {
    copy.loop_.emplace(permutation->size, permutation->row_major,
                       contiguous_strides(permutation->size), sizeof(float));
  } else {
    copy.reorder_ = make_onednn(ReorderSpec{.shape = shape, .from = &layout});
  }
  return copy;
}

void BlockedCopy::run(ThreadPool& pool, const std::byte* source, std::byte* target,
                      std::byte* scratch) const {
  if (loop_) {
    loop_->copy(pool, target, source);
  } else {
    reorder_->run({.source = source, .destination = target, .scratch = scratch});
  }
}

}  // namespace flow::ops
