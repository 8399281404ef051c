#include "tests/support/simulated_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/error.h"

namespace flow::contract {

namespace {

double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

bool one_in(std::mt19937_64& random, uint64_t count) {
  return random() % count == 0;
}

// The size of the addends of a small value. Where several axes are partial, addends of two tensors
// may be multiplied, and the product has the size of an addend along a single axis.
double addend_size(std::mt19937_64& random, DType dtype, int64_t num_axes) {
  const auto axes = static_cast<double>(num_axes);
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return 0;
    case DType::kInt8:
      return 40;
    case DType::kInt16:
      return 0x1p10;
    case DType::kInt32:
      return 0x1p26;
    case DType::kInt64:
      return 0x1p40;
    case DType::kBFloat16:
    case DType::kFloat16:
      return 16;
    case DType::kFloat32:
      return std::pow(10, uniform(random, 0, 3 / axes));
    case DType::kFloat64:
      break;
  }
  return std::pow(10, uniform(random, 0, 6 / axes));
}

// The limits of a dtype. For int64 they are the largest values that doubles represent.
struct Limits {
  double lowest;
  double largest;
};

Limits limits_of(DType dtype) {
  return dispatch_all(dtype, [&]<class T>() -> Limits {
    if constexpr (std::is_same_v<T, Float16>) {
      return {-65504, 65504};
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      return {-0x1.fep127, 0x1.fep127};
    } else if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) {
      return {-0x1p62, 0x1p62};
    } else {
      return {static_cast<double>(std::numeric_limits<T>::lowest()),
              static_cast<double>(std::numeric_limits<T>::max())};
    }
  });
}

// Makes the addends of one element.
void add_up(std::mt19937_64& random, DType dtype, int64_t num_axes, double value, Values& parts) {
  const size_t owner = random() % parts.size();
  if (dtype == DType::kBool) {  // a sum of bools means "any"
    for (double& part : parts)
      part = value != 0 && one_in(random, 2) ? 1 : 0;
    parts[owner] = value;
    return;
  }
  if (!std::isfinite(value)) {
    for (double& part : parts)
      part = uniform(random, -2, 2);
    double& other = parts[(owner + 1) % parts.size()];
    parts[owner] = value;
    if (std::isnan(value) && one_in(random, 2)) {
      parts[owner] = std::numeric_limits<double>::infinity();
      other = -parts[owner];
    } else if (std::isinf(value) && one_in(random, 3)) {  // overflow
      parts[owner] = other = std::copysign(limits_of(dtype).largest, value);
    }
    return;
  }
  // Sums of integers may wrap around. For int64 that would need values that doubles do not
  // represent.
  const bool wraps = !is_floating(dtype) && dtype != DType::kInt64 && one_in(random, 2);
  const Limits limits = limits_of(dtype);
  double rest = value;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == owner) continue;
    const double size = addend_size(random, dtype, num_axes);
    double addend = one_in(random, 5) ? 0 : uniform(random, -size, size);
    if (dtype == DType::kUInt8) addend = uniform(random, 0, rest);
    if (wraps) addend = uniform(random, limits.lowest, limits.largest);
    parts[i] = to_dtype(is_floating(dtype) ? addend : std::trunc(addend), dtype);
    rest -= parts[i];
  }
  parts[owner] = to_dtype(rest, dtype);
}

// The value of a rank without elements: the lowest value for a maximum, the highest for a minimum.
double worst_candidate(DType dtype, double sign) {
  if (is_floating(dtype)) return -sign * INFINITY;
  return sign > 0 ? limits_of(dtype).lowest : limits_of(dtype).largest;
}

