// Kernels of ops/elementwise/trigonometry.h: the C library's functions, one element at a time.
#include "ops/elementwise/row_kernels.h"

#include "ops/kernel/isa_begin.h"

void register_trigonometry_cpu(KernelTable& table);

void register_trigonometry_cpu(KernelTable& table) {
  add_rows<NoVectorForms>(table, TrigonometryRows());
}

#include "ops/kernel/isa_end.h"
