// The random stream of a draw, as kernels get it.
#pragma once

#include "core/device/host_device.h"
#include "core/generator.h"
#include "core/kernel.h"

namespace flow::cuda {

// A captured kernel runs with the same parameters each time (core/device/device_graph.h), so it
// reads the stream of the run in device memory.
struct DeviceDraw {
  RandomStream random;
  const RandomStream* there = nullptr;  // null: `random` is the stream

  FLOW_HOST_DEVICE RandomStream stream() const {
    if (there == nullptr) return random;
    return {there->seed, there->stream, random.rank};
  }
};

// The draw of a call. All CUDA kernels that draw take it from here.
DeviceDraw draw_of(const KernelContext& ctx);

}  // namespace flow::cuda
