// Kernels of ops/conv/grid_sample_op.h. The fast ones copy an image, and the gradients of samples,
// so that the channels of a pixel are neighbours: a sample then reads whole vectors, and its
// weights are computed once for all channels. Traffic: x, y and their copies are read and written
// once; neighbouring samples read the same pixels of a copy, which is in the second-level cache for
// images of up to about 2,000 pixels.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/conv/grid_corners.h"
#include "ops/conv/grid_sample_op.h"
#include "ops/kernel/contiguous.h"
#include "ops/kernel/divide_up.h"
#include "ops/kernel/plane_copy.h"
#include "ops/kernel/vector.h"

#include "ops/kernel/isa_begin.h"

void register_grid_sample_cpu(KernelTable& table);

namespace {

constexpr int64_t kGrain = 1 << 14;

// ---- one channel at a time: for few channels, and for few samples of large images

template <class T>
void sample_plainly(const GridState<T>& state, int64_t n, const T* x, const T* grid, T* y) {
  for_chunks(state, n, grid, [&](int64_t first, int64_t samples, const GridCorners<T>& corners) {
    for (int64_t c = 0; c < state.channels; ++c) {
      const T* const plane = x + (n * state.channels + c) * state.area;
      T* const out = y + (n * state.channels + c) * state.count + first;
      for (int64_t i = 0; i < samples; ++i) {
        T sum = 0;
        for (int k = 0; k < corners.num; ++k) {
          const auto corner = static_cast<size_t>(k);
          const int64_t place = corners.place[corner][static_cast<size_t>(i)];
          if (place < state.area)
            sum += corners.weight[corner][static_cast<size_t>(i)] * plane[place];
        }
        out[i] = sum;
      }
    }
  });
}

template <class T>
void backward_x_plainly(const GridState<T>& state, int64_t n, const T* dy, const T* grid, T* dx) {
  const int64_t image = n * state.channels * state.area;
  std::fill_n(dx + image, state.channels * state.area, T{0});
  for_chunks(state, n, grid, [&](int64_t first, int64_t samples, const GridCorners<T>& corners) {
    for (int64_t c = 0; c < state.channels; ++c) {
      T* const plane = dx + image + c * state.area;
      const T* const in = dy + (n * state.channels + c) * state.count + first;
      for (int64_t i = 0; i < samples; ++i) {
        for (int k = 0; k < corners.num; ++k) {
          const auto corner = static_cast<size_t>(k);
          const int64_t place = corners.place[corner][static_cast<size_t>(i)];
          if (place < state.area)
            plane[place] += corners.weight[corner][static_cast<size_t>(i)] * in[i];
        }
      }
    }
  });
}

template <class T>
void backward_grid_plainly(const GridState<T>& state, int64_t n, const T* dy, const T* x,
                           const T* grid, T* dgrid) {
  std::fill_n(dgrid + n * state.count * state.rank, state.count * state.rank, T{0});
  for_chunks(state, n, grid, [&](int64_t first, int64_t samples, const GridCorners<T>& corners) {
    const auto product = [&](int64_t i, int k) {
      const int64_t place = corners.place[static_cast<size_t>(k)][static_cast<size_t>(i)];
      T sum = 0;
      for (int64_t c = n * state.channels; c < (n + 1) * state.channels; ++c)
        sum += dy[c * state.count + first + i] * x[c * state.area + place];
      return sum;
    };
    const int64_t begin = (n * state.count + first) * state.rank;
    add_to_grid(state, grid + begin, samples, product, dgrid + begin);
  });
}

// ---- all channels of a pixel at once

// As many channels are copied at once, as whole vectors.
template <class T>
constexpr int64_t kGroup = 8 * Vec<T>::kLanes;

// A part of the channels.
struct Group {
  int64_t begin;
  int64_t size;
  int64_t width;  // rounded up to whole vectors
};

template <class T>
int64_t num_groups(const GridState<T>& state) {
  return divide_up(state.channels, kGroup<T>);
}

template <class T>
Group group_of(const GridState<T>& state, int64_t i) {
  const int64_t begin = i * kGroup<T>;
  const int64_t size = std::min(kGroup<T>, state.channels - begin);
  return {begin, size, divide_up(size, int64_t{Vec<T>::kLanes}) * Vec<T>::kLanes};
}

// The elements of a copy of an image, with one more pixel, and of a chunk of samples.
template <class T>
int64_t image_elements(const GridState<T>& state) {
  return (state.area + 1) * group_of(state, 0).width;
}

template <class T>
int64_t chunk_elements(const GridState<T>& state) {
  return kGridChunk * group_of(state, 0).width;
}

// Copies `columns` elements of each channel (channels, distance) to (columns, width), with zeros
// after the last channel.
template <class T>
void to_pixels(const T* from, int64_t distance, int64_t columns, const Group& group, T* to) {
  if (group.size < group.width) std::fill_n(to, columns * group.width, T{0});
  plane_copy(sizeof(T))({.target = reinterpret_cast<std::byte*>(to),
                         .source = reinterpret_cast<const std::byte*>(from),
                         .rows = columns,
                         .columns = group.size,
                         .target_row = group.width,
                         .target_column = 1,
                         .source_row = 1,
                         .source_column = distance});
}

// The inverse.
template <class T>
void from_pixels(const T* from, int64_t columns, const Group& group, T* to, int64_t distance) {
  plane_copy(sizeof(T))({.target = reinterpret_cast<std::byte*>(to),
                         .source = reinterpret_cast<const std::byte*>(from),
                         .rows = group.size,
                         .columns = columns,
                         .target_row = distance,
                         .target_column = 1,
                         .source_row = 1,
                         .source_column = group.width});
}

// Copies an image; the pixel after the last is 0.
template <class T>
void copy_image(const GridState<T>& state, const T* image, const Group& group, T* copy) {
  to_pixels(image, state.area, state.area, group, copy);
  std::fill_n(copy + state.area * group.width, group.width, T{0});
}

// Calls fn(at, count) for the vectors of a pixel; count is a constant, 4 or 1.
template <class T, class Fn>
[[gnu::always_inline]] inline void for_vectors(int64_t width, const Fn& fn) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  int64_t at = 0;
  for (; at + 4 * kLanes <= width; at += 4 * kLanes)
    fn(at, std::integral_constant<int, 4>());
  for (; at < width; at += kLanes)
    fn(at, std::integral_constant<int, 1>());
}

