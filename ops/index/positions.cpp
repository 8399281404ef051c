#include "ops/index/positions.h"

#include <algorithm>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/named_errors.h"

namespace flow {

namespace {

// Sizes and offsets up to it can be added to each other.
constexpr int64_t kMostPlaces = int64_t{1} << 60;

// A matrix and one of its diagonals. Those outside it mean the same.
struct Triangle {
  Triangle(const char* name, int64_t num_rows, int64_t num_columns, int64_t diagonal, Site site)
      : rows(num_rows), columns(num_columns) {
    if (rows < 0 || columns < 0 || rows > kMostPlaces || columns > kMostPlaces) {
      throw InvalidArgument(str("[", name, "] needs sizes from 0 to ", kMostPlaces, "; received ",
                                rows, " and ", columns),
                            site);
    }
    offset = std::clamp(diagonal, -rows, columns);
  }

  int64_t rows;
  int64_t columns;
  int64_t offset;
};

// The elements of the rows in `rows`: in row i those of the columns span(i), of which there is one
// at least.
template <class Span>
Tensor places(Range rows, const TensorOptions& options, Site site, const Span& span) {
  std::vector<int64_t> row_places, column_places;
  row_places.reserve(static_cast<size_t>(rows.size));
  int64_t count = 0;
  for (int64_t i = rows.begin; i < rows.begin + rows.size; ++i)
    count = std::min(kMostPlaces, count + span(i).size);
  row_places.reserve(2 * static_cast<size_t>(count));
  column_places.reserve(static_cast<size_t>(count));
  for (int64_t i = rows.begin; i < rows.begin + rows.size; ++i) {
    const Range columns = span(i);
    for (int64_t j = columns.begin; j < columns.begin + columns.size; ++j) {
      row_places.push_back(i);
      column_places.push_back(j);
    }
  }
  row_places.insert(row_places.end(), column_places.begin(), column_places.end());
  return tensor(row_places, {2, count}, options, site);
}

}  // namespace

Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, const TensorOptions& options,
                    Site site) {
  return ops::named("tril_indices", site, [&]() -> Tensor {
    const Triangle own("tril_indices", rows, columns, offset, site);
    const int64_t first = std::max<int64_t>(0, -own.offset);
    return places({first, columns == 0 ? 0 : rows - first}, options, site, [&](int64_t i) {
      return Range{0, std::min(columns, i + own.offset + 1)};
    });
  });
}

Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, const TensorOptions& options,
                    Site site) {
  return ops::named("triu_indices", site, [&]() -> Tensor {
    const Triangle own("triu_indices", rows, columns, offset, site);
    return places({0, std::min(rows, columns - own.offset)}, options, site, [&](int64_t i) {
      const int64_t first = std::max<int64_t>(0, i + own.offset);
      return Range{first, columns - first};
    });
  });
}

std::vector<Tensor> unravel_index(const TensorArg& index, const Shape& shape) {
  return ops::named("unravel_index", index.site(), [&] {
    const Site site = index.site();
    if (is_floating(index->dtype()) || index->dtype() == DType::kBool) {
      throw InvalidArgument(
          str("[unravel_index] indices must be integers; received ", index->meta()), site);
    }
    std::vector<Tensor> positions(static_cast<size_t>(shape.size()));
    Tensor rest = cast(index, DType::kInt64);
    for (int64_t d = shape.size() - 1; d >= 0; --d) {
      positions[static_cast<size_t>(d)] = remainder({rest, site}, shape[d]);
      rest = floor_divide({rest, site}, shape[d]);
    }
    return positions;
  });
}

}  // namespace flow
