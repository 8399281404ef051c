// The lifetimes of the buffers of a program, and their places in its arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/program/program.h"

namespace flow::graph {

struct Lifetime {
  BufferId buffer;
  int64_t bytes;
  size_t first;  // the step that uses it first
  size_t last;
};

// Returns the lifetimes of the buffers in the arena, by first use. Using a view counts as using the
// buffer that it shows.
std::vector<Lifetime> lifetimes_of(const Program& program);

// Assigns offsets in the arena by lifetime: buffers whose lifetimes do not overlap may share bytes.
// Sets arena_offset and arena_bytes. First fit with 64-byte alignment.
void plan_memory(Program& program);

// Throws InternalError, which names the steps, unless the arena is used correctly: buffers that are
// alive together do not overlap, each is inside the arena at an aligned offset, none is read before
// a step has written it, and a send keeps its buffer until a step waits for the send. Programs
// whose memory is not planned are not looked at.
void check_memory(const Program& program);

}  // namespace flow::graph
