// What the launcher's environment (mpirun, srun with PMIx, or flowrun) says about this process.
#pragma once

#include <cstdint>

namespace flow {

struct Launcher {
  bool is_present = false;
  int64_t rank = 0;
  int64_t world_size = 1;     // 1 if the launcher does not say
  int64_t ranks_on_host = 1;  // 1 if the launcher does not say
};

// Reads the environment at each call.
Launcher find_launcher();

namespace env {
// The columns of the terminal that shows the standard output of this rank, or 0 if no terminal
// shows it. flowrun forwards the output of ranks, so it tells them (FLOW_TERMINAL_WIDTH, without
// the columns of its prefix). Other launchers do not, so under them there is no terminal.
//
//   if (flow::env::terminal_width() > 0) std::printf("%3d %%\r", percent);  // in place
//
// flowrun shows what ends with \r at once, like a line.
int64_t terminal_width();
}  // namespace env

}  // namespace flow
