// Kernels of ops/elementwise/where.h. The compiler turns the conditions into blends.
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/where_formulas.h"
#include "ops/elementwise/where_op.h"

#include "ops/kernel/isa_begin.h"

namespace {

template <class T>
void add_type(KernelTable& table) {
  add_loops<Where, T, bool, T, T>(table, kWhere);
  add_loops<MaskedFill, T, T, bool>(table, kMaskedFill);
  add_loops<Clamp, T, T>(table, kClamp);
}

#if FLOW_ISA == 0
KernelChoice select_where(const KernelQuery& query) {
  RowFn row = nullptr;
  dispatch_all(query.output(0).dtype,
               [&]<class T>() { row = Reference<Where, T, bool, T, T>::row; });
  return choose_rows(query, row);
}

KernelChoice select_masked_fill(const KernelQuery& query) {
  RowFn row = nullptr;
  dispatch_all(query.output(0).dtype,
               [&]<class T>() { row = Reference<MaskedFill, T, T, bool>::row; });
  return choose_rows(query, row);
}
#endif

}  // namespace

void register_where_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  table.add(kWhere, DeviceType::kCpu, {"reference", select_where});
  table.add(kMaskedFill, DeviceType::kCpu, {"reference", select_masked_fill});
  add_reference<Clamp, Types::kAll, 1>(table, kClamp);
  add_reference<ClampGrad, Types::kAll, 2>(table, kClampGrad);
#endif
  add_type<int64_t>(table);
  add_type<double>(table);
  add_type<float>(table);
  add_loops<ClampGrad, double, double, double>(table, kClampGrad);
  add_loops<ClampGrad, float, float, float>(table, kClampGrad);
}

#include "ops/kernel/isa_end.h"
