// Quotients of sizes, rounded up.
#pragma once

#include <cstdint>

namespace flow::ops {

// Requires: b > 0. A negative dividend is rounded up too: -7 over 2 is -3.
constexpr int64_t divide_up(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

}  // namespace flow::ops
