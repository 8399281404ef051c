// Kernels of ops/elementwise/bitwise.h.
#include "ops/elementwise/row_kernels.h"

#include "ops/kernel/isa_begin.h"

void register_bitwise_cpu(KernelTable& table) {
  add_rows<NoVectorForms>(table, BitRows());
}

#include "ops/kernel/isa_end.h"
