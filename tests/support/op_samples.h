// Sample calls of every op of the table, which the contract test runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/tensor.h"

namespace flow::contract {

// A set of dtypes, one bit each.
using DTypeSet = uint32_t;

constexpr DTypeSet only(DType dtype) {
  return 1U << static_cast<uint32_t>(dtype);
}

inline constexpr DTypeSet kFloats =
    only(DType::kFloat16) | only(DType::kBFloat16) | only(DType::kFloat32) | only(DType::kFloat64);
inline constexpr DTypeSet kIntegers = only(DType::kUInt8) | only(DType::kInt8) |
                                      only(DType::kInt16) | only(DType::kInt32) |
                                      only(DType::kInt64);
inline constexpr DTypeSet kNumbers = kFloats | kIntegers;
inline constexpr DTypeSet kAllDTypes = kNumbers | only(DType::kBool);
inline constexpr DTypeSet kNoDType = 0;

// How one input is filled. Floats are uniform in [low, high]. Integers are in [-9, 9], in [1, 9] if
// low > 0, and in [0, 9] for uint8 or if low == 0. Bools are random, or true if low > 0. Sizes of 5
// and 2 give uneven shards and, on three ranks, empty ones.
struct SampleInput {
  Shape shape = {};
  double low = -2;
  double high = 2;
  std::optional<DType> dtype = std::nullopt;  // unset: the dtype under test
  std::vector<double> avoid = {};             // no element is within `gap` of these
  double gap = 0.05;
  bool distinct = false;      // no ties: floats are 0.06 apart, in random order
  bool has_specials = false;  // a NaN and an infinity of each sign among floats
  double extremes = 0;        // share of floats that are 1000 or -1000
  double zeros = 0;           // share of elements that are 0 (false)
};

// An input of the dtype under test.
inline SampleInput in(const Shape& shape, double low = -2, double high = 2) {
  return {.shape = shape, .low = low, .high = high};
}

// An input without values near `kinks`, where the function has no derivative.
inline SampleInput kinked(const Shape& shape, std::vector<double> kinks) {
  return {.shape = shape, .avoid = std::move(kinks)};
}

inline SampleInput nonzero(const Shape& shape) {
  return {.shape = shape, .avoid = {0}, .gap = 0.5};
}

inline SampleInput distinct(const Shape& shape) {
  return {.shape = shape, .distinct = true};
}

inline SampleInput specials(const Shape& shape) {
  return {.shape = shape, .has_specials = true};
}

// Indices in 0 … size - 1.
inline SampleInput positions(const Shape& shape, int64_t size, DType dtype = DType::kInt64) {
  return {.shape = shape, .low = 0, .high = static_cast<double>(size - 1), .dtype = dtype};
}

// Indices of which no two are equal.
inline SampleInput distinct_positions(const Shape& shape, int64_t size) {
  SampleInput input = positions(shape, size);
  input.distinct = true;
  return input;
}

inline SampleInput mask(const Shape& shape, double zeros = 0.5) {
  return {.shape = shape, .low = 1, .dtype = DType::kBool, .zeros = zeros};
}

inline SampleInput sparse(const Shape& shape, double zeros) {
  return {.shape = shape, .zeros = zeros};
}

using Inputs = std::vector<Tensor>;

// One way to call public functions so that `op` is dispatched. The call works for the listed dtypes
// and throws for all others. kNoDType: no input's dtype varies.
struct OpSample {
  std::string op;
  std::vector<SampleInput> inputs;
  DTypeSet dtypes = kFloats;
  std::function<void(const Inputs& x)> call;
  std::string label = {};  // distinguishes samples of one op in reports
  // Only used to compare kernels: the inputs are large enough for several threads and full vectors,
  // or hold special values.
  bool only_kernels = false;
  // Bit i: input i is floating, but no gradient is defined for it.
  uint32_t constant_inputs = 0;
  // False: a signature that holds for these values need not hold for all, so signatures are not
  // searched.
  bool is_general = true;
  // False: the result is uninitialised memory, so there is nothing to compare.
  bool has_values = true;
};

using Samples = std::vector<OpSample>;

// A call that dispatches the ops that the gradient of `function` needs: with random gradients of
// its outputs, with respect to its floating inputs except those in `constant_inputs` (bit i).
std::function<void(const Inputs& x)> backward_of(std::function<Tensor(const Inputs& x)> function,
                                                 uint32_t constant_inputs = 0);

// The samples of all families, in the order of the files in op_samples/.
const Samples& all_samples();

// The samples of one op.
std::vector<const OpSample*> samples_of(const std::string& op);

// Prints "softmax: dim 1", for messages.
std::string describe(const OpSample& sample);

// Makes new inputs; the same seed gives the same values.
Inputs make_inputs(const OpSample& sample, DType dtype, uint64_t seed);

// The dtypes with which the sample runs; a single, unused one if the dtypes of all inputs are
// fixed.
std::vector<DType> dtypes_of(const OpSample& sample);
// float64 if it is one of them, else int64, else the first one.
DType widest_dtype(const OpSample& sample);
// The widest dtype, then float32 if the sample runs with it and it is another one.
std::vector<DType> widest_and_float32(const OpSample& sample);

}  // namespace flow::contract
