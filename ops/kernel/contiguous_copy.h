// Kernels of ops with one input that run on a contiguous copy of it where no loop fits its strides.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

using SelectFn = KernelChoice (*)(const KernelQuery& query);

// The kernel that `select` chooses for a contiguous input, run on a copy of the op's only input. No
// choice if the input is contiguous itself, has no elements, or `select` has none.
KernelChoice choose_for_copy(const KernelQuery& query, SelectFn select);

// The kernel that kSelect chooses for the input as it is, else for a contiguous copy.
template <SelectFn kSelect>
KernelChoice as_is_or_copied(const KernelQuery& query) {
  KernelChoice choice = kSelect(query);
  return choice.fn != nullptr ? choice : choose_for_copy(query, kSelect);
}

}  // namespace flow::ops
