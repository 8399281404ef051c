// Kernels of ops/cast.h: bound by memory, the compiler's loops suffice.
#include "ops/cast_formula.h"
#include "ops/cast_op.h"
#include "ops/elementwise_loops.h"

#include "ops/isa_begin.h"

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

  template <class To, class From>
  static void run_streaming(const void* attrs, To* y, int64_t n, const From* x) {
    run(attrs, y, n, x);
  }
};

template <class To, class From>
void add_cast(KernelTable& table) {
  table.add(kCast, DeviceType::kCpu, {FLOW_ISA_NAME, select_elementwise<CastBlock, To, From>});
}

#if FLOW_ISA == 0
template <class To, class From>
void run_reference_cast(const KernelContext& ctx) {
  const auto& plan = ctx.plan_as<LoopPlan>();
  const LoopPlan::Offsets& stride = plan.inner_stride();
  for_rows(plan, 0, plan.rows, [&](const LoopPlan::Offsets& offsets) {
    To* y = ctx.out(0).as<To>() + offsets[0];
    const From* x = ctx.in(0).as<From>() + offsets[1];
    for (int64_t i = 0; i < plan.inner; ++i)
      y[i * stride[0]] = convert<To>(x[i * stride[1]]);
  });
}

KernelChoice select_reference_cast(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_all(query.output(0).dtype, [&]<class To>() {
    dispatch_all(query.input(0).dtype,
                 [&]<class From>() { choice.fn = run_reference_cast<To, From>; });
  });
  choice.plan = share_loop_plan(query.output(0), query.inputs);
  return choice;
}
#endif

}  // namespace

void register_cast_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kCast, DeviceType::kCpu, {"reference", select_reference_cast});
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

#include "ops/isa_end.h"
