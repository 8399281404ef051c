// Kernels of ops/elementwise/compare.h. The compiler turns the comparisons into masks and packs
// them to bytes.
#include "ops/elementwise/row_kernels.h"

#include "ops/kernel/isa_begin.h"

void register_compare_cpu(KernelTable& table) {
  add_rows<NoVectorForms>(table, CompareRows());
}

#include "ops/kernel/isa_end.h"
