// When the buffers of a program are in use.
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

// Of the buffers that lie in the arena, by first use; a view counts as use of what it shows.
std::vector<Lifetime> lifetimes_of(const Program& program);

}  // namespace flow::graph
