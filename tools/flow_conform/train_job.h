// flow-conform train through job functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/flow_conform/train_command.h"

namespace flow::conform {

struct JobLayout {
  int64_t num_devices = 1;
  bool is_mirrored = false;
};

// Parses "jobN" and "mirroredN". Returns nullopt for other words, and for these words joined to
// others.
std::optional<JobLayout> job_layout(const std::string& text);

// The calling thread must not be a rank, and the process must have no other ranks. The training
// starts its own thread ranks, which end with it.
ExitCode run_job_training(const TrainOptions& options, const JobLayout& layout);

}  // namespace flow::conform
