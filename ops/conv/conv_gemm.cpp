// Convolution as matrix products (Chellapilla et al. 2006): the elements that each window reads are
// gathered into a column, so that y = weight * columns; the gradients are the transposed products,
// and scattering the columns back is the sum over windows. A tile of output rows is gathered at a
// time, to stay in cache.
#include "ops/conv/conv_gemm.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/conv/conv_kernels.h"
#include "ops/kernel/contiguous.h"
#include "ops/linear/gemm.h"

namespace flow::ops {
namespace {

// Work on one group of channels of one sample.
struct GemmConvState {
  ConvRoles roles;
  ConvSizes sizes;
  int64_t in_group = 0;   // channels
  int64_t out_group = 0;  // channels
  int64_t depth = 0;      // rows of the columns: in_group * taps
  int64_t row = 0;        // outputs per output row
  int64_t rows = 0;
  int64_t tile_rows = 0;
  bool reads_in_place = false;  // the channel planes are the columns
};

constexpr int64_t kTileElements = int64_t{1} << 18;

GemmConvState prepare_conv(const KernelQuery& query) {
  GemmConvState state{.roles = conv_roles(query), .sizes = conv_sizes(query)};
  const ConvSizes& sizes = state.sizes;
  state.in_group = sizes.in_channels / std::max<int64_t>(sizes.groups, 1);
  state.out_group = sizes.out_channels / std::max<int64_t>(sizes.groups, 1);
  state.depth = state.in_group * sizes.kernel_size();
  state.row = sizes.window[2].out;
  state.rows = sizes.window[0].out * sizes.window[1].out;
  state.reads_in_place = std::all_of(sizes.window.begin(), sizes.window.end(), [](const auto& dim) {
    return dim.kernel == 1 && dim.stride == 1 && dim.padding == 0 && dim.in == dim.out;
  });
  const int64_t row_elements = std::max<int64_t>(state.depth * state.row, 1);
  state.tile_rows = state.reads_in_place ? state.rows
                                         : std::clamp<int64_t>(kTileElements / row_elements, 1,
                                                               std::max<int64_t>(state.rows, 1));
  return state;
}

// Calls fn(plane row, target, begin, end) for every tap of channels [c_begin, c_end) and every
// output row of the tile: outputs [begin, end) of the row read `plane row[o * stride]`, the others
// padding; plane row is null where all do. The offset of tap 0 of output 0 is applied.
template <class Plane, class Fn>
void for_each_row(const GemmConvState& state, Plane* planes, int64_t c_begin, int64_t c_end,
                  int64_t first_row, int64_t num_rows, const Fn& fn) {
  const auto& [d, h, w] = state.sizes.window;
  const int64_t taps = state.sizes.kernel_size();
  for (int64_t c = c_begin; c < c_end; ++c) {
    Plane* plane = planes + c * state.sizes.in_size();
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t kw = tap % w.kernel;
      const int64_t kh = tap / w.kernel % h.kernel;
      const int64_t kd = tap / w.kernel / h.kernel;
      const int64_t shift = kw * w.dilation - w.padding;  // column that output 0 reads
      const int64_t begin = std::min(w.out, shift >= 0 ? 0 : (-shift + w.stride - 1) / w.stride);
      const int64_t end =
          shift >= w.in ? begin : std::clamp((w.in - 1 - shift) / w.stride + 1, begin, w.out);
      for (int64_t r = 0; r < num_rows; ++r) {
        const int64_t od = (first_row + r) / h.out;
        const int64_t oh = (first_row + r) % h.out;
        const int64_t id = od * d.stride - d.padding + kd * d.dilation;
        const int64_t ih = oh * h.stride - h.padding + kh * h.dilation;
        const bool inside = id >= 0 && id < d.in && ih >= 0 && ih < h.in && begin < end;
        Plane* source = inside ? plane + (id * h.in + ih) * w.in : nullptr;
        fn(source, shift, (c * taps + tap) * num_rows + r, begin, end);
      }
    }
  }
}

constexpr int64_t kGatherGrain = 1 << 15;

template <class C>
void gather(const KernelContext& ctx, const GemmConvState& state, const C* planes,
            int64_t first_row, int64_t num_rows, C* columns) {
  const int64_t per_channel = state.sizes.kernel_size() * num_rows * state.row;
  const int64_t grain = kGatherGrain / std::max<int64_t>(per_channel, 1) + 1;
  const int64_t stride = state.sizes.window[2].stride;
  ctx.pool().parallel_for(0, state.in_group, grain, [&](int64_t c_begin, int64_t c_end) {
    for_each_row(
        state, planes, c_begin, c_end, first_row, num_rows,
        [&](const C* source, int64_t shift, int64_t target_row, int64_t begin, int64_t end) {
          C* target = columns + target_row * state.row;
          if (source == nullptr) {
            std::fill_n(target, state.row, C{0});
            return;
          }
          std::fill_n(target, begin, C{0});
          if (stride == 1) {
            std::copy_n(source + shift + begin, end - begin, target + begin);
          } else {
            for (int64_t o = begin; o < end; ++o)
              target[o] = source[shift + o * stride];
          }
          std::fill(target + end, target + state.row, C{0});
        });
  });
}

template <class C>
void scatter_add(const KernelContext& ctx, const GemmConvState& state, const C* columns,
                 int64_t first_row, int64_t num_rows, C* planes) {
  const int64_t per_channel = state.sizes.kernel_size() * num_rows * state.row;
  const int64_t grain = kGatherGrain / std::max<int64_t>(per_channel, 1) + 1;
  const int64_t stride = state.sizes.window[2].stride;
  ctx.pool().parallel_for(0, state.in_group, grain, [&](int64_t c_begin, int64_t c_end) {
    for_each_row(state, planes, c_begin, c_end, first_row, num_rows,
                 [&](C* target, int64_t shift, int64_t source_row, int64_t begin, int64_t end) {
                   if (target == nullptr) return;
                   const C* source = columns + source_row * state.row;
                   for (int64_t o = begin; o < end; ++o)
                     target[shift + o * stride] += source[o];
                 });
  });
}

template <class C>
void multiply(const KernelContext& ctx, const GemmTask<C>& task) {
  gemm_parallel([&](int64_t begin, int64_t end, int64_t grain,
                    const auto& fn) { ctx.pool().parallel_for(begin, end, grain, fn); },
                task);
}

// Calls fn(first row, number of rows) for the tiles of a plane of outputs.
template <class Fn>
void for_each_tile(const GemmConvState& state, const Fn& fn) {
  for (int64_t row = 0; row < state.rows; row += state.tile_rows)
    fn(row, std::min(state.tile_rows, state.rows - row));
}

// Elements of the columns that a thread gathers.
int64_t num_columns(const GemmConvState& state) {
  return state.reads_in_place ? 0 : state.depth * state.tile_rows * state.row;
}

template <class C>
Ref<Storage> column_scratch(const KernelContext& ctx, const GemmConvState& state) {
  return ctx.scratch(static_cast<size_t>(num_columns(state)) * sizeof(C));
}

template <class C>
void run_forward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GemmConvState>();
  const ConvSizes& sizes = state.sizes;
  const ContiguousInput<C> x(ctx, 0);
  const ContiguousInput<C> weight(ctx, 1);
  const ContiguousOutput<C> y(ctx, 0);
  const C* bias = nullptr;
  std::optional<ContiguousInput<C>> bias_input;
  if (state.roles.has_bias) bias = bias_input.emplace(ctx, 2).data();
  const int64_t out = sizes.out_size();
  ctx.pool().parallel_for(0, sizes.batch * sizes.groups, 1, [&](int64_t begin, int64_t end) {
    const Ref<Storage> scratch = column_scratch<C>(ctx, state);
    C* columns = reinterpret_cast<C*>(scratch->data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % sizes.groups;
      const C* planes = x.data() + i * state.in_group * sizes.in_size();
      C* target = y.data() + i * state.out_group * out;
      for (int64_t oc = 0; bias != nullptr && oc < state.out_group; ++oc)
        std::fill_n(target + oc * out, out, bias[group * state.out_group + oc]);
      for_each_tile(state, [&](int64_t row, int64_t rows) {
        if (!state.reads_in_place) gather(ctx, state, planes, row, rows, columns);
        multiply<C>(ctx, {.m = state.out_group,
                          .n = rows * state.row,
                          .k = state.depth,
                          .a = weight.data() + group * state.out_group * state.depth,
                          .lda = state.depth,
                          .b = state.reads_in_place ? planes : columns,
                          .ldb = rows * state.row,
                          .beta = bias == nullptr ? C{0} : C{1},
                          .c = target + row * state.row,
                          .ldc = out});
      });
    }
  });
  y.finish(ctx);
}

