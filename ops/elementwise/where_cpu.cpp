// Kernels of ops/elementwise/where.h. The compiler turns the conditions into blends.
#include "ops/elementwise/row_kernels.h"

#include "ops/kernel/isa_begin.h"

void register_where_cpu(KernelTable& table) {
  add_rows<NoVectorForms>(table, ChoiceRows());
}

#include "ops/kernel/isa_end.h"
