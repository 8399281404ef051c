#include "nn/parallel/traced_ranks.h"

#include <utility>

#include "boxing/layout.h"
#include "boxing/redistribute.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/dispatch.h"
#include "core/grad_mode.h"
#include "ops/creation/copy.h"

namespace flow::nn::parallel::internal {

namespace {

// The nodes that are traced while it exists have this path.
class PathScope {
 public:
  explicit PathScope(const std::string& path)
      : outer_(std::exchange(thread_state().module_path, &path)) {}

  ~PathScope() { thread_state().module_path = outer_; }

  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  const std::string* outer_;
};

// The tensor as this rank's part of a global one. Nothing moves, and no rank is asked.
Tensor as_global(const Tensor& local, const Placement& placement, Sbp sbp) {
  const boxing::LocalToGlobalAttrs attrs{
      .shape = local.shape(), .placement = placement, .nd_sbp = sbp, .sends_first = false};
  return dispatch(boxing::kLocalToGlobal, {&local}, attrs, Site::here());
}

}  // namespace

Tensor traced_mean(const Tensor& local, const std::string& name) {
  const Placement all = boxing::all_ranks(local.device());
  if (all.num_ranks() == 1) return local;
  const NoGradGuard no_grad;
  const PathScope path(name);
  const Tensor addends = as_global(local.contiguous(), all, sbp::partial_sum);
  const Tensor mean = dispatch(boxing::kAllReduceMean, {&addends}, Site::here());
  // A part of a global tensor may not be written, but gradients may. The compiler drops the copy.
  return mean.to_local().clone();
}

// On the other ranks nothing reads their own tensors.
Tensor traced_broadcast(const Tensor& local, const std::string& name) {
  const Placement all = boxing::all_ranks(local.device());
  if (all.num_ranks() == 1) return local;
  const NoGradGuard no_grad;
  const PathScope path(name);
  const Placement first(all.device_type(), {1}, {0});
  return as_global(local, first, sbp::broadcast)
      .to_global({.placement = all, .sbp = sbp::broadcast})
      .to_local();
}

}  // namespace flow::nn::parallel::internal
