// The signals that flowrun forwards to the ranks.
#pragma once

#include <csignal>
#include <vector>

namespace flowrun {

// SIGHUP and SIGINT, if flowrun was started with them ignored, as by nohup or by a shell that
// starts a command in the background. Then neither flowrun nor a rank must end by them.
std::vector<int> ignored_signals();

// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2, without the ignored ones.
sigset_t forwarded_signals();

// Blocks the signals, and returns a descriptor that receives them.
int receive_signals(const sigset_t& signals);

}  // namespace flowrun
