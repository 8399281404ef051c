#include "ops/index/positions.h"

#include <algorithm>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/named_errors.h"

namespace flow {

namespace {

// The elements of row i from column first(i) to last(i), without it.
template <class First, class Last>
Tensor places(const char* name, int64_t rows, int64_t columns, const TensorOptions& options,
              Site site, const First& first, const Last& last) {
  if (rows < 0 || columns < 0) {
    throw InvalidArgument(
        str("[", name, "] needs sizes of at least 0; received ", rows, " and ", columns), site);
  }
  std::vector<int64_t> row_places, column_places;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = std::max<int64_t>(0, first(i)); j < std::min(columns, last(i)); ++j) {
      row_places.push_back(i);
      column_places.push_back(j);
    }
  }
  const auto count = static_cast<int64_t>(row_places.size());
  row_places.insert(row_places.end(), column_places.begin(), column_places.end());
  return tensor(row_places, {2, count}, options, site);
}

}  // namespace

Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, const TensorOptions& options,
                    Site site) {
  return places(
      "tril_indices", rows, columns, options, site, [](int64_t) { return int64_t{0}; },
      [&](int64_t i) { return i + offset + 1; });
}

Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, const TensorOptions& options,
                    Site site) {
  return places(
      "triu_indices", rows, columns, options, site, [&](int64_t i) { return i + offset; },
      [&](int64_t) { return columns; });
}

std::vector<Tensor> unravel_index(const TensorArg& index, const Shape& shape) {
  return ops::named("unravel_index", index.site(), [&] {
    const Site site = index.site();
    if (is_floating(index->dtype()) || index->dtype() == DType::kBool) {
      throw InvalidArgument(
          str("[unravel_index] indices must be integers; received ", index->meta()), site);
    }
    std::vector<Tensor> positions(static_cast<size_t>(shape.size()));
    Tensor rest = index;
    for (int64_t d = shape.size() - 1; d >= 0; --d) {
      positions[static_cast<size_t>(d)] = remainder({rest, site}, shape[d]);
      rest = floor_divide({rest, site}, shape[d]);
    }
    return positions;
  });
}

}  // namespace flow
