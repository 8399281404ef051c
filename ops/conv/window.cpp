#include "ops/conv/window.h"

#include <algorithm>

#include "core/error.h"
#include "core/tensor_meta.h"

namespace flow::ops {

SpatialInts spatial_numbers(const Ints& values, int64_t num_dims, int64_t least, int64_t unused,
                            const char* op, const char* name) {
  if (values.size() != 1 && values.size() != num_dims) {
    throw InvalidArgument(str("[", op, "] ", name, " must be one number, or one for each of the ",
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
  // Without taps, the rank holds no part of a window that outer axes have split.
  if (dim.padding != 0 || dim.kernel == 0) return false;
  if (num_ranks == 0) return dim.stride == 1 && dim.reach() == 1 && dim.in == dim.out;
  for (int64_t r = 0; r < num_ranks; ++r) {
    const Range in = balanced_part(dim.in, num_ranks, r);
    const Range out = balanced_part(dim.out, num_ranks, r);
    if (out.size == 0) continue;
    const int64_t end = (out.begin + out.size - 1) * dim.stride + dim.reach();
    if (in.begin != out.begin * dim.stride) return false;
    if (std::min(end, dim.in) > in.begin + in.size) return false;
  }
  return true;
}

TapRange taps_inside(const WindowDim& dim, int64_t o) {
  const int64_t start = o * dim.stride - dim.padding;
  const int64_t begin = start >= 0 ? 0 : (-start + dim.dilation - 1) / dim.dilation;
  const int64_t room = dim.in - start;  // offsets below it are inside
  const int64_t end = room <= 0 ? 0 : std::min(dim.kernel, (room - 1) / dim.dilation + 1);
  return {std::min(begin, end), end};
}

}  // namespace flow::ops
