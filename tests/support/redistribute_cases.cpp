#include "tests/support/redistribute_cases.h"

#include <algorithm>
#include <numeric>

#include "core/tensor_meta.h"

namespace flow {

namespace {

// Reads one logical element from the parts: goes through the placement axes, follows the balanced
// split, reduces partial entries, and checks that replicas agree.
class LayoutReader {
 public:
  LayoutReader(const Shape& shape, const boxing::Layout& layout, const Parts& parts)
      : shape_(shape), layout_(layout), parts_(parts) {}

  float at(const Shape& index) { return value(0, 0, index, shape_); }

  bool replicas_agree() const { return replicas_agree_; }

 private:
  // `index` is relative to the part of `size` that the coordinates selected so far.
  float value(int64_t axis, int64_t position, const Shape& index, const Shape& size) {
    const Placement& placement = layout_.placement;
    if (axis == placement.num_axes()) {
      int64_t offset = 0;
      for (int64_t dim = 0; dim < size.size(); ++dim)
        offset = offset * size[dim] + index[dim];
      return parts_[static_cast<size_t>(position)].at(static_cast<size_t>(offset));
    }
    const int64_t count = placement.shape()[axis];
    const Sbp entry = layout_.nd_sbp[axis];
    if (entry.is_split()) {
      const int64_t dim = entry.dim();
      const int64_t base = size[dim] / count;
      const int64_t longer = size[dim] % count;
      int64_t begin = 0;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t length = base + (i < longer ? 1 : 0);
        if (index[dim] < begin + length) {
          Shape inner_index = index;
          Shape inner_size = size;
          inner_index[dim] -= begin;
          inner_size[dim] = length;
          return value(axis + 1, position * count + i, inner_index, inner_size);
        }
        begin += length;
      }
    }
    float result = value(axis + 1, position * count, index, size);
    for (int64_t i = 1; i < count; ++i) {
      const float next = value(axis + 1, position * count + i, index, size);
      if (entry == sbp::partial_sum) result += next;
      if (entry == sbp::partial_max) result = std::max(result, next);
      if (entry == sbp::partial_min) result = std::min(result, next);
      if (entry.is_broadcast()) replicas_agree_ &= result == next;
    }
    return result;
  }

  const Shape& shape_;
  const boxing::Layout& layout_;
  const Parts& parts_;
  bool replicas_agree_ = true;
};

}  // namespace

RedistributeCase RedistributeCaseMaker::make() {
  RedistributeCase result;
  const int64_t dims = below(4);
  for (int64_t i = 0; i < dims; ++i)
    result.shape.push_back(below(12) == 0 ? 0 : 1 + below(7));
  result.from.placement = placement();
  result.to.placement = below(2) == 0 ? result.from.placement : placement();
  result.from.nd_sbp = nd_sbp(result.from.placement, dims);
  result.to.nd_sbp = nd_sbp(result.to.placement, dims);
  result.cost.meeting_us = below(2) == 0 ? 0.0 : 2.0;
  result.cost.bytes_per_us = below(2) == 0 ? 0.01 : 1000.0;
  result.cost.reduced_per_us = below(2) == 0 ? 0.01 : 1000.0;
  result.cost.local_step_us = below(2) == 0 ? 0.0 : 1.0;
  result.is_packed = below(2) == 0;
  return result;
}

int64_t RedistributeCaseMaker::below(int64_t limit) {
  return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
}

Placement RedistributeCaseMaker::placement() {
  std::vector<Shape> shapes = {{1},    {2},    {3},    {4},    {5},       {6},
                               {2, 2}, {2, 3}, {3, 2}, {1, 4}, {2, 1, 3}, {1, 2, 2}};
  std::erase_if(shapes, [&](const Shape& shape) { return shape.numel() > num_ranks_; });
  const Shape shape = shapes[static_cast<size_t>(below(static_cast<int64_t>(shapes.size())))];
  std::vector<int64_t> ranks(static_cast<size_t>(num_ranks_));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  if (below(2) == 0) std::shuffle(ranks.begin(), ranks.end(), random_);
  ranks.resize(static_cast<size_t>(shape.numel()));
  return {DeviceType::kCpu, shape, ranks};
}

NdSbp RedistributeCaseMaker::nd_sbp(const Placement& placement, int64_t dims) {
  NdSbp result;
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
    const int64_t choice = below(6);
    result.push_back(choice < 3 && dims > 0 ? sbp::split(below(dims))
                     : choice == 3          ? sbp::partial_sum
                     : choice == 4          ? (below(2) == 0 ? sbp::partial_max : sbp::partial_min)
                                            : sbp::broadcast);
  }
  return result;
}

std::vector<float> make_part(const RedistributeCase& c, int64_t position) {
  const Placement& placement = c.from.placement;
  int64_t addend = 0;
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis) {
    if (c.from.nd_sbp[axis].is_partial())
      addend = addend * 7 + placement.coordinate(position, axis) + 1;
  }
  const Box box = box_of(c.shape, placement, c.from.nd_sbp, position);
  std::vector<float> values;
  Shape index = Shape::filled(c.shape.size(), 0);
  for (int64_t i = 0; i < box.size.numel(); ++i) {
    int64_t element = 0;
    for (int64_t dim = 0; dim < c.shape.size(); ++dim)
      element = element * 11 + box.begin[dim] + index[dim];
    values.push_back(static_cast<float>((element * 37 + addend * 101) % 211 - 100));
    for (int64_t dim = c.shape.size() - 1; dim >= 0 && ++index[dim] == box.size[dim]; --dim)
      index[dim] = 0;
  }
  return values;
}

std::vector<float> read_parts(const Shape& shape, const boxing::Layout& layout, const Parts& parts,
                              bool& replicas_agree) {
  LayoutReader reader(shape, layout, parts);
  std::vector<float> values;
  Shape index = Shape::filled(shape.size(), 0);
  for (int64_t i = 0; i < shape.numel(); ++i) {
    values.push_back(reader.at(index));
    for (int64_t dim = shape.size() - 1; dim >= 0 && ++index[dim] == shape[dim]; --dim)
      index[dim] = 0;
  }
  replicas_agree = reader.replicas_agree();
  return values;
}

}  // namespace flow
