// Measures the cost table (boxing/cost.h) of this machine.
#pragma once

#include "boxing/cost.h"

namespace flow {

// Measures on all ranks of the job, or on two thread ranks if the program runs alone. Every rank
// returns the same table. Fields that do not depend on the machine (CostTable's cut_use,
// partial_use) keep their committed values, and so does peer_us if there are only two ranks.
boxing::CostTable measure_costs();

}  // namespace flow
