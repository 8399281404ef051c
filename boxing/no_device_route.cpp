// Replaces device_route.cpp in builds without CUDA.
#include "boxing/device_route.h"

namespace flow::boxing {

KernelChoice bind_device_route(RankContext& /*context*/, const RankRoute& /*route*/,
                               Channel /*channel*/) {
  return {};
}

}  // namespace flow::boxing
