// Records the eager calls of a thread in its rank's timeline (FLOW_TIMELINE).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dispatch.h"
#include "core/timeline/timeline_log.h"

namespace flow::eager {

// One for each thread.
class TimelineObserver final : public CallObserver {
 public:
  explicit TimelineObserver(std::unique_ptr<timeline::ThreadLane> lane)
      : lane_(std::move(lane)), log_(lane_->log()) {}

  void begin(const Call& call, const Decision& decision) override;
  void end(const Decision& decision, bool has_failed) override;

  // A named region of the program. Regions and calls nest.
  void begin_scope(std::string_view name, Site site);
  void end_scope();

 private:
  std::unique_ptr<timeline::ThreadLane> lane_;
  timeline::TimelineLog& log_;
  std::vector<uint64_t> open_;  // the calls that have not ended, the innermost last
};

}  // namespace flow::eager
