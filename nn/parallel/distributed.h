// DistributedDataParallel: each rank trains its own copy of a module on its own data.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "nn/comm.h"
#include "nn/module.h"
#include "nn/parallel/gradient_buckets.h"

namespace flow::nn::parallel {

struct DistributedDataParallelOptions {
  double bucket_mb = 25;          // gradients are averaged in pieces of this size; the first is 1
  bool broadcast_buffers = true;  // rank 0's buffers count at each call while training
};

namespace internal {
// All ranks get rank 0's values.
void broadcast_values(const NamedTensors& tensors);
}  // namespace internal

// Wraps a module of local tensors; made and called on every rank of the world in the same order.
// Rank 0's parameters and buffers count at the start. backward averages the gradients over all
// ranks, in buckets that are sent while it goes on; a parameter that a rank did not use counts as
// zero there. Each rank has to run a backward that reaches at least one parameter.
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
    internal::broadcast_values(module_.named_parameters());
    internal::broadcast_values(module_.named_buffers());
  }

  template <class... Args>
  auto forward(Args&&... args) {
    if (options_.broadcast_buffers && this->is_training() && buckets_->is_synchronising()) {
      internal::broadcast_values(module_.named_buffers());
    }
    return module_(std::forward<Args>(args)...);
  }

  M& module() { return module_; }

  // While it lives, backward leaves gradients on their rank, to be averaged by a later one:
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
