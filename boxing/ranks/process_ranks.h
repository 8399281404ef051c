// Makes this process one rank of a job that a launcher started.
#pragma once

#include "core/context.h"

namespace flow::boxing {

class ProcessWorld;

// Under a launcher (mpirun, flowrun), connects this process with the others and checks that all
// were built alike and agree on the FLOW_ variables. Collective: all ranks must call it, so the
// first flow call of any kind does. Without a launcher it returns rank 0 of 1 and does not touch
// MPI.
RankIdentity join_process_ranks();

// Throws DistributedError if the members of the world differ in build or environment. Collective.
void check_agreement(ProcessWorld& world);

}  // namespace flow::boxing
