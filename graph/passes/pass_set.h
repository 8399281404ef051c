// Which passes a step goes through (graph/passes/pass.h).
#pragma once

#include <cstdint>

namespace flow::graph {

enum class PassSet : uint8_t {
  kAll,
  kExact  // those that leave results as they are bit for bit
};

}  // namespace flow::graph
