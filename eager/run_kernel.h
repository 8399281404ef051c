// Runs the kernel of a decided call for the eager interpreter and for programs.
#pragma once

#include "core/error.h"
#include "core/kernel_call.h"

namespace flow::eager {

// Tells the other ranks that a call has failed if ranks see different data in its inputs: ranks
// without the bad value must not wait for this rank.
void report_failure(const KernelContext& context, const Error& error);

inline void run_kernel(KernelFn fn, const KernelContext& context) {
  try {
    fn(context);
  } catch (const Error& error) {
    report_failure(context, error);
    throw;
  }
}

}  // namespace flow::eager
