// The committed cost table: what moving data between ranks is predicted to cost. The same on every
// machine, so that all ranks and all runs decide alike; it ranks alternatives, it does not measure.
#pragma once

#include <cstdint>

namespace flow::boxing {

struct CostTable {
  double meeting_us = 1.5;       // members of a group meet once
  double peer_us = 0.3;          // each further member of the group
  double bytes_per_us = 4000;    // received by, or sent from, one rank
  double reduced_per_us = 6000;  // operand bytes of a reduction
  double copied_per_us = 8000;   // bytes written by a copy within a rank
  double local_step_us = 0.2;    // a step without communication
  double flops_per_us = 100000;  // arithmetic of a rank
  // How often a result is brought to B by those that use it: what is cut is mostly used as it is;
  // what is partial is reduced, and again by some further uses.
  double cut_use = 0.2;
  double partial_use = 1.25;
};

inline constexpr CostTable kCostTable{};

}  // namespace flow::boxing
