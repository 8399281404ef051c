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

// The ranks of a placement: {0, 1} or {{0, 1}, {2, 3}} to any depth.
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

// Interned and immutable: copying and comparing are those of a pointer. A default-constructed
// placement means "local" or "as it is". Building one starts nothing and checks no rank against
// the world: the first tensor that uses it does. Prints as cpu:(0, 1) or cpu:((0, 1), (2, 3)).
class Placement {
 public:
  constexpr Placement() = default;
  // Throws InvalidArgument for no ranks, a rank twice or below 0, ragged nesting, more than
  // NdSbp::kMaxAxes axes.
  Placement(std::string_view device_type, const RankArray& ranks);
  Placement(DeviceType device_type, const Shape& shape, const std::vector<int64_t>& ranks);

  bool defined() const { return data_ != nullptr; }

  DeviceType device_type() const;
  // Flattened in row-major order of shape().
  const std::vector<int64_t>& ranks() const;
  // The number of ranks along each placement axis.
  const Shape& shape() const;

  int64_t num_axes() const { return shape().size(); }

  int64_t num_ranks() const { return static_cast<int64_t>(ranks().size()); }

  bool contains(int64_t rank) const { return position(rank) >= 0; }

  // Index of `rank` in ranks(), -1 when absent.
  int64_t position(int64_t rank) const;
  // Coordinate of the position-th rank along `axis`.
  int64_t coordinate(int64_t position, int64_t axis) const;
  // The ranks that differ from the position-th one along `axis` only, in axis order.
  std::vector<int64_t> group_along(int64_t position, int64_t axis) const;

  // Unique address of this placement's value; for hashing.
  const void* id() const { return data_; }

  friend constexpr bool operator==(const Placement&, const Placement&) = default;

 private:
  struct Data;
  const Data* data_ = nullptr;
};

std::ostream& operator<<(std::ostream& out, const Placement& placement);

}  // namespace flow
