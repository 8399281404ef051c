#include "eager/run_kernel.h"

#include "boxing/ranks/fail_ranks.h"

namespace flow::eager {

void report_failure(const KernelContext& context, const Error& error) {
  if (has_sharded_input(context.inputs)) boxing::fail_ranks(context.rank, error.what());
}

}  // namespace flow::eager
