// layer_norm and rms_norm on the CPU. A row is read from memory once and then, while it is in L1,
// for its mean, its variance and its result. The backward kernel also adds up the gradients of the
// parameters in the pass that writes dx.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "core/thread_pool.h"
#include "ops/kernel/row_loops.h"
#include "ops/kernel/vector.h"
#include "ops/local_parts.h"
#include "ops/norm/norm_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

struct NormState {
  int64_t rows = 1;
  int64_t size = 1;
};

NormState prepare_rows(const TensorMeta& x, int64_t num_dims) {
  NormState state;
  const Shape& shape = x.local_shape;
  for (int64_t i = 0; i < shape.size(); ++i)
    (i < shape.size() - num_dims ? state.rows : state.size) *= shape[i];
  return state;
}

template <class T>
using Wide = std::conditional_t<kIsHalf<T>, float, T>;

#if FLOW_ISA == 0

template <class T>
double value_of(T x) {
  return static_cast<double>(static_cast<Wide<T>>(x));
}

template <class T>
T value_as(double x) {
  return static_cast<T>(static_cast<Wide<T>>(x));
}

// All elements of a strided tensor in row-major order.
template <class T>
std::vector<double> values_of(const TensorView& view) {
  std::vector<double> values(static_cast<size_t>(view.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t at = 0;
    for (int64_t d = view.shape().size() - 1; d >= 0; --d) {
      at += rest % view.shape()[d] * view.strides()[d];
      rest /= view.shape()[d];
    }
    values[i] = value_of(view.as<T>()[at]);
  }
  return values;
}

template <class T>
std::vector<double> parameter_or(const KernelContext& ctx, int input, int64_t size, double value) {
  if (ctx.has_input(input)) return values_of<T>(ctx.in(input));
  return std::vector<double>(static_cast<size_t>(size), value);
}

struct RowStatistics {
  double mean = 0;
  double scale = 0;
};

RowStatistics statistics_plainly(const double* x, int64_t n, bool centers, double eps) {
  RowStatistics result;
  if (centers) {
    for (int64_t i = 0; i < n; ++i)
      result.mean += x[i] / static_cast<double>(n);
  }
  double variance = 0;
  for (int64_t i = 0; i < n; ++i)
    variance += (x[i] - result.mean) * (x[i] - result.mean) / static_cast<double>(n);
  result.scale = 1 / std::sqrt(variance + eps);
  return result;
}

// Y is the type of the result.
template <class T, bool kCenters, class Attrs = NormAttrs, class Y = T>
void norm_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<NormState>();
  const std::vector<double> x = values_of<T>(ctx.in(0));
  const std::vector<double> weight = parameter_or<T>(ctx, 1, state.size, 1);
  const std::vector<double> bias = parameter_or<T>(ctx, 2, state.size, 0);
  Y* y = ctx.out(0).as<Y>();
  for (int64_t row = 0; row < state.rows; ++row) {
    const double* source = x.data() + row * state.size;
    const RowStatistics s =
        statistics_plainly(source, state.size, kCenters, ctx.attrs_as<Attrs>().eps);
    for (int64_t i = 0; i < state.size; ++i) {
      const auto at = static_cast<size_t>(i);
      *y++ = value_as<Y>((source[i] - s.mean) * s.scale * weight[at] + bias[at]);
    }
  }
}

// G is the type of the gradient of the result.
template <class T, bool kCenters, class G = T>
void norm_backward_plainly(const KernelContext& ctx) {
  const auto& state = ctx.state_as<NormState>();
  const auto size = static_cast<size_t>(state.size);
  const std::vector<double> dy = values_of<G>(ctx.in(0));
  const std::vector<double> x = values_of<T>(ctx.in(1));
  const std::vector<double> weight = parameter_or<T>(ctx, 2, state.size, 1);
  std::vector<double> dweight(size);
  std::vector<double> dbias(size);
  T* dx = ctx.out(0).as<T>();
  for (int64_t row = 0; row < state.rows; ++row) {
    const double* source = x.data() + row * state.size;
    const double* gradient = dy.data() + row * state.size;
    const RowStatistics s =
        statistics_plainly(source, state.size, kCenters, ctx.attrs_as<NormAttrs>().eps);
    double mean_g = 0;
    double mean_gh = 0;
    for (size_t i = 0; i < size; ++i) {
      const double h = (source[i] - s.mean) * s.scale;
      const double g = gradient[i] * weight[i];
      mean_g += kCenters ? g / static_cast<double>(size) : 0;
      mean_gh += g * h / static_cast<double>(size);
      dweight[i] += gradient[i] * h;
      dbias[i] += gradient[i];
    }
    for (size_t i = 0; i < size; ++i) {
      const double h = (source[i] - s.mean) * s.scale;
      *dx++ = value_as<T>(s.scale * (gradient[i] * weight[i] - mean_g - h * mean_gh));
    }
  }
  for (size_t i = 0; i < size; ++i) {
    ctx.out(1).as<T>()[i] = value_as<T>(dweight[i]);
    if (kCenters) ctx.out(2).as<T>()[i] = value_as<T>(dbias[i]);
  }
}