template <class C>
void run_backward_input(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GemmConvState>();
  const ConvSizes& sizes = state.sizes;
  const ContiguousInput<C> dy(ctx, 0);
  const ContiguousInput<C> weight(ctx, 1);
  const ContiguousOutput<C> dx(ctx, 0);
  ctx.pool().parallel_for(0, sizes.batch * sizes.groups, 1, [&](int64_t begin, int64_t end) {
    const Ref<Storage> scratch = column_scratch<C>(ctx, state);
    C* columns = reinterpret_cast<C*>(scratch->data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % sizes.groups;
      C* planes = dx.data() + i * state.in_group * sizes.in_size();
      if (!state.reads_in_place) std::fill_n(planes, state.in_group * sizes.in_size(), C{0});
      for_each_tile(state, [&](int64_t row, int64_t rows) {
        multiply<C>(ctx, {.transpose_a = Transpose::kYes,
                          .m = state.depth,
                          .n = rows * state.row,
                          .k = state.out_group,
                          .a = weight.data() + group * state.out_group * state.depth,
                          .lda = state.depth,
                          .b = dy.data() + i * state.out_group * sizes.out_size() + row * state.row,
                          .ldb = sizes.out_size(),
                          .c = state.reads_in_place ? planes : columns,
                          .ldc = rows * state.row});
        if (!state.reads_in_place) scatter_add(ctx, state, columns, row, rows, planes);
      });
    }
  });
  dx.finish(ctx);
}

