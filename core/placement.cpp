#include "core/placement.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/sbp.h"

namespace flow {

RankArray::RankArray(std::initializer_list<RankArray> nested) {
  if (nested.size() > 0) {
    const Shape& inner = nested.begin()->shape_;
    shape_ = inner;
    shape_.insert(0, static_cast<int64_t>(nested.size()));
    for (const RankArray& part : nested) {
      if (!(part.shape_ == inner)) {
        throw InvalidArgument(str("[placement] nested ranks are ragged: a part has shape ",
                                  part.shape_, ", the first ", inner,
                                  "; give every axis the same number of ranks"));
      }
      flat_.insert(flat_.end(), part.flat_.begin(), part.flat_.end());
    }
  }
}

RankArray::RankArray(const std::vector<int64_t>& ranks)
    : flat_(ranks), shape_{static_cast<int64_t>(ranks.size())} {}

struct Placement::Data {
  DeviceType device_type;
  Shape shape;
  std::vector<int64_t> ranks;
};

namespace {
void check_ranks(const Shape& shape, const std::vector<int64_t>& ranks) {
  if (ranks.empty()) throw InvalidArgument("[placement] no ranks; name at least one, such as {0}");
  if (shape.numel() != static_cast<int64_t>(ranks.size()) || shape.empty()) {
    throw InvalidArgument(str("[placement] shape ", shape, " does not hold ", ranks.size(),
                              " ranks; give sizes whose product is the number of ranks"));
  }
  if (shape.size() > NdSbp::kMaxAxes) {
    throw InvalidArgument(str("[placement] too many axes; received shape ", shape, "; use at most ",
                              NdSbp::kMaxAxes));
  }
  std::set<int64_t> seen;
  for (const int64_t rank : ranks) {
    if (rank < 0)
      throw InvalidArgument(str("[placement] rank ", rank, " is negative; count ranks from 0"));
    if (!seen.insert(rank).second) {
      throw InvalidArgument(str("[placement] rank ", rank, " occurs twice; list each rank once"));
    }
  }
}
}  // namespace

Placement::Placement(std::string_view device_type, const RankArray& ranks)
    : Placement(parse_device_type(device_type), ranks.shape().empty() ? Shape{1} : ranks.shape(),
                ranks.ranks()) {}

Placement::Placement(DeviceType device_type, const Shape& shape,
                     const std::vector<int64_t>& ranks) {
  check_ranks(shape, ranks);
  using Key = std::tuple<DeviceType, std::vector<int64_t>, std::vector<int64_t>>;
  // Append-only and never destroyed, so that handles in static variables stay valid.
  static std::mutex& mutex = *new std::mutex;
  static auto& table = *new std::map<Key, std::unique_ptr<const Data>>;
  Key key(device_type, std::vector<int64_t>(shape.begin(), shape.end()), ranks);
  const std::lock_guard lock(mutex);
  auto& entry = table[std::move(key)];
  if (!entry) entry = std::make_unique<const Data>(Data{device_type, shape, ranks});
  data_ = entry.get();
}

DeviceType Placement::device_type() const {
  FLOW_ASSERT(defined(), "placement is not defined");
  return data_->device_type;
}

const std::vector<int64_t>& Placement::ranks() const {
  FLOW_ASSERT(defined(), "placement is not defined");
  return data_->ranks;
}

const Shape& Placement::shape() const {
  FLOW_ASSERT(defined(), "placement is not defined");
  return data_->shape;
}

int64_t Placement::position(int64_t rank) const {
  const auto& all = ranks();
  const auto found = std::find(all.begin(), all.end(), rank);
  return found == all.end() ? -1 : found - all.begin();
}

int64_t Placement::coordinate(int64_t position, int64_t axis) const {
  return position / contiguous_strides(shape())[axis] % shape()[axis];
}

std::vector<int64_t> Placement::group_along(int64_t position, int64_t axis) const {
  const int64_t stride = contiguous_strides(shape())[axis];
  const int64_t first = position - coordinate(position, axis) * stride;
  std::vector<int64_t> group;
  for (int64_t i = 0; i < shape()[axis]; ++i) {
    group.push_back(ranks()[static_cast<size_t>(first + i * stride)]);
  }
  return group;
}

namespace {
void print_axis(std::ostream& out, const Placement& placement, int64_t axis, int64_t offset) {
  if (axis == placement.num_axes()) {
    out << placement.ranks()[static_cast<size_t>(offset)];
    return;
  }
  const int64_t stride = contiguous_strides(placement.shape())[axis];
  out << '(';
  for (int64_t i = 0; i < placement.shape()[axis]; ++i) {
    if (i > 0) out << ", ";
    print_axis(out, placement, axis + 1, offset + i * stride);
  }
  out << ')';
}
}  // namespace

std::ostream& operator<<(std::ostream& out, const Placement& placement) {
  if (!placement.defined()) return out << "local";
  out << placement.device_type() << ':';
  print_axis(out, placement, 0, 0);
  return out;
}

}  // namespace flow
