#include "nn/parallel/distributed.h"

#include "core/grad_mode.h"

namespace flow::nn::parallel::internal {

void broadcast_values(const NamedTensors& tensors) {
  const NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors)
    tensor.copy_(comm::broadcast(tensor.detach().to("cpu"), 0));
}

}  // namespace flow::nn::parallel::internal