// Makes the candidates of one element; sign is +1 for a maximum and -1 for a minimum.
void compete(std::mt19937_64& random, DType dtype, double value, double sign, Values& parts) {
  const size_t owner = random() % parts.size();
  const double worst = worst_candidate(dtype, sign);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == owner || value == worst || one_in(random, 5)) {
      parts[i] = value;
    } else if (one_in(random, 6)) {
      parts[i] = is_floating(dtype) || one_in(random, 2) ? worst : std::trunc((worst + value) / 2);
    } else if (!std::isfinite(value)) {
      parts[i] = uniform(random, -2, 2);
    } else if (dtype == DType::kBool) {
      parts[i] = sign > 0 ? value * static_cast<double>(random() % 2)
                          : std::max(value, static_cast<double>(random() % 2));
    } else if (is_floating(dtype)) {
      const bool may_be_zero = sign * value > 0 && one_in(random, 5);
      parts[i] = may_be_zero ? 0 : to_dtype(value - sign * uniform(random, 0, 6), dtype);
    } else {
      const Limits limits = limits_of(dtype);
      parts[i] = std::clamp(value - sign * static_cast<double>(random() % 10), limits.lowest,
                            limits.largest);
    }
  }
}

// Visits the row-major positions of a box inside a tensor of `shape`.
template <class Fn>
void for_each_in_box(const Shape& shape, const Shape& begin, const Shape& size, Fn&& fn) {
  const Strides strides = contiguous_strides(shape);
  const int64_t count = size.numel();
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i;
    int64_t offset = 0;
    for (int64_t d = size.size() - 1; d >= 0; --d) {
      offset += (begin[d] + left % size[d]) * strides[d];
      left /= size[d];
    }
    fn(static_cast<size_t>(offset));
  }
}

// Cuts each of `wholes` into `count` addends or candidates, which follow each other in the result.
std::vector<Values> cut_partial(const std::vector<Values>& wholes, DType dtype, Sbp sbp,
                                size_t count, int64_t num_axes, std::mt19937_64& random) {
  std::vector<Values> parts;
  Values candidates(count);
  for (const Values& whole : wholes) {
    const size_t first = parts.size();
    parts.resize(first + count, Values(whole.size()));
    for (size_t i = 0; i < whole.size(); ++i) {
      if (sbp == sbp::partial_sum) {
        add_up(random, dtype, num_axes, whole[i], candidates);
      } else {
        compete(random, dtype, whole[i], sbp == sbp::partial_max ? 1 : -1, candidates);
      }
      for (size_t r = 0; r < count; ++r)
        parts[first + r][i] = candidates[r];
    }
  }
  return parts;
}

// The position of a rank among the ranks of the partial axes alone.
size_t partial_position(const Placement& placement, const NdSbp& nd_sbp, int64_t position) {
  int64_t result = 0;
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
    if (!nd_sbp[axis].is_partial()) continue;
    result = result * placement.shape()[axis] + placement.coordinate(position, axis);
  }
  return static_cast<size_t>(result);
}

double reduced(Sbp::Kind kind, DType dtype, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  if (kind == Sbp::Kind::kPartialMin) return std::min(a, b);
  if (kind == Sbp::Kind::kPartialMax || dtype == DType::kBool) return std::max(a, b);
  return a + b;
}

// The elements of the logical tensor that some ranks hold together; NaN elsewhere.
struct Held {
  Values values;
  std::vector<bool> is_held;
};

Held held_by(const Tensor& part, const Tensor& expected) {
  const auto count = static_cast<size_t>(expected.numel());
  Held held{Values(count, NAN), std::vector<bool>(count, false)};
  const Values values = read_values(part);
  size_t next = 0;
  for_each_in_box(expected.shape(), part.meta().local_begin, part.meta().local_shape,
                  [&](size_t offset) {
                    held.values[offset] = values[next++];
                    held.is_held[offset] = true;
                  });
  return held;
}

// Adds what the next rank along an axis of layout `sbp` holds. Returns a difference of replicas.
std::string join(Held& held, const Held& next, Sbp sbp, DType dtype, Tolerance tolerance) {
  if (sbp.is_broadcast()) return difference(next.values, held.values, tolerance);
  for (size_t i = 0; i < held.values.size(); ++i) {
    if (!next.is_held[i]) continue;
    held.values[i] = held.is_held[i] && sbp.is_partial()
                         ? reduced(sbp.kind(), dtype, held.values[i], next.values[i])
                         : next.values[i];
    held.is_held[i] = true;
  }
  return {};
}

}  // namespace

