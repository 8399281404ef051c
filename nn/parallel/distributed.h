// DistributedDataParallel: each rank trains a copy of a module on its own part of the data.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "nn/comm.h"
#include "nn/module.h"
#include "nn/parallel/gradient_buckets.h"

namespace flow::nn::parallel {

struct DistributedDataParallelOptions {
  // Size of the buckets in which gradients are averaged; the first bucket is 1 MB.
  double bucket_mb = 25;
  bool broadcast_buffers = true;  // broadcast rank 0's buffers before each training call
};

namespace internal {
// Overwrites the tensors on all ranks with the values of rank 0.
void broadcast_values(const NamedTensors& tensors);
}  // namespace internal

// Wraps a module of local tensors (Li et al. 2020, "PyTorch Distributed"). All ranks of the world
// construct and call it in the same order. At construction all ranks take the parameters and
// buffers of rank 0. backward averages the gradients over all ranks; the buckets are sent while
// backward is still running. A parameter that a rank did not use counts as a gradient of 0 there.
// On every rank backward must reach at least one parameter. Graphs do not support it: a call in
// build(), and a backward in build() that reaches the parameters, raise Unsupported.
//
//   flow::nn::parallel::DistributedDataParallel ddp(model);
//   loss_fn(ddp(x[flow::env::rank()]), y[flow::env::rank()]).backward();
template <class M>
class DistributedDataParallel : public Module<DistributedDataParallel<M>> {
 public:
  explicit DistributedDataParallel(M module, DistributedDataParallelOptions options = {})
      : module_(this->register_module("module", std::move(module))),
        options_(options),
        buckets_(GradientBuckets::make(module_.named_parameters(), options.bucket_mb)) {
    internal::refuse_in_graph();
    internal::broadcast_values(module_.named_parameters());
    internal::broadcast_values(module_.named_buffers());
  }

  template <class... Args>
  auto forward(Args&&... args) {
    internal::refuse_in_graph();
    if (options_.broadcast_buffers && this->is_training() && buckets_->is_synchronising()) {
      internal::broadcast_values(module_.named_buffers());
    }
    return module_(std::forward<Args>(args)...);
  }

  M& module() { return module_; }

  // While the guard lives, backward does not average gradients; a later backward averages the
  // accumulated ones:
  //   { const auto guard = ddp.no_sync(); loss_fn(ddp(x0), y0).backward(); }
  //   loss_fn(ddp(x1), y1).backward();
  class [[nodiscard]] NoSyncGuard {
   public:
    explicit NoSyncGuard(std::shared_ptr<GradientBuckets> buckets)
        : buckets_(std::move(buckets)), outer_(buckets_->is_synchronising()) {
      buckets_->set_synchronising(false);
    }

    ~NoSyncGuard() { buckets_->set_synchronising(outer_); }

    NoSyncGuard(const NoSyncGuard&) = delete;
    NoSyncGuard& operator=(const NoSyncGuard&) = delete;

   private:
    std::shared_ptr<GradientBuckets> buckets_;
    bool outer_;
  };

  NoSyncGuard no_sync() { return NoSyncGuard(buckets_); }

 private:
  M module_;
  DistributedDataParallelOptions options_;
  std::shared_ptr<GradientBuckets> buckets_;
};

}  // namespace flow::nn::parallel
