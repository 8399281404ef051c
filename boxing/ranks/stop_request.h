// Whether the system has asked the job to end.
#pragma once

#include "core/site.h"

namespace flow::env {

// True on all ranks of the world once SIGTERM or SIGUSR1 has reached one of them: time to save and
// return. A job of several ranks takes over both signals with its first flow call of any kind, so
// that none is lost before the loop; a program that is alone with its first call of this. Until
// then they end the process. Handlers that the program has set before stay. Collective.
//
//   for (int64_t step = 0; step < steps && !flow::env::stop_requested(); ++step) train(step);
bool stop_requested(Site site = Site::here());

}  // namespace flow::env

namespace flow::boxing {
// Where a job begins. A signal that the program handles by itself stays with it.
void take_over_stop_signals();
}  // namespace flow::boxing
