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

// Of "jobN" and "mirroredN"; none for other words, these joined to others among them.
std::optional<JobLayout> job_layout(const std::string& text);

// The calling thread is no rank, and the process has no other ranks: the training's own are threads
// that end with it.
ExitCode run_job_training(const TrainOptions& options, const JobLayout& layout);

}  // namespace flow::conform
