// The rows of comparisons, logical functions and functions of bits in the table of
// ops/elementwise/row_table.h. They have no gradient; otherwise they are written as those of
// ops/elementwise/arithmetic_rows.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/device/host_device.h"
#include "ops/elementwise/binary_facts.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/row_layouts.h"
#include "ops/elementwise/unary_facts.h"

namespace flow::ops {

inline constexpr uint32_t kLoopBits = kLoopBool | kLoopIntegers;

// Half of the elements that samples try are 0, so that some pairs are equal. With a number, bools
// are cast to its dtype, so they need no loop.
constexpr BinaryFacts predicate(BinaryFacts facts) {
  facts.a = facts.b = kHalfZeros;
  facts.number = 0;
  facts.loops = facts.call.is_given() ? kLoopBool | kLoopWords : kLoopWords;
  facts.gives_bools = true;
  return facts;
}

// clang-format off

// ---- comparisons

struct Eq {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "eq", .call = eq, .with_number = eq});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) { return a == b; }
};

struct Ne {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "ne", .call = ne, .with_number = ne});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) { return a != b; }
};

struct Lt {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "lt", .call = lt, .with_number = lt, .sbp = sbp_lt});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) { return a < b; }
};

struct Le {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "le", .call = le, .with_number = le, .sbp = sbp_le});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) { return a <= b; }
};

struct Gt {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "gt", .call = gt, .with_number = gt, .sbp = sbp_gt});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) { return a > b; }
};

struct Ge {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "ge", .call = ge, .with_number = ge, .sbp = sbp_ge});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) { return a >= b; }
};

struct EqNumber : WithNumber<Eq> {
  static constexpr BinaryFacts kFacts = predicate({.name = "eq_scalar", .with_number = eq});
};

struct NeNumber : WithNumber<Ne> {
  static constexpr BinaryFacts kFacts = predicate({.name = "ne_scalar", .with_number = ne});
};

struct LtNumber : WithNumber<Lt> {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "lt_scalar", .with_number = lt, .sbp = kFalls});
};

struct LeNumber : WithNumber<Le> {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "le_scalar", .with_number = le, .sbp = kFalls});
};

struct GtNumber : WithNumber<Gt> {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "gt_scalar", .with_number = gt, .sbp = kRises});
};

struct GeNumber : WithNumber<Ge> {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "ge_scalar", .with_number = ge, .sbp = kRises});
};

// ---- logical functions

struct LogicalAnd {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "logical_and", .call = logical_and, .sbp = sbp_logical_and});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return (a != T{0}) & (b != T{0});
  }
};

struct LogicalOr {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "logical_or", .call = logical_or, .sbp = sbp_logical_or});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return (a != T{0}) | (b != T{0});
  }
};

struct LogicalXor {
  static constexpr BinaryFacts kFacts =
      predicate({.name = "logical_xor", .call = logical_xor});
  template <class T> FLOW_HOST_DEVICE static bool apply(T a, T b) {
    return (a != T{0}) != (b != T{0});
  }
};

// ---- functions of bits

struct BitwiseAnd {
  static constexpr BinaryFacts kFacts{.name = "bitwise_and", .call = bitwise_and,
                                      .with_number = bitwise_and, .takes = Takes::kBits,
                                      .loops = kLoopBits};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) { return static_cast<T>(a & b); }
};

struct BitwiseOr {
  static constexpr BinaryFacts kFacts{.name = "bitwise_or", .call = bitwise_or,
                                      .with_number = bitwise_or, .takes = Takes::kBits,
                                      .loops = kLoopBits};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) { return static_cast<T>(a | b); }
};

struct BitwiseXor {
  static constexpr BinaryFacts kFacts{.name = "bitwise_xor", .call = bitwise_xor,
                                      .with_number = bitwise_xor, .takes = Takes::kBits,
                                      .loops = kLoopBits};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T b) { return static_cast<T>(a ^ b); }
};

// -x - 1, or "not": both reverse the order.
struct BitwiseNot {
  static constexpr UnaryFacts kFacts{.name = "bitwise_not", .call = bitwise_not,
                                     .takes = Takes::kBits, .sbp = kFalls, .loops = kLoopBits};
  template <class T> FLOW_HOST_DEVICE static T apply(T x) {
    if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

template <class T>
FLOW_HOST_DEVICE bool is_within_width(T bits) {
  if constexpr (std::is_signed_v<T>) {
    if (bits < 0) return false;
  }
  return static_cast<uint64_t>(bits) < 8 * sizeof(T);
}

// Shifting left multiplies by a power of two and wraps around.
struct LeftShift {
  static constexpr BinaryFacts kFacts{.name = "bitwise_left_shift", .call = bitwise_left_shift,
                                      .with_number = bitwise_left_shift,
                                      .takes = Takes::kIntegers, .sbp = sbp_linear_in_a,
                                      .loops = kNoLoops};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T bits) {
    return is_within_width(bits) ? static_cast<T>(static_cast<uint64_t>(a) << bits) : T{0};
  }
};

// Shifting right keeps the order.
struct RightShift {
  static constexpr BinaryFacts kFacts{.name = "bitwise_right_shift", .call = bitwise_right_shift,
                                      .with_number = bitwise_right_shift,
                                      .takes = Takes::kIntegers, .sbp = sbp_rises_in_a,
                                      .loops = kNoLoops};
  template <class T> FLOW_HOST_DEVICE static T apply(T a, T bits) {
    return static_cast<T>(is_within_width(bits) ? a >> bits : a < T{0} ? -1 : 0);
  }
};

// clang-format on

using CompareRows = Rows<Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr, LogicalXor, EqNumber,
                         NeNumber, LtNumber, LeNumber, GtNumber, GeNumber>;
using BitRows = Rows<BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, LeftShift, RightShift>;

}  // namespace flow::ops
