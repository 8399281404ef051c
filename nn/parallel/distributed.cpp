#include "nn/parallel/distributed.h"

#include "boxing/comm/communicator.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/parallel/traced_ranks.h"

namespace flow::nn::parallel::internal {

void broadcast_values(const NamedTensors& tensors) {
  const bool is_traced = thread_state().trace != nullptr;
  if (!is_traced && !boxing::has_running_peers(*thread_state().context)) return;
  const NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    tensor.copy_(is_traced ? traced_broadcast(tensor, name)
                           : comm::broadcast(tensor.detach().to("cpu"), 0));
  }
}

void refuse_in_graph() {
  if (thread_state().trace == nullptr) return;
  throw Unsupported(
      "[DistributedDataParallel] it was constructed in build(), which would send the parameters of "
      "rank 0 in every step; construct it outside and call it in build()",
      user_site(Site::none()));
}

}  // namespace flow::nn::parallel::internal
