// The description of oneDNN's blocked layouts that flow's own kernels use.
#pragma once

#include <cstdint>

#include "core/tensor_meta.h"

namespace flow::ops {

// Memory is (batch, channel blocks, positions, lanes): for each position of the dims after the
// channels, `lanes` channels are contiguous. Lanes beyond the channels are padding, which must be
// zero.
struct ChannelBlocks {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t positions = 0;
  int64_t lanes = 0;

  int64_t blocks() const { return (channels + lanes - 1) / lanes; }

  bool has_padding() const { return channels % lanes != 0; }
};

// Describes layouts such as aBcd16b (16 lanes) and acdb (all channels); lanes = 0 for any other
// layout.
ChannelBlocks channel_blocks(const BlockedLayout& layout, const Shape& shape);

// Sets the padding to zero.
void clear_padding(const ChannelBlocks& blocks, float* data);

}  // namespace flow::ops
