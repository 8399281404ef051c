#include "ops/window.h"

#include <algorithm>

#include "core/error.h"

namespace flow::ops {

SpatialInts spatial_numbers(const Ints& values, int64_t num_dims, int64_t least, int64_t unused,
                            const char* op, const char* name) {
  if (values.size() != 1 && values.size() != num_dims) {
    throw InvalidArgument(str("[", op, "] ", name, " is one number or one for each of the ",
                              num_dims, " spatial dims; received ", values.size(), " numbers"));
  }
  SpatialInts result;
  result.fill(unused);
  for (int64_t i = 0; i < num_dims; ++i) {
    const int64_t value = values[values.size() == 1 ? 0 : i];
    if (value < least || value > INT32_MAX) {
      throw InvalidArgument(str("[", op, "] ", name, " is out of range; received ", value,
                                "; use numbers from ", least, " to ", INT32_MAX));
    }
    result[static_cast<size_t>(i)] = value;
  }
  return result;
}

int64_t count_windows(int64_t padded, int64_t reach, int64_t stride) {
  return padded < reach ? 0 : (padded - reach) / stride + 1;
}

bool splits_between_windows(const WindowDim& dim, int64_t num_ranks) {
  if (dim.padding != 0 || dim.in != dim.stride * dim.out || dim.reach() > dim.stride) return false;
  return dim.stride == 1 || (num_ranks > 0 && dim.out % num_ranks == 0);
}

TapRange taps_inside(const WindowDim& dim, int64_t o) {
  const int64_t start = o * dim.stride - dim.padding;
  const int64_t begin = start >= 0 ? 0 : (-start + dim.dilation - 1) / dim.dilation;
  const int64_t room = dim.in - start;  // offsets below it are inside
  const int64_t end = room <= 0 ? 0 : std::min(dim.kernel, (room - 1) / dim.dilation + 1);
  return {std::min(begin, end), end};
}

}  // namespace flow::ops
