// Replaces mpi_transport.cpp in a build without MPI.
#include "boxing/comm/mpi_transport.h"
#include "core/error.h"

namespace flow::boxing {

bool has_mpi() {
  return false;
}

std::unique_ptr<Transport> connect_mpi() {
  throw Unsupported(
      "[ranks] a launcher started this program as one of several ranks, but flow was built without "
      "MPI; install libopenmpi-dev and build flow with FLOW_MPI=ON, or start a single process");
}

namespace internal {
std::unique_ptr<Transport> connect_mpi_by_messages(int64_t /*longest_message*/) {
  return boxing::connect_mpi();
}
}  // namespace internal

}  // namespace flow::boxing
