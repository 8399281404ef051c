// Compiled per instruction set, as the kernels it lists are.
#include "core/kernel.h"

#include "ops/isa_begin.h"

// One line a family in both lists, alphabetically.

void register_matmul_cpu(KernelTable& table);
void register_reduce_cpu(KernelTable& table);
void register_slice_cpu(KernelTable& table);
void register_view_cpu(KernelTable& table);

void register_all_cpu(KernelTable& table);

void register_all_cpu(KernelTable& table) {
  register_matmul_cpu(table);
  register_reduce_cpu(table);
  register_slice_cpu(table);
  register_view_cpu(table);
}

#include "ops/isa_end.h"
