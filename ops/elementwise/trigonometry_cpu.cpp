// Kernels of ops/elementwise/trigonometry.h: the C library's functions, one element at a time.
#include <cmath>

#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/trigonometry_op.h"

#include "ops/kernel/isa_begin.h"

void register_trigonometry_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

// F is a function object over numbers.
template <class F>
struct Of {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](auto... x) { return F()(x...); };
  }
};

template <class F>
void add_unary(KernelTable& table, const OpDef& op, F /*function*/) {
  add_reference<Of<F>, Types::kFloating, 1>(table, op);
  add_loops<Of<F>, double, double>(table, op);
  add_loops<Of<F>, float, float>(table, op);
}

template <class F>
void add_binary(KernelTable& table, const OpDef& op, F /*function*/) {
  add_reference<Of<F>, Types::kFloating, 2>(table, op);
  add_loops<Of<F>, double, double, double>(table, op);
  add_loops<Of<F>, float, float, float>(table, op);
}

}  // namespace

void register_trigonometry_cpu(KernelTable& table) {
  add_unary(table, kTan, [](auto x) { return std::tan(x); });
  add_unary(table, kAsin, [](auto x) { return std::asin(x); });
  add_unary(table, kAcos, [](auto x) { return std::acos(x); });
  add_unary(table, kAtan, [](auto x) { return std::atan(x); });
  add_unary(table, kSinh, [](auto x) { return std::sinh(x); });
  add_unary(table, kCosh, [](auto x) { return std::cosh(x); });
  add_unary(table, kAsinh, [](auto x) { return std::asinh(x); });
  add_unary(table, kAcosh, [](auto x) { return std::acosh(x); });
  add_unary(table, kAtanh, [](auto x) { return std::atanh(x); });
  add_binary(table, kAtan2, [](auto y, auto x) { return std::atan2(y, x); });
}

#else

void register_trigonometry_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
