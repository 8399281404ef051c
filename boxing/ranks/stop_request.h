// Reports whether the system has asked the job to end.
#pragma once

#include "core/site.h"

namespace flow::env {

// Returns true on all ranks of the world once SIGTERM or SIGUSR1 has reached one of them: the
// program should then save and return. A job of several ranks handles both signals from its first
// flow call of any kind, so that no signal is lost before the training loop; a program with a
// single rank handles them from its first call of this function. Before that, the signals end the
// process. Handlers that the program installed earlier stay. Collective.
//
//   for (int64_t step = 0; step < steps && !flow::env::stop_requested(); ++step) train(step);
bool stop_requested(Site site = Site::here());

}  // namespace flow::env

namespace flow::boxing {
// Called where a job begins. A signal that the program handles itself stays with the program.
void take_over_stop_signals();
}  // namespace flow::boxing
