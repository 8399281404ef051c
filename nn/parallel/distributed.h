// DistributedDataParallel: each rank trains a copy of a module on its own part of the data.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>

#include "autograd/bucket_size.h"
#include "core/grad_mode.h"
#include "nn/comm.h"
#include "nn/module.h"
#include "nn/parallel/gradient_buckets.h"

namespace flow::nn::parallel {

struct DistributedDataParallelOptions {
  // Size of the buckets in which gradients are averaged; the first bucket is 1 MB. In a graph,
  // GraphConfig::set_overlap gives the sizes instead.
  double bucket_mb = autograd::kBucketMb;
  bool broadcast_buffers = true;  // broadcast rank 0's buffers before each training call
};

namespace internal {
// Overwrites the tensors on all ranks with the values of rank 0. Does nothing outside a trace if
// the other ranks exist for planning only.
void broadcast_values(const NamedTensors& tensors);
// Throws Unsupported, with the user's line, if a graph is being traced.
void refuse_in_graph();
}  // namespace internal

// Wraps a module of local tensors (Li et al. 2020, "PyTorch Distributed"). All ranks of the world
// construct and call it in the same order. At construction all ranks take the parameters and
// buffers of rank 0. backward averages the gradients over all ranks; the buckets are sent while
// backward is still running. A parameter that a rank did not use counts as a gradient of 0 there.
// One that was frozen at construction and is thawed later, on all ranks, is averaged from the next
// call on.
// On every rank backward must reach at least one parameter.
//
//   flow::nn::parallel::DistributedDataParallel ddp(model);
//   loss_fn(ddp(x[flow::env::rank()]), y[flow::env::rank()]).backward();
//
// A graph may call it in build(), which then computes what the eager step computes: inputs, losses
// and the number of rows are this rank's own. All ranks must average the gradients of the same
// parameters, else all of them get an error at the first run. Constructing it in build() is
// Unsupported.
template <class M>
class DistributedDataParallel : public Module<DistributedDataParallel<M>> {
 public:
  explicit DistributedDataParallel(M module, DistributedDataParallelOptions options = {},
                                   Site site = Site::here())
      : module_(this->register_module("module", std::move(module), Site::none())),
        options_(options),
        buckets_(GradientBuckets::make(module_.named_parameters(), options.bucket_mb, site)) {
    const SiteScope scope(site);
    internal::refuse_in_graph();
    internal::broadcast_values(module_.named_parameters());
    internal::broadcast_values(module_.named_buffers());
  }

  // A clone averages the gradients of its own parameters.
  DistributedDataParallel(const DistributedDataParallel& other)
      : Module<DistributedDataParallel<M>>(other),
        module_(other.module_),
        options_(other.options_),
        buckets_(this->template copy_shared<GradientBuckets>(other.buckets_, [this] {
          return GradientBuckets::make(module_.named_parameters(), options_.bucket_mb,
                                       Site::none());
        })) {}

  DistributedDataParallel(DistributedDataParallel&&) noexcept = default;
  DistributedDataParallel& operator=(const DistributedDataParallel&) = default;
  DistributedDataParallel& operator=(DistributedDataParallel&&) noexcept = default;
  ~DistributedDataParallel() = default;

  template <class... Args>
  auto forward(Args&&... args) requires std::invocable<M&, Args...> {
    if (is_grad_enabled()) buckets_->follow(module_.named_parameters());
    const bool synchronises = buckets_->is_synchronising();
    if (options_.broadcast_buffers && this->is_training() && synchronises) {
      internal::broadcast_values(module_.named_buffers());
    }
    if constexpr (nn::internal::kBeginsWithTensor<Args...>) {
      return call_with_tensor(std::forward<Args>(args)...);
    } else {
      return module_(std::forward<Args>(args)...);
    }
  }

  M& module() { return module_; }

  // While the guard lives, backward does not average gradients; a later backward averages the
  // accumulated ones:
  //   { const auto guard = ddp.no_sync(); loss_fn(ddp(x0), y0).backward(); }
  //   loss_fn(ddp(x1), y1).backward();
  // In a graph, the guard must be made in build(): to call a graph while one lives is Unsupported.
  class [[nodiscard]] NoSyncGuard {
   public:
    explicit NoSyncGuard(std::shared_ptr<GradientBuckets> buckets) : buckets_(std::move(buckets)) {
      buckets_->pause();
    }

    ~NoSyncGuard() { buckets_->resume(); }

    NoSyncGuard(const NoSyncGuard&) = delete;
    NoSyncGuard& operator=(const NoSyncGuard&) = delete;

   private:
    std::shared_ptr<GradientBuckets> buckets_;
  };

  NoSyncGuard no_sync() { return NoSyncGuard(buckets_); }

 private:
  template <class... Rest>
  auto call_with_tensor(const Tensor& x, Rest&&... rest) {
    // The call of this module has set the site.
    return module_(TensorArg(x, Site::none()), std::forward<Rest>(rest)...);
  }

  M module_;
  DistributedDataParallelOptions options_;
  std::shared_ptr<GradientBuckets> buckets_;
};

}  // namespace flow::nn::parallel
