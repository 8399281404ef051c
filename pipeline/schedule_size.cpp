#include "pipeline/schedule_size.h"

#include "core/error.h"

namespace flow::pipeline {

void check_schedule_size(int64_t num_stages, int64_t num_micro_batches) {
  if (num_stages >= 1 && num_micro_batches >= 1 &&
      num_stages <= kMostActions / 3 / num_micro_batches) {
    return;
  }
  throw InvalidArgument(str("[schedule] ", num_stages, " stages and ", num_micro_batches,
                            " micro-batches; give at least 1 of each, and together at most ",
                            kMostActions, " actions"));
}

}  // namespace flow::pipeline
