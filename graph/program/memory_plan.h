// The places of buffers in the arena of a program.
#pragma once

#include "graph/program/program.h"

namespace flow::graph {

// Assigns offsets in the arena by lifetime: buffers whose lifetimes do not overlap may share bytes.
// What a micro-batch makes in one block and needs in another gets a place in a frame; what does not
// outlive the run of a block that runs several times shares memory with other such buffers, or
// takes what is unused in a frame. Sets arena_offset, frame, frames and arena_bytes. First fit with
// 64-byte alignment.
void plan_memory(Program& program);

}  // namespace flow::graph
