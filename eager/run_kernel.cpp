#include "eager/run_kernel.h"

#include "boxing/ranks/fail_ranks.h"

namespace flow::eager {

void report_failure(const KernelContext& context, const std::string* module_path, Error& error) {
  error.add_place(context.site, module_path);
  if (has_sharded_input(context.inputs)) boxing::fail_ranks(context.rank, error.what());
}

}  // namespace flow::eager
