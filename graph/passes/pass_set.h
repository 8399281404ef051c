// The sets of passes that a step can go through (graph/passes/pass.h).
#pragma once

#include <cstdint>

namespace flow::graph {

enum class PassSet : uint8_t {
  kAll,
  kExact  // passes that keep results the same bit for bit
};

}  // namespace flow::graph
