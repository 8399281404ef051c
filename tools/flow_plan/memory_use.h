// The memory of a program over time, and who owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/program/program.h"
#include "tools/flow_plan/step_names.h"

namespace flow::tools {

// Bytes of the arena that values of one origin use.
struct OwnedBytes {
  Origin origin;
  int64_t bytes = 0;
  int64_t num_values = 0;
};

// One column of a drawing: the moment in it at which most bytes are in use.
struct MemoryColumn {
  size_t position = 0;
  int64_t bytes = 0;
  std::vector<int64_t> by_owner;  // of MemoryUse::shown; what remains belongs to others
};

struct MemoryUse {
  int64_t peak_bytes = 0;
  size_t peak_position = 0;
  size_t num_positions = 0;
  std::vector<OwnedBytes> at_peak;  // the largest first; they add up to peak_bytes
  size_t shown = 0;                 // the first of at_peak that columns tell apart
  std::vector<MemoryColumn> columns;
};

// Positions are those of graph/program/buffer_uses.h, whose memory_peak() gives the same peak.
// There are at most `most_columns` columns of about equally many positions, which tell the
// `most_owners` largest owners at the peak apart.
MemoryUse memory_use(const graph::Program& program, size_t most_columns, size_t most_owners);

}  // namespace flow::tools