template <bool kCenters, bool kBackward>
KernelChoice select_reference(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype, [&]<class T>() {
    choice.fn = kBackward ? norm_backward_plainly<T, kCenters> : norm_plainly<T, kCenters>;
  });
  choice.state = std::make_shared<const NormState>(
      prepare_rows(query.input(kBackward ? 1 : 0), query.attrs_as<NormAttrs>().num_dims));
  return choice;
}

KernelChoice select_narrow(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  const auto& attrs = query.attrs_as<NarrowNormAttrs>();
  return {attrs.dtype == DType::kBFloat16 ? norm_plainly<float, true, NarrowNormAttrs, BFloat16>
                                          : norm_plainly<float, true, NarrowNormAttrs, Float16>,
          std::make_shared<const NormState>(prepare_rows(query.input(0), attrs.num_dims))};
}

KernelChoice select_narrow_backward(const KernelQuery& query) {
  if (!parts_fit(query)) return {};
  return {query.input(0).dtype == DType::kBFloat16 ? norm_backward_plainly<float, true, BFloat16>
                                                   : norm_backward_plainly<float, true, Float16>,
          std::make_shared<const NormState>(
              prepare_rows(query.input(1), query.attrs_as<NormAttrs>().num_dims))};
}

#endif

// ---- contiguous operands

constexpr int64_t kGrainElements = 16384;

template <class C>
struct Statistics {
  Vec<C> mean;
  Vec<C> scale;
};

// The mean of a row, then the mean square of the differences from it, which is accurate for large
// means too.
template <class T, bool kCenters>
Statistics<Wide<T>> statistics(const T* x, int64_t n, double eps) {
  using C = Wide<T>;
  const C count = static_cast<C>(n);
  Statistics<C> result{Vec<C>::zero(), Vec<C>::zero()};
  if constexpr (kCenters) {
    result.mean = Vec<C>::fill(row_sum<C>(n, [&](auto at) { return at.get(x); }) / count);
  }
  const C square = row_sum<C>(n, [&](auto at) {
    const Vec<C> d = at.keep(at.get(x) - result.mean, 0);
    return d * d;
  });
  result.scale = Vec<C>::fill(C{1} / std::sqrt(square / count + static_cast<C>(eps)));
  return result;
}

template <class T, bool kCenters>
void run_norm(const KernelContext& ctx) {
  using C = Wide<T>;
  const auto& state = ctx.state_as<NormState>();
  const double eps = ctx.attrs_as<NormAttrs>().eps;
  const int64_t n = state.size;
  const T* x = ctx.in(0).as<T>();
  const T* weight = ctx.has_input(1) ? ctx.in(1).as<T>() : nullptr;
  const T* bias = kCenters && ctx.has_input(2) ? ctx.in(2).as<T>() : nullptr;
  T* y = ctx.out(0).as<T>();
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, n));
  ctx.pool().parallel_for(0, state.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* source = x + row * n;
      T* target = y + row * n;
      const Statistics<C> s = statistics<T, kCenters>(source, n, eps);
      for_row<C>(n, [&](auto at) {
        Vec<C> h = (at.get(source) - s.mean) * s.scale;
        if (weight != nullptr) h = h * at.get(weight);
        if (bias != nullptr) h = h + at.get(bias);
        at.put(target, h);
      });
    }
  });
}

// Gradients of parameters are added up over blocks of rows, then over blocks, so that the result
// depends on the shape only.
constexpr int64_t kBlockRows = 32;
constexpr int64_t kMaxBlocks = 16;

int64_t rows_per_block(const NormState& state) {
  return std::max(kBlockRows, (state.rows + kMaxBlocks - 1) / kMaxBlocks);
}

int64_t num_blocks(const NormState& state) {
  const int64_t rows = rows_per_block(state);
  return std::max<int64_t>(1, (state.rows + rows - 1) / rows);
}

