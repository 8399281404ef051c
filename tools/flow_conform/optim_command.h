// flow-conform optim and scheduler compute trajectories of parameters and learning rates.
#pragma once

#include <string>

#include "tools/flow_conform/op_command.h"

namespace flow::conform {

struct OptimOptions {
  RunOptions run;
  std::string spec;
  std::string out;
};

ExitCode run_optimizers(const OptimOptions& options);
ExitCode run_schedulers(const OptimOptions& options);

}  // namespace flow::conform
