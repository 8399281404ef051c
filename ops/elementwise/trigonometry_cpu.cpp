// Kernels of ops/elementwise/trigonometry.h: the C library's functions, one element at a time.
#include <cmath>

#include "ops/elementwise/trigonometry_op.h"
#include "ops/elementwise/unary_kernels.h"

#include "ops/kernel/isa_begin.h"

void register_trigonometry_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

struct Atan2 {
  template <class T>
  static T apply(T y, T x) {
    return std::atan2(y, x);
  }
};

}  // namespace

void register_trigonometry_cpu(KernelTable& table) {
  add_rows<NoVectorForms>(table, TrigonometryRows());
  add_reference<OfTensors<Atan2>, Types::kFloating, 2>(table, kAtan2);
  add_loops<OfTensors<Atan2>, double, double, double>(table, kAtan2);
  add_loops<OfTensors<Atan2>, float, float, float>(table, kAtan2);
}

#else

void register_trigonometry_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
