// Replaces device_collectives.cpp in builds without CUDA.
#include "boxing/comm/device_collectives.h"
#include "core/error.h"

namespace flow::boxing {

Communicator& device_collectives_for(RankContext& /*rank*/, Communicator& /*group*/) {
  throw Unsupported("[communicator] this build has no CUDA; configure with -DFLOW_CUDA=ON");
}

bool stays_on_devices(RankContext& /*rank*/, Communicator& /*group*/, const Fingerprint& /*what*/) {
  return false;
}

}  // namespace flow::boxing
