// Whether the system has asked the job to end.
#pragma once

#include "core/site.h"

namespace flow::env {

// True on all ranks of the world once SIGTERM or SIGUSR1 has reached one of them: time to save and
// return. The first call takes over both signals; until then they end the process. Collective.
//
//   for (int64_t step = 0; step < steps && !flow::env::stop_requested(); ++step) train(step);
bool stop_requested(Site site = Site::here());

}  // namespace flow::env
