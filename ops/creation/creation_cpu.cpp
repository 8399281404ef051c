// Kernels of ops/creation/creation.h. Outputs are new and therefore contiguous.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/context.h"
#include "core/kernel.h"
#include "ops/creation/creation_op.h"
#include "ops/elementwise/cast_formula.h"

#include "ops/kernel/isa_begin.h"

namespace {

// Writes zeros on ranks that do not hold the value of a partial sum. Returns true if nothing
// remains to be done.
bool wrote_zeros(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  if (holds_values(*y.meta, ctx.rank.rank())) return false;
  std::memset(y.data, 0, y.meta->local_bytes());
  return true;
}

template <class T>
void full(const KernelContext& ctx) {
  if (wrote_zeros(ctx)) return;
  const T value = ctx.attrs_as<FullAttrs>().value.to<T>();
  T* y = ctx.out(0).as<T>();
  for (int64_t i = 0; i < ctx.out(0).numel(); ++i)
    y[i] = value;
}

template <class Pick>
KernelChoice by_output(const KernelQuery& query, const Pick& pick) {
  KernelChoice choice;
  dispatch_all(query.output(0).dtype,
               [&]<class T>() { choice.fn = pick.template operator()<T>(); });
  return choice;
}

KernelChoice select_full(const KernelQuery& query) {
  return by_output(query, []<class T>() -> KernelFn { return full<T>; });
}

// One plain form of the others serves all CPUs.
#if FLOW_ISA == 0

void leave(const KernelContext& /*ctx*/) {}

template <class T>
void arange(const KernelContext& ctx) {
  if (wrote_zeros(ctx)) return;
  const auto& attrs = ctx.attrs_as<ArangeAttrs>();
  const int64_t begin = ctx.out(0).meta->local_begin[0];
  const int64_t n = ctx.out(0).numel();
  T* y = ctx.out(0).as<T>();
  if (attrs.start.is_floating() || attrs.step.is_floating()) {
    const double start = attrs.start.to<double>();
    const double step = attrs.step.to<double>();
    constexpr int kBlock = 256;
    std::array<double, kBlock> distance;
    for (int64_t i = 0; i < n; i += kBlock) {
      const auto first = static_cast<double>(begin + i);
      const int count = static_cast<int>(std::min<int64_t>(kBlock, n - i));
      for (int k = 0; k < kBlock; ++k)
        distance[static_cast<size_t>(k)] = (first + k) * step;
      for (int k = 0; k < count; ++k)
        y[i + k] = convert<T>(start + distance[static_cast<size_t>(k)]);
    }
  } else {
    const int64_t start = attrs.start.to<int64_t>();
    const int64_t step = attrs.step.to<int64_t>();
    for (int64_t i = 0; i < n; ++i)
      y[i] = convert<T>(start + (begin + i) * step);
  }
}

// Computed from the nearer end, so that both ends are exact.
template <class T>
void linspace(const KernelContext& ctx) {
  if (wrote_zeros(ctx)) return;
  const auto& attrs = ctx.attrs_as<LinspaceAttrs>();
  const int64_t steps = ctx.out(0).meta->shape[0];
  const int64_t begin = ctx.out(0).meta->local_begin[0];
  const double step = steps > 1 ? (attrs.end - attrs.start) / static_cast<double>(steps - 1) : 0;
  T* y = ctx.out(0).as<T>();
  for (int64_t i = begin; i < begin + ctx.out(0).numel(); ++i) {
    const double value = i < (steps + 1) / 2
                             ? attrs.start + static_cast<double>(i) * step
                             : attrs.end - static_cast<double>(steps - 1 - i) * step;
    y[i - begin] = convert<T>(value);
  }
}

template <class T>
void eye(const KernelContext& ctx) {
  const TensorMeta& meta = *ctx.out(0).meta;
  T* y = ctx.out(0).as<T>();
  std::fill_n(y, meta.local_numel, T{});
  if (!holds_values(meta, ctx.rank.rank())) return;
  for (int64_t row = 0; row < meta.local_shape[0]; ++row) {
    const int64_t column = meta.local_begin[0] + row - meta.local_begin[1];
    if (column >= 0 && column < meta.local_shape[1]) {
      y[row * meta.local_shape[1] + column] = convert<T>(1);
    }
  }
}

#endif

}  // namespace

void register_creation_cpu(KernelTable& table) {
  constexpr DeviceType kCpu = DeviceType::kCpu;
  table.add(kFull, kCpu, {FLOW_ISA == 0 ? "reference" : FLOW_ISA_NAME, select_full});
#if FLOW_ISA == 0
  table.add(kEmpty, kCpu, {"reference", always<leave>});
  table.add(kArange, kCpu, {"reference", [](const KernelQuery& query) {
                              return by_output(query,
                                               []<class T>() -> KernelFn { return arange<T>; });
                            }});
  table.add(kLinspace, kCpu, {"reference", [](const KernelQuery& query) {
                                return by_output(query,
                                                 []<class T>() -> KernelFn { return linspace<T>; });
                              }});
  table.add(kEye, kCpu, {"reference", [](const KernelQuery& query) {
                           return by_output(query, []<class T>() -> KernelFn { return eye<T>; });
                         }});
#endif
}

#include "ops/kernel/isa_end.h"
