// This process as one rank of a job that a launcher started.
#pragma once

#include "core/context.h"

namespace flow::boxing {

class ProcessWorld;

// Under a launcher (mpirun, flowrun) connects this process with the others; they must be built
// alike and agree on the FLOW_ variables. Without one there is nothing to connect: rank 0 of 1, and
// MPI is never touched. Called by the first flow call of any kind, as all ranks have to take part.
RankIdentity join_process_ranks();

// Throws DistributedError where the members of the world were built or set up differently.
// Collective.
void check_agreement(ProcessWorld& world);

}  // namespace flow::boxing
