// Kernels of ops/elementwise/cast.h.
#include "ops/elementwise/cast_loops.h"
#include "ops/elementwise/cast_op.h"
#include "ops/kernel/convert_rows.h"

#include "ops/kernel/isa_begin.h"

#if FLOW_ISA == 0
namespace {

void reference(const KernelContext& ctx) {
  const TensorView& y = ctx.out(0);
  const TensorView& x = ctx.in(0);
  convert_rows(ctx.state_as<LoopNest>(), y.meta->dtype, y.data, x.meta->dtype, x.data);
}

KernelChoice select_reference(const KernelQuery& query) {
  return {reference, share_loop_nest(query.output(0), query.inputs)};
}

}  // namespace
#endif

void register_cast_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kCast, DeviceType::kCpu, {"reference", select_reference});
#endif
  for_each_cast([&]<class To, class From>() { add_kernel<CastBlock, To, From>(table, kCast); });
}

#include "ops/kernel/isa_end.h"
