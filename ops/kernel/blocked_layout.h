// What flow's own kernels know of the blocked layouts of oneDNN.
#pragma once

#include <cstdint>

#include "core/tensor_meta.h"

namespace flow::ops {

// Memory (batch, channel blocks, positions, lanes): lanes channels lie side by side for each
// position of the dims behind them. Lanes beyond the channels are padding, which must be zero.
struct ChannelBlocks {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t positions = 0;
  int64_t lanes = 0;

  int64_t blocks() const { return (channels + lanes - 1) / lanes; }

  bool has_padding() const { return channels % lanes != 0; }
};

// Of layouts such as aBcd16b (16 lanes) and acdb (all channels); lanes = 0 for any other.
ChannelBlocks channel_blocks(const BlockedLayout& layout, const Shape& shape);

// Sets the padding to zero.
void clear_padding(const ChannelBlocks& blocks, float* data);

}  // namespace flow::ops
