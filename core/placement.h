// Placement: the device type and the nd-array of ranks that hold a global tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/shape.h"

namespace flow {

// The ranks of a placement: {0, 1} or {{0, 1}, {2, 3}}, nested to any depth.
class RankArray {
 public:
  RankArray(int64_t rank) : flat_{rank} {}  // NOLINT(google-explicit-constructor)

  RankArray(std::initializer_list<RankArray> nested);
  RankArray(const std::vector<int64_t>& ranks);  // NOLINT(google-explicit-constructor)

  const std::vector<int64_t>& ranks() const { return flat_; }

  const Shape& shape() const { return shape_; }

 private:
  std::vector<int64_t> flat_;
  Shape shape_;  // no dims: a single rank
};

// Interned and immutable: copying and comparing cost as much as for a pointer. A
// default-constructed placement means "local" or "unchanged". Building a placement starts nothing
// and does not check its ranks against the world; the first tensor that uses it does. Prints as
// cpu:(0, 1) or cpu:((0, 1), (2, 3)).
class Placement {
 public:
  constexpr Placement() = default;
  // Throws InvalidArgument if there are no ranks, a rank occurs twice or is negative, the nesting
  // is ragged, or there are more than NdSbp::kMaxAxes axes.
  Placement(std::string_view device_type, const RankArray& ranks);
  Placement(DeviceType device_type, const Shape& shape, const std::vector<int64_t>& ranks);

  bool defined() const { return data_ != nullptr; }

  DeviceType device_type() const;
  // All ranks, in row-major order of shape().
  const std::vector<int64_t>& ranks() const;
  // The number of ranks along each placement axis.
  const Shape& shape() const;

  int64_t num_axes() const { return shape().size(); }

  int64_t num_ranks() const { return static_cast<int64_t>(ranks().size()); }

  bool contains(int64_t rank) const { return position(rank) >= 0; }

  // The index of `rank` in ranks(), or -1 if it is not there.
  int64_t position(int64_t rank) const;
  // The coordinate of ranks()[position] along `axis`.
  int64_t coordinate(int64_t position, int64_t axis) const;
  // The ranks whose coordinates differ from those of ranks()[position] along `axis` only, in axis
  // order.
  std::vector<int64_t> group_along(int64_t position, int64_t axis) const;

  // A unique address for this placement's value; for hashing.
  const void* id() const { return data_; }

  friend constexpr bool operator==(const Placement&, const Placement&) = default;

 private:
  struct Data;
  const Data* data_ = nullptr;
};

std::ostream& operator<<(std::ostream& out, const Placement& placement);

}  // namespace flow
