// Measures a cost table (boxing/cost.h) for this machine.
#pragma once

#include "boxing/cost.h"

namespace flow {

// On all ranks of the job, or two thread ranks where the program was started alone. The same on
// every rank. What no machine decides (CostTable's cut_use, partial_use) stays as committed, and so
// does peer_us where there are only two ranks.
boxing::CostTable measure_costs();

}  // namespace flow
