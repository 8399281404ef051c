// Runs the kernel of a decided call, for the eager interpreter and for programs.
#pragma once

#include "core/error.h"
#include "core/kernel_call.h"

namespace flow::eager {

// Tells the other ranks of a failed call where they see other data: those without the bad value
// must not wait for this rank.
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
