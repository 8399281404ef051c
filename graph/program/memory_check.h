// Proves that a program uses its arena correctly.
#pragma once

#include "graph/program/buffer_uses.h"

namespace flow::graph {

// Throws InternalError, which names the steps, unless the arena is used correctly: buffers that are
// alive together do not overlap, each is inside the arena or its frame at an aligned offset, none
// is read before a step has written it (of the same micro-batch, if each has its own), and a send
// keeps its buffer until a step waits for the send. Programs whose memory is not planned are not
// looked at.
void check_memory(const BufferUses& uses);

}  // namespace flow::graph