template <class T, bool kCenters>
void run_backward(const KernelContext& ctx) {
  using C = Wide<T>;
  using V = Vec<C>;
  const auto& state = ctx.state_as<NormState>();
  const double eps = ctx.attrs_as<NormAttrs>().eps;
  const int64_t n = state.size;
  const T* dy = ctx.in(0).as<T>();
  const T* x = ctx.in(1).as<T>();
  const T* weight = ctx.has_input(2) ? ctx.in(2).as<T>() : nullptr;
  T* dx = ctx.out(0).as<T>();
  const int64_t block_rows = rows_per_block(state);
  const int64_t blocks = num_blocks(state);
  const auto scratch = ctx.scratch(static_cast<size_t>(blocks * 2 * n) * sizeof(C));
  C* sums = reinterpret_cast<C*>(scratch->data());
  std::memset(sums, 0, static_cast<size_t>(blocks * 2 * n) * sizeof(C));
  ctx.pool().parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * block_rows; row < std::min(state.rows, end * block_rows); ++row) {
      C* dweight = sums + row / block_rows * 2 * n;
      C* dbias = dweight + n;
      const T* source = x + row * n;
      const T* gradient = dy + row * n;
      T* target = dx + row * n;
      const Statistics<C> s = statistics<T, kCenters>(source, n, eps);
      const auto weighted = [&](auto at) {
        const V g = at.get(gradient);
        return weight != nullptr ? g * at.get(weight) : g;
      };
      const Sums<C, 2> total = row_sum_lanes<C>(n, [&](auto at) {
        const V g = weighted(at);
        return Sums<C, 2>{{g, g * ((at.get(source) - s.mean) * s.scale)}};
      });
      const C count = static_cast<C>(n);
      const V mean_g = V::fill(kCenters ? sum(total.term[0]) / count : C{0});
      const V mean_gh = V::fill(sum(total.term[1]) / count);
      for_row<C>(n, [&](auto at) {
        const V h = (at.get(source) - s.mean) * s.scale;
        const V d = at.get(gradient);
        at.put(target, s.scale * ((weighted(at) - mean_g) - h * mean_gh));
        at.put(dweight, at.get(dweight) + d * h);
        if constexpr (kCenters) at.put(dbias, at.get(dbias) + d);
      });
    }
  });
  const auto add_blocks = [&](T* target, const C* first) {
    for_row<C>(n, [&](auto at) {
      V total = at.get(first);
      for (int64_t block = 1; block < blocks; ++block)
        total = total + at.get(first + block * 2 * n);
      at.put(target, total);
    });
  };
  add_blocks(ctx.out(1).as<T>(), sums);
  if constexpr (kCenters) add_blocks(ctx.out(2).as<T>(), sums + n);
}

bool all_contiguous(const KernelQuery& query) {
  return std::all_of(query.inputs.begin(), query.inputs.end(),
                     [](MetaPtr meta) { return meta == nullptr || meta->is_contiguous; });
}

template <bool kCenters, bool kBackward>
KernelChoice select_fast(const KernelQuery& query) {
  if (!all_contiguous(query)) return {};
  KernelChoice choice;
  dispatch_floating(query.output(0).dtype, [&]<class T>() {
    choice.fn = kBackward ? run_backward<T, kCenters> : run_norm<T, kCenters>;
  });
  const auto state = std::make_shared<const NormState>(
      prepare_rows(query.input(kBackward ? 1 : 0), query.attrs_as<NormAttrs>().num_dims));
  choice.state = state;
  if (!kBackward) return choice;
  const bool is_double = query.output(0).dtype == DType::kFloat64;
  const auto element = static_cast<int64_t>(is_double ? sizeof(double) : sizeof(float));
  return with_scratch(std::move(choice), {{num_blocks(*state) * 2 * state->size * element}});
}

template <bool kCenters, bool kBackward>
void add_kernels(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  table.add(op, DeviceType::kCpu, {"reference", select_reference<kCenters, kBackward>});
#endif
  table.add(op, DeviceType::kCpu, {FLOW_ISA_NAME, select_fast<kCenters, kBackward>});
}

}  // namespace

void register_norm_cpu(KernelTable& table);

void register_norm_cpu(KernelTable& table) {
  add_kernels<true, false>(table, kLayerNorm);
  add_kernels<true, true>(table, kLayerNormBackward);
  add_kernels<false, false>(table, kRmsNorm);
  add_kernels<false, true>(table, kRmsNormBackward);
#if FLOW_ISA == 0
  table.add(kLayerNormNarrow, DeviceType::kCpu, {"reference", select_narrow});
  table.add(kLayerNormNarrowBackward, DeviceType::kCpu, {"reference", select_narrow_backward});
#endif
}

#include "ops/kernel/isa_end.h"
