// What the environment of a launcher (mpirun, or srun with PMIx) says about this process.
#pragma once

#include <cstdint>

namespace flow {

struct Launcher {
  bool is_present = false;
  int64_t rank = 0;
  int64_t world_size = 1;     // 1 where the launcher does not say
  int64_t ranks_on_host = 1;  // likewise
};

// Read anew at each call.
Launcher find_launcher();

}  // namespace flow
