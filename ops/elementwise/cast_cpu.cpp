// Kernels of ops/elementwise/cast.h. They are bound by memory, so the loops that the compiler makes
// suffice.
#include "ops/elementwise/cast_formula.h"
#include "ops/elementwise/cast_op.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/kernel/convert_rows.h"

#include "ops/kernel/isa_begin.h"

namespace {

template <class To, class From>
void convert_elements(To* y, int64_t n, const From* x) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i)
    y[i] = convert<To>(x[i]);
}

struct CastBlock {
  template <class To, class From>
  static void run(const void* /*attrs*/, To* y, int64_t n, const From* x) {
    if constexpr (is_floating(dtype_of<To>) && is_floating(dtype_of<From>) &&
                  (sizeof(To) == 2 || sizeof(From) == 2) && sizeof(To) <= 4 && sizeof(From) <= 4) {
      map(
          y, n, [](auto v) { return v; }, x);
    } else {
      convert_elements(y, n, x);
    }
  }
};

template <class To, class From>
void add_cast(KernelTable& table) {
  add_kernel<CastBlock, To, From>(table, kCast);
}

#if FLOW_ISA == 0
void reference(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const TensorView& x = ctx.in(0);
  convert_rows(ctx.state_as<LoopNest>(), y.meta->dtype, y.data, x.meta->dtype, x.data);
}

KernelChoice select_reference(const KernelQuery& query) {
  return {reference, share_loop_nest(query.output(0), query.inputs)};
}
#endif

}  // namespace

void register_cast_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kCast, DeviceType::kCpu, {"reference", select_reference});
#endif
  add_cast<double, float>(table);
  add_cast<float, double>(table);
  add_cast<float, bool>(table);
  add_cast<double, bool>(table);
  add_cast<float, uint8_t>(table);
  add_cast<float, int32_t>(table);
  add_cast<float, int64_t>(table);
  add_cast<int64_t, float>(table);
  add_cast<int64_t, int32_t>(table);
  add_cast<Float16, float>(table);
  add_cast<float, Float16>(table);
  add_cast<BFloat16, float>(table);
  add_cast<float, BFloat16>(table);
}

#include "ops/kernel/isa_end.h"
