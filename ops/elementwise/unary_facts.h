// The facts of a row of ops/elementwise/unary_rows.h apart from its formula and its gradient.
#pragma once

#include <cstddef>
#include <type_traits>

#include "core/op.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

// The dtypes that a public function takes. The op itself takes only floats if its function
// promotes.
enum class Takes {
  kAll,
  kNumbers,          // all but bool
  kFloats,           // others raise InvalidArgument
  kPromoted,         // integers and bools are cast to default_dtype()
  kPromotedNumbers,  // integers are cast; bools raise InvalidArgument
};

// The values that the contract test tries: uniform in [low, high], but none within `gap` of the
// values to avoid, where the function has no derivative.
struct UnarySample {
  double low = -3;
  double high = 3;
  double avoid[5] = {};
  int num_avoided = 0;
  double gap = 0.05;
  double zeros = 0;  // share of elements that are 0
  bool has_specials = false;
};

inline constexpr UnarySample kAnywhere;
inline constexpr UnarySample kPositive{.low = 0.5};
inline constexpr UnarySample kInsideOne{.low = -0.9, .high = 0.9};
inline constexpr UnarySample kKinkAtZero{.low = -2, .high = 2, .num_avoided = 1};
inline constexpr UnarySample kNonzero{.low = -2, .high = 2, .num_avoided = 1, .gap = 0.5};
inline constexpr UnarySample kBetweenWholes{
    .low = -2, .high = 2, .avoid = {-2, -1, 0, 1, 2}, .num_avoided = 5};
inline constexpr UnarySample kBetweenHalves{
    .low = -2, .high = 2, .avoid = {-1.5, -0.5, 0.5, 1.5}, .num_avoided = 4};
inline constexpr UnarySample kKinksOfSix{
    .low = -5, .high = 5, .avoid = {-3, 0, 3}, .num_avoided = 3};
inline constexpr UnarySample kSpecials{.low = -2, .high = 2, .has_specials = true};
inline constexpr UnarySample kHalfZeros{.low = -2, .high = 2, .zeros = 0.5};

// Layout rules, by what becomes of partial values. A function that is NaN on both sides of its
// domain, or that neither rises nor falls, takes no partial values.
inline constexpr SbpFn kRises = unary_sbp<kIncreasing>;
inline constexpr SbpFn kFalls = unary_sbp<kDecreasing>;
inline constexpr SbpFn kRisesFromBound = unary_sbp<kMinToMin>;  // NaN below the bound
inline constexpr SbpFn kFallsFromBound = unary_sbp<kMinToMax>;

struct UnaryFacts {
  const char* name;
  Tensor (*call)(const TensorArg& x);
  const Tensor& (*in_place)(const TensorArg& x) = nullptr;
  Takes takes = Takes::kPromoted;
  SbpFn sbp = elementwise_sbp;
  UnarySample sample = kAnywhere;
  AutocastRule autocast = AutocastRule::kNone;
  bool gives_bools = false;  // no gradient and no in-place form
  bool is_step = false;      // its derivative is 0 wherever it exists
};

// A list of rows.
template <class... Row>
struct Rows {
  static constexpr size_t kSize = sizeof...(Row);
};

template <class... A, class... B, class... C>
constexpr Rows<A..., B..., C...> join(Rows<A...> /*a*/, Rows<B...> /*b*/, Rows<C...> /*c*/) {
  return {};
}

template <class Wanted, class... Row>
constexpr size_t position_of(Rows<Row...> /*rows*/) {
  size_t position = 0;
  const bool found = ((std::is_same_v<Wanted, Row> || (++position, false)) || ...);
  static_assert((std::is_same_v<Wanted, Row> || ...), "the row is not in the list");
  return found ? position : sizeof...(Row);
}

}  // namespace flow::ops