template <class T>
void sample_group(const GridState<T>& state, int64_t n, const Group& group, const T* x,
                  const T* grid, T* y, T* memory) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  T* const image = memory;
  T* const out = memory + image_elements(state);
  const int64_t channel = n * state.channels + group.begin;
  copy_image(state, x + channel * state.area, group, image);
  for_chunks(state, n, grid, [&](int64_t first, int64_t samples, const GridCorners<T>& corners) {
    for (int64_t i = 0; i < samples; ++i) {
      const auto at = static_cast<size_t>(i);
      for_vectors<T>(group.width, [&](int64_t begin, auto count) {
        constexpr int kCount = decltype(count)::value;
        Vec<T> sum[kCount];
#pragma GCC unroll 4
        for (int v = 0; v < kCount; ++v)
          sum[v] = Vec<T>::zero();
        for (int k = 0; k < corners.num; ++k) {
          const auto corner = static_cast<size_t>(k);
          const Vec<T> weight = Vec<T>::fill(corners.weight[corner][at]);
          const T* const pixel = image + corners.place[corner][at] * group.width + begin;
#pragma GCC unroll 4
          for (int v = 0; v < kCount; ++v)
            sum[v] = fma(weight, Vec<T>::load(pixel + v * kLanes), sum[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < kCount; ++v)
          sum[v].store(out + i * group.width + begin + v * kLanes);
      });
    }
    from_pixels(out, samples, group, y + channel * state.count + first, state.count);
  });
}

template <class T>
void backward_x_group(const GridState<T>& state, int64_t n, const Group& group, const T* dy,
                      const T* grid, T* dx, T* memory) {
  constexpr int64_t kLanes = Vec<T>::kLanes;
  T* const image = memory;
  T* const in = memory + image_elements(state);
  const int64_t channel = n * state.channels + group.begin;
  std::fill_n(image, (state.area + 1) * group.width, T{0});
  for_chunks(state, n, grid, [&](int64_t first, int64_t samples, const GridCorners<T>& corners) {
    to_pixels(dy + channel * state.count + first, state.count, samples, group, in);
    for (int64_t i = 0; i < samples; ++i) {
      const auto at = static_cast<size_t>(i);
      for (int k = 0; k < corners.num; ++k) {
        const auto corner = static_cast<size_t>(k);
        const Vec<T> weight = Vec<T>::fill(corners.weight[corner][at]);
        T* const pixel = image + corners.place[corner][at] * group.width;
        for (int64_t lane = 0; lane < group.width; lane += kLanes) {
          fma(weight, Vec<T>::load(in + i * group.width + lane), Vec<T>::load(pixel + lane))
              .store(pixel + lane);
        }
      }
    }
  });
  from_pixels(image, state.area, group, dx + channel * state.area, state.area);
}

// The product of a sample's gradient with some of its corners, summed over the channels.
template <class T, int kCount>
[[gnu::always_inline]] inline void corner_products(const Group& group, const T* dy,
                                                   const std::array<const T*, kCount>& pixels,
                                                   T* products) {
  Vec<T> sums[kCount];
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k)
    sums[k] = Vec<T>::zero();
  for (int64_t at = 0; at < group.width; at += Vec<T>::kLanes) {
    const Vec<T> factor = Vec<T>::load(dy + at);
#pragma GCC unroll 4
    for (int k = 0; k < kCount; ++k)
      sums[k] = fma(factor, Vec<T>::load(pixels[static_cast<size_t>(k)] + at), sums[k]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k)
    products[k] = sum(sums[k]);
}

template <class T>
void backward_grid_group(const GridState<T>& state, int64_t n, const Group& group, const T* dy,
                         const T* x, const T* grid, T* dgrid, T* memory) {
  T* const image = memory;
  T* const in = memory + image_elements(state);
  const int64_t channel = n * state.channels + group.begin;
  copy_image(state, x + channel * state.area, group, image);
  std::array<std::array<T, kMaxGridCorners>, kGridChunk> products;
  for_chunks(state, n, grid, [&](int64_t first, int64_t samples, const GridCorners<T>& corners) {
    to_pixels(dy + channel * state.count + first, state.count, samples, group, in);
    for (int64_t i = 0; i < samples; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto pixel = [&](int k) -> const T* {
        return image + corners.place[static_cast<size_t>(k)][at] * group.width;
      };
      const T* const factors = in + i * group.width;
      T* const result = products[at].data();
      int k = 0;
      for (; k + 4 <= corners.num; k += 4) {
        corner_products<T, 4>(group, factors, {pixel(k), pixel(k + 1), pixel(k + 2), pixel(k + 3)},
                              result + k);
      }
      for (; k < corners.num; ++k)
        corner_products<T, 1>(group, factors, {pixel(k)}, result + k);
    }
    const int64_t begin = (n * state.count + first) * state.rank;
    add_to_grid(
        state, grid + begin, samples,
        [&](int64_t i, int k) { return products[static_cast<size_t>(i)][static_cast<size_t>(k)]; },
        dgrid + begin);
  });
}

// ---- the choice

// A copy pays if there are enough channels to fill vectors, and samples to read it.
template <class T>
bool copies_pixels(const GridState<T>& state) {
  return FLOW_ISA > 0 && state.channels > 2 && state.area <= 4 * state.count;
}

template <class T>
int64_t grain_of(const GridState<T>& state) {
  const int64_t work = std::min(state.channels, kGroup<T>) * (state.count + state.area);
  return kGrain / (work + 1) + 1;
}

// Memory for the copies of a thread.
template <class T>
Ref<Storage> copies_for(const KernelContext& ctx, const GridState<T>& state) {
  return ctx.scratch(static_cast<size_t>(image_elements(state) + chunk_elements(state)) *
                     sizeof(T));
}

// Calls by_group(n, group, memory) in parallel for the groups of all images if copies pay, else
// plainly(n) for all images.
template <class T, class ByGroup, class Plainly>
void for_images(const KernelContext& ctx, const GridState<T>& state, const ByGroup& by_group,
                const Plainly& plainly) {
  const bool copies = copies_pixels(state);
  const int64_t groups = copies ? num_groups(state) : 1;
  ctx.pool().parallel_for(
      0, state.batch * groups, grain_of(state), [&](int64_t begin, int64_t end) {
        if (!copies) {
          for (int64_t n = begin; n < end; ++n)
            plainly(n);
          return;
        }
        const Ref<Storage> memory = copies_for(ctx, state);
        for (int64_t i = begin; i < end; ++i)
          by_group(i / groups, group_of(state, i % groups), reinterpret_cast<T*>(memory->data()));
      });
}

template <class T>
void run_sample(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GridState<T>>();
  const ContiguousInput<T> x(ctx, 0);
  const ContiguousInput<T> grid(ctx, 1);
  const ContiguousOutput<T> y(ctx, 0);
  for_images(
      ctx, state,
      [&](int64_t n, const Group& group, T* memory) {
        sample_group(state, n, group, x.data(), grid.data(), y.data(), memory);
      },
      [&](int64_t n) { sample_plainly(state, n, x.data(), grid.data(), y.data()); });
  y.finish(ctx);
}

template <class T>
void run_backward_x(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GridState<T>>();
  const ContiguousInput<T> dy(ctx, 0);
  const ContiguousInput<T> grid(ctx, 1);
  const ContiguousOutput<T> dx(ctx, 0);
  for_images(
      ctx, state,
      [&](int64_t n, const Group& group, T* memory) {
        backward_x_group(state, n, group, dy.data(), grid.data(), dx.data(), memory);
      },
      [&](int64_t n) { backward_x_plainly(state, n, dy.data(), grid.data(), dx.data()); });
  dx.finish(ctx);
}

// The groups of an image add to the same gradients, one after another.
template <class T>
void run_backward_grid(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GridState<T>>();
  const ContiguousInput<T> dy(ctx, 0);
  const ContiguousInput<T> x(ctx, 1);
  const ContiguousInput<T> grid(ctx, 2);
  const ContiguousOutput<T> dgrid(ctx, 0);
  const bool copies = copies_pixels(state);
  ctx.pool().parallel_for(0, state.batch, grain_of(state), [&](int64_t begin, int64_t end) {
    const Ref<Storage> memory = copies ? copies_for(ctx, state) : Ref<Storage>();
    for (int64_t n = begin; n < end; ++n) {
      if (!copies) {
        backward_grid_plainly(state, n, dy.data(), x.data(), grid.data(), dgrid.data());
        continue;
      }
      const int64_t elements = state.count * state.rank;
      std::fill_n(dgrid.data() + n * elements, elements, T{0});
      for (int64_t i = 0; i < num_groups(state); ++i)
        backward_grid_group(state, n, group_of(state, i), dy.data(), x.data(), grid.data(),
                            dgrid.data(), reinterpret_cast<T*>(memory->data()));
    }
  });
  dgrid.finish(ctx);
}

#if FLOW_ISA == 0

// One channel at a time, in double.
template <class Each>
void for_images_plainly(const KernelContext& ctx, int grid_input, const Each& each) {
  const auto& state = ctx.state_as<GridState<double>>();
  const ContiguousInput<double> grid(ctx, grid_input);
  const ContiguousOutput<double> result(ctx, 0);
  for (int64_t n = 0; n < state.batch; ++n)
    each(state, n, grid.data(), result.data());
  result.finish(ctx);
}

void sample_reference(const KernelContext& ctx) {
  const ContiguousInput<double> x(ctx, 0);
  for_images_plainly(ctx, 1, [&](const auto& state, int64_t n, const double* grid, double* y) {
    sample_plainly(state, n, x.data(), grid, y);
  });
}

void backward_x_reference(const KernelContext& ctx) {
  const ContiguousInput<double> dy(ctx, 0);
  for_images_plainly(ctx, 1, [&](const auto& state, int64_t n, const double* grid, double* dx) {
    backward_x_plainly(state, n, dy.data(), grid, dx);
  });
}

void backward_grid_reference(const KernelContext& ctx) {
  const ContiguousInput<double> dy(ctx, 0);
  const ContiguousInput<double> x(ctx, 1);
  for_images_plainly(ctx, 2, [&](const auto& state, int64_t n, const double* grid, double* dgrid) {
    backward_grid_plainly(state, n, dy.data(), x.data(), grid, dgrid);
  });
}

#endif

// Prepares a call with images of the shape `x` and samples of the shape `y`.
template <class T>
std::shared_ptr<const GridState<T>> prepare(const KernelQuery& query, const Shape& x,
                                            const Shape& y) {
  const auto state = std::make_shared<GridState<T>>();
  state->attrs = query.attrs_as<GridSampleAttrs>();
  state->rank = x.size() - 2;
  state->batch = x[0];
  state->channels = x[1];
  for (int64_t d = 0; d < state->rank; ++d) {
    const auto dim = static_cast<size_t>(d);
    state->sizes[dim] = x[d + 2];
    state->axes[dim] = GridAxis<T>(state->attrs, x[d + 2]);
    state->area *= x[d + 2];
    state->count *= y[d + 2];
  }
  return state;
}

// The operands of an op: which of its tensors have the shapes of images and samples. -1 is the
// output.
struct Operands {
  int x;
  int y;
  int grid;
};

constexpr Operands kSampleOperands{.x = 0, .y = -1, .grid = 1};
constexpr Operands kBackwardXOperands{.x = -1, .y = 0, .grid = 1};
constexpr Operands kBackwardGridOperands{.x = 1, .y = 0, .grid = 2};

template <class T>
KernelChoice choose(const KernelQuery& query, const Operands& operands, KernelFn fn) {
  const auto shape = [&](int operand) {
    return operand < 0 ? query.output(0).local_shape : query.input(operand).local_shape;
  };
  const Shape x = shape(operands.x);
  const Shape y = shape(operands.y);
  const Shape grid = shape(operands.grid);
  bool fits = x[0] == grid[0] && y[0] == grid[0] && x[1] == y[1];
  for (int64_t d = 1; d + 1 < grid.size(); ++d)
    fits &= y[d + 1] == grid[d] && x[d + 1] <= std::numeric_limits<int32_t>::max();
  if (!fits) return {};
  const auto state = prepare<T>(query, x, y);
  KernelScratch scratch = contiguous_scratch(query, dtype_of<T>);
  if (copies_pixels(*state)) {
    const int64_t elements = image_elements(*state) + chunk_elements(*state);
    scratch.push_back(
        {elements * static_cast<int64_t>(sizeof(T)), state->batch * num_groups(*state)});
  }
  return with_scratch({fn, state}, std::move(scratch));
}

template <const Operands& kOperands, KernelFn kF32, KernelFn kF64>
KernelChoice select_fast(const KernelQuery& query) {
  if (query.input(0).dtype == DType::kFloat64) return choose<double>(query, kOperands, kF64);
  return choose<float>(query, kOperands, kF32);
}

#if FLOW_ISA == 0

template <const Operands& kOperands, KernelFn kFn>
KernelChoice select_reference(const KernelQuery& query) {
  return choose<double>(query, kOperands, kFn);
}

#endif

}  // namespace

void register_grid_sample_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kGridSample, DeviceType::kCpu,
            {"reference", select_reference<kSampleOperands, sample_reference>});
  table.add(kGridSampleBackwardX, DeviceType::kCpu,
            {"reference", select_reference<kBackwardXOperands, backward_x_reference>});
  table.add(kGridSampleBackwardGrid, DeviceType::kCpu,
            {"reference", select_reference<kBackwardGridOperands, backward_grid_reference>});
#endif
  table.add(kGridSample, DeviceType::kCpu,
            {FLOW_ISA_NAME, select_fast<kSampleOperands, run_sample<float>, run_sample<double>>});
  table.add(kGridSampleBackwardX, DeviceType::kCpu,
            {FLOW_ISA_NAME,
             select_fast<kBackwardXOperands, run_backward_x<float>, run_backward_x<double>>});
  table.add(
      kGridSampleBackwardGrid, DeviceType::kCpu,
      {FLOW_ISA_NAME,
       select_fast<kBackwardGridOperands, run_backward_grid<float>, run_backward_grid<double>>});
}

#include "ops/kernel/isa_end.h"
