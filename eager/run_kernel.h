// Runs the kernel of a decided call for the eager interpreter and for programs.
#pragma once

#include <string>

#include "core/error.h"
#include "core/kernel_call.h"

namespace flow::eager {

// Gives the error of a call its place, and tells the other ranks of it if ranks see different data
// in the inputs of the call: ranks without the bad value must not wait for this rank.
void report_failure(const KernelContext& context, const std::string* module_path, Error& error);

// `module_path`: of the call, if it is not that of the running module.
inline void run_kernel(KernelFn fn, const KernelContext& context,
                       const std::string* module_path = nullptr) {
  try {
    fn(context);
  } catch (Error& error) {
    report_failure(context, module_path, error);
    throw;
  }
}

}  // namespace flow::eager
