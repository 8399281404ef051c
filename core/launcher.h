// What the launcher's environment (mpirun, or srun with PMIx) says about this process.
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

}  // namespace flow
