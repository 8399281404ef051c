// Convolution as matrix products (Chellapilla et al. 2006): the elements that each window reads are
// gathered into a column, so that y = weight * columns; the gradients are the transposed products,
// and scattering the columns back is the sum over windows. A tile of output rows is gathered at a
// time, to stay in cache.

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
struct GemmConvPlan {
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

GemmConvPlan plan_conv(const KernelQuery& query) {
  GemmConvPlan plan{.roles = conv_roles(query), .sizes = conv_sizes(query)};
  const ConvSizes& sizes = plan.sizes;
  plan.in_group = sizes.in_channels / std::max<int64_t>(sizes.groups, 1);
  plan.out_group = sizes.out_channels / std::max<int64_t>(sizes.groups, 1);
  plan.depth = plan.in_group * sizes.kernel_size();
  plan.row = sizes.window[2].out;
  plan.rows = sizes.window[0].out * sizes.window[1].out;
  plan.reads_in_place = std::all_of(sizes.window.begin(), sizes.window.end(), [](const auto& dim) {
    return dim.kernel == 1 && dim.stride == 1 && dim.padding == 0 && dim.in == dim.out;
  });
  const int64_t row_elements = std::max<int64_t>(plan.depth * plan.row, 1);
  plan.tile_rows = plan.reads_in_place ? plan.rows
                                       : std::clamp<int64_t>(kTileElements / row_elements, 1,
                                                             std::max<int64_t>(plan.rows, 1));
  return plan;
}

// Calls fn(plane row, target, begin, end) for every tap of channels [c_begin, c_end) and every
// output row of the tile: outputs [begin, end) of the row read `plane row[o * stride]`, the others
// padding; plane row is null where all do. The offset of tap 0 of output 0 is applied.
template <class Plane, class Fn>
void for_each_row(const GemmConvPlan& plan, Plane* planes, int64_t c_begin, int64_t c_end,
                  int64_t first_row, int64_t num_rows, const Fn& fn) {
  const auto& [d, h, w] = plan.sizes.window;
  const int64_t taps = plan.sizes.kernel_size();
  for (int64_t c = c_begin; c < c_end; ++c) {
    Plane* plane = planes + c * plan.sizes.in_size();
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
void gather(const KernelContext& ctx, const GemmConvPlan& plan, const C* planes, int64_t first_row,
            int64_t num_rows, C* columns) {
  const int64_t per_channel = plan.sizes.kernel_size() * num_rows * plan.row;
  const int64_t grain = kGatherGrain / std::max<int64_t>(per_channel, 1) + 1;
  const int64_t stride = plan.sizes.window[2].stride;
  ctx.pool().parallel_for(0, plan.in_group, grain, [&](int64_t c_begin, int64_t c_end) {
    for_each_row(
        plan, planes, c_begin, c_end, first_row, num_rows,
        [&](const C* source, int64_t shift, int64_t target_row, int64_t begin, int64_t end) {
          C* target = columns + target_row * plan.row;
          if (source == nullptr) {
            std::fill_n(target, plan.row, C{0});
            return;
          }
          std::fill_n(target, begin, C{0});
          if (stride == 1) {
            std::copy_n(source + shift + begin, end - begin, target + begin);
          } else {
            for (int64_t o = begin; o < end; ++o)
              target[o] = source[shift + o * stride];
          }
          std::fill(target + end, target + plan.row, C{0});
        });
  });
}

template <class C>
void scatter_add(const KernelContext& ctx, const GemmConvPlan& plan, const C* columns,
                 int64_t first_row, int64_t num_rows, C* planes) {
  const int64_t per_channel = plan.sizes.kernel_size() * num_rows * plan.row;
  const int64_t grain = kGatherGrain / std::max<int64_t>(per_channel, 1) + 1;
  const int64_t stride = plan.sizes.window[2].stride;
  ctx.pool().parallel_for(0, plan.in_group, grain, [&](int64_t c_begin, int64_t c_end) {
    for_each_row(plan, planes, c_begin, c_end, first_row, num_rows,
                 [&](C* target, int64_t shift, int64_t source_row, int64_t begin, int64_t end) {
                   if (target == nullptr) return;
                   const C* source = columns + source_row * plan.row;
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
void for_each_tile(const GemmConvPlan& plan, const Fn& fn) {
  for (int64_t row = 0; row < plan.rows; row += plan.tile_rows)
    fn(row, std::min(plan.tile_rows, plan.rows - row));
}

// Elements of the columns that a thread gathers.
int64_t num_columns(const GemmConvPlan& plan) {
  return plan.reads_in_place ? 0 : plan.depth * plan.tile_rows * plan.row;
}

template <class C>
Ref<Storage> column_scratch(const KernelContext& ctx, const GemmConvPlan& plan) {
  return ctx.scratch(static_cast<size_t>(num_columns(plan)) * sizeof(C));
}

template <class C>
void run_forward(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<GemmConvPlan>();
  const ConvSizes& sizes = plan.sizes;
  const ContiguousInput<C> x(ctx, 0);
  const ContiguousInput<C> weight(ctx, 1);
  const ContiguousOutput<C> y(ctx, 0);
  const C* bias = nullptr;
  std::optional<ContiguousInput<C>> bias_input;
  if (plan.roles.has_bias) bias = bias_input.emplace(ctx, 2).data();
  const int64_t out = sizes.out_size();
  ctx.pool().parallel_for(0, sizes.batch * sizes.groups, 1, [&](int64_t begin, int64_t end) {
    const Ref<Storage> scratch = column_scratch<C>(ctx, plan);
    C* columns = reinterpret_cast<C*>(scratch->data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % sizes.groups;
      const C* planes = x.data() + i * plan.in_group * sizes.in_size();
      C* target = y.data() + i * plan.out_group * out;
      for (int64_t oc = 0; bias != nullptr && oc < plan.out_group; ++oc)
        std::fill_n(target + oc * out, out, bias[group * plan.out_group + oc]);
      for_each_tile(plan, [&](int64_t row, int64_t rows) {
        if (!plan.reads_in_place) gather(ctx, plan, planes, row, rows, columns);
        multiply<C>(ctx, {.m = plan.out_group,
                          .n = rows * plan.row,
                          .k = plan.depth,
                          .a = weight.data() + group * plan.out_group * plan.depth,
                          .lda = plan.depth,
                          .b = plan.reads_in_place ? planes : columns,
                          .ldb = rows * plan.row,
                          .beta = bias == nullptr ? C{0} : C{1},
                          .c = target + row * plan.row,
                          .ldc = out});
      });
    }
  });
  y.finish(ctx);
}

template <class C>
void run_backward_input(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<GemmConvPlan>();
  const ConvSizes& sizes = plan.sizes;
  const ContiguousInput<C> dy(ctx, 0);
  const ContiguousInput<C> weight(ctx, 1);
  const ContiguousOutput<C> dx(ctx, 0);
  ctx.pool().parallel_for(0, sizes.batch * sizes.groups, 1, [&](int64_t begin, int64_t end) {
    const Ref<Storage> scratch = column_scratch<C>(ctx, plan);
    C* columns = reinterpret_cast<C*>(scratch->data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % sizes.groups;
      C* planes = dx.data() + i * plan.in_group * sizes.in_size();
      if (!plan.reads_in_place) std::fill_n(planes, plan.in_group * sizes.in_size(), C{0});
      for_each_tile(plan, [&](int64_t row, int64_t rows) {
        multiply<C>(ctx, {.transpose_a = Transpose::kYes,
                          .m = plan.depth,
                          .n = rows * plan.row,
                          .k = plan.out_group,
                          .a = weight.data() + group * plan.out_group * plan.depth,
                          .lda = plan.depth,
                          .b = dy.data() + i * plan.out_group * sizes.out_size() + row * plan.row,
                          .ldb = sizes.out_size(),
                          .c = plan.reads_in_place ? planes : columns,
                          .ldc = rows * plan.row});
        if (!plan.reads_in_place) scatter_add(ctx, plan, columns, row, rows, planes);
      });
    }
  });
  dx.finish(ctx);
}

// Samples and tiles are added in order, so that the sum does not depend on the number of threads.
template <class C>
void run_backward_weight(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<GemmConvPlan>();
  const ConvSizes& sizes = plan.sizes;
  const int64_t out = sizes.out_size();
  const ContiguousInput<C> x(ctx, 0);
  const ContiguousInput<C> dy(ctx, 1);
  const ContiguousOutput<C> dw(ctx, 0);
  ctx.pool().parallel_for(0, sizes.groups, 1, [&](int64_t begin, int64_t end) {
    const Ref<Storage> scratch = column_scratch<C>(ctx, plan);
    C* columns = reinterpret_cast<C*>(scratch->data());
    for (int64_t group = begin; group < end; ++group) {
      C* target = dw.data() + group * plan.out_group * plan.depth;
      std::fill_n(target, plan.out_group * plan.depth, C{0});
      for (int64_t n = 0; n < sizes.batch; ++n) {
        const int64_t i = n * sizes.groups + group;
        const C* planes = x.data() + i * plan.in_group * sizes.in_size();
        for_each_tile(plan, [&](int64_t row, int64_t rows) {
          if (!plan.reads_in_place) gather(ctx, plan, planes, row, rows, columns);
          multiply<C>(ctx, {.transpose_b = Transpose::kYes,
                            .m = plan.out_group,
                            .n = plan.depth,
                            .k = rows * plan.row,
                            .a = dy.data() + i * plan.out_group * out + row * plan.row,
                            .lda = out,
                            .b = plan.reads_in_place ? planes : columns,
                            .ldb = rows * plan.row,
                            .beta = C{1},
                            .c = target,
                            .ldc = plan.depth});
        });
      }
    }
  });
  dw.finish(ctx);
  if (!plan.roles.has_bias) return;
  const ContiguousOutput<C> db(ctx, 1);
  ctx.pool().parallel_for(0, sizes.out_channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t oc = begin; oc < end; ++oc) {
      double sum = 0;
      for (int64_t n = 0; n < sizes.batch; ++n) {
        const C* plane = dy.data() + (n * sizes.out_channels + oc) * out;
        for (int64_t p = 0; p < out; ++p)
          sum += static_cast<double>(plane[p]);
      }
      db.data()[oc] = static_cast<C>(sum);
    }
  });
  db.finish(ctx);
}

template <class C>
KernelFn run_of(const ConvRoles& roles) {
  if (roles.writes_x) return run_backward_input<C>;
  return roles.writes_weight ? run_backward_weight<C> : run_forward<C>;
}

}  // namespace

KernelChoice select_conv_gemm(const KernelQuery& query) {
  const GemmConvPlan plan = plan_conv(query);
  // Sums over nothing, and results of no elements, are left to the reference.
  const int64_t work = plan.sizes.batch * plan.out_group * plan.depth * plan.rows * plan.row;
  if (work == 0) return {};
  const bool is_double = query.output(0).dtype == DType::kFloat64;
  const DType computed = is_double ? DType::kFloat64 : DType::kFloat32;
  KernelScratch blocks = contiguous_scratch(query, computed);
  blocks.push_back({num_columns(plan) * static_cast<int64_t>(dtype_size(computed)),
                    plan.sizes.groups * (plan.roles.writes_weight ? 1 : plan.sizes.batch)});
  return with_scratch({is_double ? run_of<double>(plan.roles) : run_of<float>(plan.roles),
                       std::make_shared<const GemmConvPlan>(plan)},
                      std::move(blocks));
}

}  // namespace flow::ops
