#include "ops/kernel/convert_rows.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "ops/elementwise/cast_formula.h"

namespace flow::ops {

namespace {

// Elements are converted through double or int64, which hold every value of the floating and the
// integer types. This takes nine functions for reading and eighteen for writing instead of one for
// each of 81 pairs.
constexpr int64_t kBuffer = 256;

template <class Wide>
void load(const SourceRow& x, int64_t n, Wide* wide) {
  dispatch_all(x.dtype, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>) == std::is_floating_point_v<Wide>) {
      const T* source = reinterpret_cast<const T*>(x.data);
      for (int64_t i = 0; i < n; ++i)
        wide[i] = convert<Wide>(source[i * x.stride]);
    }
  });
}

template <class Wide>
void store(const ConvertedRow& y, int64_t n, const Wide* wide) {
  dispatch_all(y.dtype, [&]<class T>() {
    T* target = reinterpret_cast<T*>(y.data);
    for (int64_t i = 0; i < n; ++i)
      target[i * y.stride] = convert<T>(wide[i]);
  });
}

template <class Wide>
void convert_through(ConvertedRow y, SourceRow x, int64_t n) {
  const auto y_step = kBuffer * y.stride * static_cast<int64_t>(dtype_size(y.dtype));
  const auto x_step = kBuffer * x.stride * static_cast<int64_t>(dtype_size(x.dtype));
  std::array<Wide, kBuffer> wide;
  for (int64_t left = n; left > 0; left -= kBuffer) {
    const int64_t count = std::min(kBuffer, left);
    load(x, count, wide.data());
    store(y, count, wide.data());
    y.data += y_step;
    x.data += x_step;
  }
}

}  // namespace

void convert_row(const ConvertedRow& y, const SourceRow& x, int64_t n) {
  if (is_floating(x.dtype)) {
    convert_through<double>(y, x, n);
  } else {
    convert_through<int64_t>(y, x, n);
  }
}

void convert_rows(const LoopNest& state, DType to, std::byte* y, DType from, const std::byte* x) {
  const auto y_bytes = static_cast<int64_t>(dtype_size(to));
  const auto x_bytes = static_cast<int64_t>(dtype_size(from));
  const LoopNest::Offsets& stride = state.inner_stride();
  for_rows(state, 0, state.rows, [&](const LoopNest::Offsets& offsets) {
    convert_row({to, y + offsets[0] * y_bytes, stride[0]},
                {from, x + offsets[1] * x_bytes, stride[1]}, state.inner);
  });
}

}  // namespace flow::ops