// Samples and tiles are added in order, so that the sum does not depend on the number of threads.
template <class C>
void run_backward_weight(const KernelContext& ctx) {
  const auto& state = ctx.state_as<GemmConvState>();
  const ConvSizes& sizes = state.sizes;
  const int64_t out = sizes.out_size();
  const ContiguousInput<C> x(ctx, 0);
  const ContiguousInput<C> dy(ctx, 1);
  const ContiguousOutput<C> dw(ctx, 0);
  std::optional<ContiguousOutput<C>> db;  // exists from the beginning, as is stated
  if (state.roles.has_bias) db.emplace(ctx, 1);
  ctx.pool().parallel_for(0, sizes.groups, 1, [&](int64_t begin, int64_t end) {
    const Ref<Storage> scratch = column_scratch<C>(ctx, state);
    C* columns = reinterpret_cast<C*>(scratch->data());
    for (int64_t group = begin; group < end; ++group) {
      C* target = dw.data() + group * state.out_group * state.depth;
      std::fill_n(target, state.out_group * state.depth, C{0});
      for (int64_t n = 0; n < sizes.batch; ++n) {
        const int64_t i = n * sizes.groups + group;
        const C* planes = x.data() + i * state.in_group * sizes.in_size();
        for_each_tile(state, [&](int64_t row, int64_t rows) {
          if (!state.reads_in_place) gather(ctx, state, planes, row, rows, columns);
          multiply<C>(ctx, {.transpose_b = Transpose::kYes,
                            .m = state.out_group,
                            .n = state.depth,
                            .k = rows * state.row,
                            .a = dy.data() + i * state.out_group * out + row * state.row,
                            .lda = out,
                            .b = state.reads_in_place ? planes : columns,
                            .ldb = rows * state.row,
                            .beta = C{1},
                            .c = target,
                            .ldc = state.depth});
        });
      }
    }
  });
  dw.finish(ctx);
  if (!db) return;
  ctx.pool().parallel_for(0, sizes.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t oc = begin; oc < end; ++oc) {
      double sum = 0;
      for (int64_t n = 0; n < sizes.batch; ++n) {
        const C* plane = dy.data() + (n * sizes.out_channels + oc) * out;
        for (int64_t p = 0; p < out; ++p)
          sum += static_cast<double>(plane[p]);
      }
      db->data()[oc] = static_cast<C>(sum);
    }
  });
  db->finish(ctx);
}

template <class C>
KernelFn run_of(const ConvRoles& roles) {
  if (roles.writes_x) return run_backward_input<C>;
  return roles.writes_weight ? run_backward_weight<C> : run_forward<C>;
}

}  // namespace

KernelChoice select_conv_gemm(const KernelQuery& query) {
  const GemmConvState state = prepare_conv(query);
  // Sums of no terms, and results of no elements, are left to the reference.
  const int64_t work = state.sizes.batch * state.out_group * state.depth * state.rows * state.row;
  if (work == 0) return {};
  const bool is_double = query.output(0).dtype == DType::kFloat64;
  const DType computed = is_double ? DType::kFloat64 : DType::kFloat32;
  KernelScratch blocks = contiguous_scratch(query, computed);
  blocks.push_back({num_columns(state) * static_cast<int64_t>(dtype_size(computed)),
                    state.sizes.groups * (state.roles.writes_weight ? 1 : state.sizes.batch)});
  return with_scratch({is_double ? run_of<double>(state.roles) : run_of<float>(state.roles),
                       std::make_shared<const GemmConvState>(state)},
                      std::move(blocks));
}

}  // namespace flow::ops
