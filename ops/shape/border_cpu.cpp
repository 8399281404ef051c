// Kernels of ops/shape/border_op.h, row by row. The forward one copies a row of x and its two ends
// into each row of y; the backward one adds up the rows of dy that are copies of a row of x.
// Traffic: input and output are touched once; repeated rows come from the caches.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/contiguous.h"
#include "ops/kernel/copy_bytes.h"
#include "ops/kernel/dispatch_size.h"
#include "ops/kernel/row_loops.h"
#include "ops/local_parts.h"
#include "ops/shape/border_op.h"

#include "ops/kernel/isa_begin.h"

void register_border_cpu(KernelTable& table);

namespace {

constexpr int64_t kGrain = 1 << 14;  // elements

// The offsets in the input at which the copies for position i of an output dim start:
// offsets[begins[i]] ... offsets[begins[i + 1] - 1].
struct Dim {
  int64_t size = 1;
  std::vector<int64_t> begins;
  std::vector<int64_t> offsets;
};

// An element of an end of y's row, and the one in x's row that it copies.
struct End {
  int64_t in_y;
  int64_t in_x;
};

// The rows of the output are numbered in row-major order of `dims`: all dims but the last, or one
// of size 1.
struct BorderState {
  std::vector<Dim> dims;
  int64_t num_rows = 1;
  int64_t columns = 1;  // of x
  int64_t before = 0;   // elements in front of the copy of x's row in y's
  int64_t y_columns = 1;
  int64_t x_stride = 1;  // of the last dim
  std::vector<End> ends;
};

Dim make_dim(const BorderAttrs& attrs, int64_t d, int64_t x_size, int64_t in_stride, bool is_back) {
  const int64_t y_size = x_size + attrs.before[d] + attrs.after[d];
  Dim dim{is_back ? x_size : y_size, {0}, {}};
  std::vector<std::vector<int64_t>> copies(static_cast<size_t>(dim.size));
  for (int64_t i = 0; i < y_size; ++i) {
    const int64_t from = border_source(attrs, d, x_size, i);
    copies[static_cast<size_t>(is_back ? from : i)].push_back((is_back ? i : from) * in_stride);
  }
  for (const std::vector<int64_t>& offsets : copies) {
    dim.offsets.insert(dim.offsets.end(), offsets.begin(), offsets.end());
    dim.begins.push_back(static_cast<int64_t>(dim.offsets.size()));
  }
  return dim;
}

std::shared_ptr<const BorderState> prepare(const BorderAttrs& attrs, const Shape& x,
                                           const Strides& in_strides, bool is_back) {
  const auto state = std::make_shared<BorderState>();
  const int64_t last = x.size() - 1;
  for (int64_t d = 0; d < last; ++d) {
    state->dims.push_back(make_dim(attrs, d, x[d], in_strides[d], is_back));
    state->num_rows *= state->dims.back().size;
  }
  if (state->dims.empty()) state->dims.push_back({1, {0, 1}, {0}});
  state->columns = x[last];
  state->before = attrs.before[last];
  state->y_columns = x[last] + attrs.before[last] + attrs.after[last];
  state->x_stride = in_strides[last];
  for (int64_t i = 0; i < state->y_columns; ++i) {
    if (i >= state->before && i < state->before + state->columns) continue;
    state->ends.push_back({i, border_source(attrs, last, x[last], i)});
  }
  return state;
}

// Sets `offsets` to those that position `plane` of the dims before the last one of `dims` reads.
void find_plane(const BorderState& state, int64_t plane, std::vector<int64_t>& offsets) {
  offsets.assign(1, 0);
  for (size_t d = state.dims.size() - 1; d-- > 0;) {
    const Dim& dim = state.dims[d];
    const auto at = static_cast<size_t>(plane % dim.size);
    plane /= dim.size;
    const size_t count = offsets.size();
    for (int64_t k = dim.begins[at] + 1; k < dim.begins[at + 1]; ++k) {
      for (size_t i = 0; i < count; ++i)
        offsets.push_back(offsets[i] + dim.offsets[static_cast<size_t>(k)]);
    }
    for (size_t i = 0; i < count; ++i)
      offsets[i] += dim.offsets[static_cast<size_t>(dim.begins[at])];
  }
}

// Calls fn(row, planes, places) for the rows of the output, which read the rows of the input at all
// sums of one of `planes` and one of `places`.
template <class Fn>
void for_each_row(const KernelContext& ctx, const BorderState& state, const Fn& fn) {
  const Dim& last = state.dims.back();
  const auto walk = [&](int64_t begin, int64_t end) {
    std::vector<int64_t> planes;
    int64_t row = begin;
    while (row < end) {
      find_plane(state, row / last.size, planes);
      const int64_t stop = std::min(end, (row / last.size + 1) * last.size);
      for (auto at = static_cast<size_t>(row % last.size); row < stop; ++row, ++at) {
        const int64_t* const places = last.offsets.data() + last.begins[at];
        fn(row, std::span<const int64_t>(planes),
           std::span<const int64_t>(places, last.offsets.data() + last.begins[at + 1]));
      }
    }
  };
  ctx.pool().parallel_for(0, state.num_rows, kGrain / (state.y_columns + 1) + 1, walk);
}

template <class T>
[[gnu::always_inline]] inline void copy_row(T* y, const T* x, int64_t n, int64_t stride) {
  if (stride == 1) {
    copy_bytes(reinterpret_cast<std::byte*>(y), reinterpret_cast<const std::byte*>(x),
               static_cast<size_t>(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i * stride];
}

// Elements are copied without conversion, whatever their dtype.
void border(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BorderState>();
  dispatch_size(ctx.in(0).meta->dtype, [&]<class T>() {
    const T* const x = ctx.in(0).as<T>();
    T* const y = ctx.out(0).as<T>();
    for_each_row(ctx, state, [&](int64_t row, auto planes, auto places) {
      const T* const from = x + planes[0] + places[0];
      T* const to = y + row * state.y_columns;
      copy_row(to + state.before, from, state.columns, state.x_stride);
      for (const End& end : state.ends)
        to[end.in_y] = from[end.in_x * state.x_stride];
    });
  });
}

// Adds a row of dy and its ends to a row of dx, or stores them there if they are the first.
template <class T>
[[gnu::always_inline]] inline void add_row(T* dx, const T* dy, const BorderState& state,
                                           bool is_first) {
  const T* const inside = dy + state.before;
  if (is_first) {
    copy_row(dx, inside, state.columns, 1);
  } else {
    for_row<T>(state.columns, [&](auto at) { at.put(dx, at.get(dx) + at.get(inside)); });
  }
  for (const End& end : state.ends)
    dx[end.in_x] += dy[end.in_y];
}

template <class T>
void border_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<BorderState>();
  const ContiguousInput<T> dy(ctx, 0);
  const ContiguousOutput<T> dx(ctx, 0);
  for_each_row(ctx, state, [&](int64_t row, auto planes, auto places) {
    T* const to = dx.data() + row * state.columns;
    bool is_first = true;
    for (const int64_t plane : planes) {
      for (const int64_t place : places) {
        const T* const from = dy.data() + plane + place;
        add_row(to, from, state, is_first);
        is_first = false;
      }
    }
  });
  dx.finish(ctx);
}

KernelChoice select_border(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  const TensorMeta& x = query.input(0);
  if (query.output(0).local_numel == 0) return {[](const KernelContext&) {}};
  return {border, prepare(query.attrs_as<BorderAttrs>(), x.local_shape, x.strides, false)};
}

KernelChoice select_backward(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  const TensorMeta& dy = query.input(0);
  const TensorMeta& dx = query.output(0);
  if (dx.local_numel == 0) return {[](const KernelContext&) {}};
  const bool is_double = dy.dtype == DType::kFloat64;
  auto state = prepare(query.attrs_as<BorderAttrs>(), dx.local_shape,
                       contiguous_strides(dy.local_shape), true);
  return with_scratch({is_double ? border_backward<double> : border_backward<float>, state},
                      contiguous_scratch(query, is_double ? DType::kFloat64 : DType::kFloat32));
}

}  // namespace

void register_border_cpu(KernelTable& table) {
  const char* name = FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME;
  table.add(kBorder, DeviceType::kCpu, {name, select_border});
  table.add(kBorderBackward, DeviceType::kCpu, {name, select_backward});
}

#include "ops/kernel/isa_end.h"
