#include "ops/kernel/blocked_layout.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace flow::ops {

namespace {

// Returns 16 for aBcd16b, all channels for acdb, and 0 for any other name.
int64_t lanes_of(std::string_view name, int64_t num_dims, int64_t channels) {
  constexpr std::string_view kLetters = "abcdef";
  if (num_dims < 3 || num_dims > static_cast<int64_t>(kLetters.size())) return 0;
  const std::string_view positions = kLetters.substr(2, static_cast<size_t>(num_dims - 2));
  const bool is_blocked = name.starts_with("aB");
  if (!is_blocked && !name.starts_with("a")) return 0;
  name.remove_prefix(is_blocked ? 2 : 1);
  if (!name.starts_with(positions) || !name.ends_with('b')) return 0;
  name.remove_prefix(positions.size());
  name.remove_suffix(1);
  if (!is_blocked) return name.empty() ? channels : 0;
  int64_t lanes = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), lanes);
  return error == std::errc() && end == name.data() + name.size() ? lanes : 0;
}

}  // namespace

ChannelBlocks channel_blocks(const BlockedLayout& layout, const Shape& shape) {
  if (shape.size() < 3) return {};
  ChannelBlocks blocks{.batch = shape[0],
                       .channels = shape[1],
                       .positions = 1,
                       .lanes = lanes_of(layout.name, shape.size(), shape[1])};
  for (int64_t i = 2; i < shape.size(); ++i)
    blocks.positions *= shape[i];
  return blocks;
}

void clear_padding(const ChannelBlocks& blocks, float* data) {
  const int64_t used = blocks.channels % blocks.lanes;
  if (used == 0) return;
  const int64_t block = blocks.positions * blocks.lanes;
  for (int64_t i = 0; i < blocks.batch; ++i) {
    float* last = data + (i * blocks.blocks() + blocks.blocks() - 1) * block;
    for (int64_t position = 0; position < blocks.positions; ++position)
      std::fill(last + position * blocks.lanes + used, last + (position + 1) * blocks.lanes, 0.0F);
  }
}

}  // namespace flow::ops
