// Kernels of ops/elementwise/trigonometry.h. Those without a vector form call the C library's
// function for one element at a time.
#include "ops/elementwise/row_kernels.h"
#include "ops/kernel/vector_tan.h"

#include "ops/kernel/isa_begin.h"

void register_trigonometry_cpu(KernelTable& table);

namespace {

// The vector forms of rows.
// clang-format off
struct VectorForms {
  static auto of(Tan, auto x) { return tan(x); }
  static auto of(Atan, auto x) { return atan(x); }
  static auto of(Asin, auto x) { return asin(x); }
  static auto of(Acos, auto x) { return acos(x); }
};

// clang-format on

}  // namespace

void register_trigonometry_cpu(KernelTable& table) {
  add_rows<VectorForms>(table, TrigonometryRows());
}

#include "ops/kernel/isa_end.h"
