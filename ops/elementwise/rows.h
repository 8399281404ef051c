// What the rows of the table of elementwise functions (ops/elementwise/row_table.h) have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace flow::ops {

// The dtypes that a public function takes. The op itself takes only floats if its function
// promotes.
enum class Takes {
  kAll,
  kNumbers,          // all but bool
  kBoolsPromoted,    // bools are cast to the dtype of the number
  kFloats,           // others raise InvalidArgument
  kPromoted,         // integers and bools are cast to default_dtype()
  kPromotedNumbers,  // integers are cast; bools raise InvalidArgument
  kBits,             // integers and bools; there is no gradient
  kIntegers,         // no bools either; there is no gradient
};

// The dtypes for which the CPU has a loop over dense memory that the compiler vectorises. Other
// dtypes take the reference kernel, and floats a vector form if there is one.
enum Loops : uint32_t {
  kNoLoops = 0,
  kLoopBool = 1,
  kLoopInt32 = 2,
  kLoopInt64 = 4,
  kLoopFloat64 = 8,
  kLoopFloat32 = 16,
  kLoopBaseline = 32,  // the loops are compiled only for the baseline: they call the C library
  kLoopIntegers = kLoopInt32 | kLoopInt64,
  kLoopFloats = kLoopFloat64 | kLoopFloat32,
  kLoopWords = kLoopInt64 | kLoopFloats,
  kLoopLibrary = kLoopFloats | kLoopBaseline,
};

// What a gradient reads: inputs a, b and c, and the output y.
enum Reads : uint32_t { kReadsNothing = 0, kReadsA = 1, kReadsB = 2, kReadsC = 4, kReadsY = 8 };

// The values that the contract test tries: uniform in [low, high], but none within `gap` of the
// values to avoid, where the function has no derivative.
struct RowSample {
  double low = -3;
  double high = 3;
  double avoid[5] = {};
  int num_avoided = 0;
  double gap = 0.05;
  double zeros = 0;  // share of elements that are 0
  bool has_specials = false;
};

inline constexpr RowSample kAnywhere;
inline constexpr RowSample kNearZero{.low = -2, .high = 2};
inline constexpr RowSample kWide{.low = -9, .high = 9};
inline constexpr RowSample kPositive{.low = 0.5};
inline constexpr RowSample kInsideOne{.low = -0.9, .high = 0.9};
inline constexpr RowSample kKinkAtZero{.low = -2, .high = 2, .num_avoided = 1};
inline constexpr RowSample kNonzero{.low = -2, .high = 2, .num_avoided = 1, .gap = 0.5};
inline constexpr RowSample kBetweenWholes{
    .low = -2, .high = 2, .avoid = {-2, -1, 0, 1, 2}, .num_avoided = 5};
inline constexpr RowSample kBetweenHalves{
    .low = -2, .high = 2, .avoid = {-1.5, -0.5, 0.5, 1.5}, .num_avoided = 4};
inline constexpr RowSample kKinksOfSix{.low = -5, .high = 5, .avoid = {-3, 0, 3}, .num_avoided = 3};
inline constexpr RowSample kSpecials{.low = -2, .high = 2, .has_specials = true};
inline constexpr RowSample kHalfZeros{.low = -2, .high = 2, .zeros = 0.5};

// A list of rows.
template <class... Row>
struct Rows {
  static constexpr size_t kSize = sizeof...(Row);
};

constexpr Rows<> join() {
  return {};
}

template <class... A>
constexpr Rows<A...> join(Rows<A...> rows) {
  return rows;
}

template <class... A, class... B, class... More>
constexpr auto join(Rows<A...> /*a*/, Rows<B...> /*b*/, More... more) {
  return join(Rows<A..., B...>(), more...);
}

template <class Wanted, class... Row>
constexpr size_t position_of(Rows<Row...> /*rows*/) {
  size_t position = 0;
  const bool found = ((std::is_same_v<Wanted, Row> || (++position, false)) || ...);
  static_assert((std::is_same_v<Wanted, Row> || ...), "the row is not in the list");
  return found ? position : sizeof...(Row);
}

}  // namespace flow::ops
