// Kernels of ops/elementwise/special.h, one element at a time in double.
#include <cmath>

#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/row_kernels.h"
#include "ops/elementwise/special/functions.h"
#include "ops/elementwise/special_op.h"

#include "ops/kernel/isa_begin.h"

void register_special_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

// The C library's lgamma stores the sign in a global variable; this form does not.
double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

struct Lgamma {
  template <class T>
  static T apply(T x) {
    return static_cast<T>(log_gamma(static_cast<double>(x)));
  }
};

template <class F>
void add_unary(KernelTable& table, const OpDef& op) {
  add_reference<F, Types::kFloating, 1>(table, op);
  add_loops<F, double, double>(table, op);
  add_loops<F, float, float>(table, op);
}

}  // namespace

void register_special_cpu(KernelTable& table) {
  add_unary<OfTensors<Lgamma>>(table, kLgamma);
  add_unary<OfAttrs<PolygammaOf>>(table, kPolygamma);
  add_unary<OfTensors<Erfinv>>(table, kErfinv);
  add_rows<NoVectorForms>(table, SpecialRows());
}

#else

void register_special_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