Placement ranks(int64_t num_ranks) {
  std::vector<int64_t> list(static_cast<size_t>(num_ranks));
  std::iota(list.begin(), list.end(), 0);
  return Placement("cpu", list);
}

std::vector<Tensor> cut(const Tensor& logical, const NdSbp& nd_sbp, const Placement& placement,
                        std::mt19937_64& random) {
  // Ranks that differ along other axes take their parts from the same values.
  std::vector<Values> wholes = {read_values(logical)};
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
    if (!nd_sbp[axis].is_partial()) continue;
    wholes =
        cut_partial(wholes, logical.dtype(), nd_sbp[axis],
                    static_cast<size_t>(placement.shape()[axis]), placement.num_axes(), random);
  }
  std::vector<Tensor> parts;
  for (const int64_t rank : placement.ranks()) {
    const MetaPtr meta = global_meta(logical.shape(), logical.dtype(), placement, nd_sbp, rank);
    const Values& whole = wholes[partial_position(placement, nd_sbp, placement.position(rank))];
    Values values;
    for_each_in_box(logical.shape(), meta->local_begin, meta->local_shape,
                    [&](size_t offset) { values.push_back(whole[offset]); });
    parts.push_back(make_guarded(meta, values));
  }
  return parts;
}

std::string compare_parts(std::span<const Tensor> parts, Sbp sbp, const Tensor& expected,
                          Tolerance tolerance) {
  const Values whole = read_values(expected);
  for (const Tensor& part : parts) {
    if (!lies_in_storage(part)) return "the result lies outside of its memory";
  }
  if (sbp.is_broadcast()) {
    for (size_t r = 0; r < parts.size(); ++r) {
      const std::string problem = difference(read_values(parts[r]), whole, tolerance);
      if (!problem.empty()) return str("rank ", r, ": ", problem);
    }
    return {};
  }
  Values joined(whole.size(), NAN);
  for (size_t r = 0; r < parts.size(); ++r) {
    const Values values = read_values(parts[r]);
    const TensorMeta& meta = parts[r].meta();
    size_t next = 0;
    for_each_in_box(expected.shape(), meta.local_begin, meta.local_shape, [&](size_t offset) {
      const double value = values[next++];
      joined[offset] = sbp.is_split() || r == 0
                           ? value
                           : reduced(sbp.kind(), expected.dtype(), joined[offset], value);
    });
  }
  for (double& value : joined)
    value = to_dtype(value, expected.dtype());
  return difference(joined, whole, tolerance);
}

std::string compare_parts(std::span<const Tensor> parts, const NdSbp& nd_sbp,
                          const Placement& placement, const Tensor& expected, Tolerance tolerance) {
  std::vector<Held> held;
  for (const Tensor& part : parts) {
    if (!lies_in_storage(part)) return "the result lies outside of its memory";
    held.push_back(held_by(part, expected));
  }
  for (int64_t axis = placement.num_axes() - 1; axis >= 0; --axis) {
    const auto count = static_cast<size_t>(placement.shape()[axis]);
    std::vector<Held> joined;
    for (size_t i = 0; i < held.size(); ++i) {
      if (i % count == 0) {
        joined.push_back(std::move(held[i]));
        continue;
      }
      const std::string problem =
          join(joined.back(), held[i], nd_sbp[axis], expected.dtype(), tolerance);
      if (!problem.empty()) return str("replica ", i % count, " of axis ", axis, ": ", problem);
    }
    held = std::move(joined);
  }
  for (double& value : held[0].values)
    value = to_dtype(value, expected.dtype());
  return difference(held[0].values, read_values(expected), tolerance);
}

}  // namespace flow::contract
