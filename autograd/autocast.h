// Mixed precision (Micikevicius et al. 2018): matrix products run in 16 bits; ops that need a wide
// range or sum many numbers run in float32.
#pragma once

#include <memory>

#include "core/dtype.h"
#include "core/site.h"

namespace flow {

namespace autograd {
struct CastCache;
}

struct AutocastOptions {
  bool enabled = true;        // false: turns autocast off inside an enclosing guard
  bool cache_enabled = true;  // keep the casts of weights until the outermost guard ends
};

// While an object of this class exists, calls of this thread cast their floating inputs by the rule
// of their op (OpDef::autocast). The rules are PyTorch's lists for CUDA, on every device:
//   to `dtype`   matmul, bmm, addmm, linear, conv*, attention, recurrent cells, prelu, einsum
//   to float32   softmax, layer_norm, rms_norm, group_norm, losses, exp, log, pow, rsqrt, softplus,
//                sum, prod, cumsum, cumprod, norm, logsumexp, tan, sinh, cosh, asin, acos,
//                interpolate, distances
//   to the widest of their inputs   scatter_add, index_put, dot, tensordot, bilinear, grid_sample
// All other ops use their inputs unchanged and promote mixed dtypes; so does an op that writes in
// place. float64 is never cast. Casts are recorded ops, so gradients arrive in the dtypes of the
// leaves.
//
//   Tensor loss;
//   {
//     const flow::AutocastGuard autocast(flow::bfloat16);
//     loss = cross_entropy(model(x), target);
//   }
//   loss.backward();
//
// Call backward() outside the guard: the gradients of an op have the dtypes of its forward.
// recompute() and the backward of a custom function run under the autocast of their forward. Throws
// InvalidArgument unless `dtype` is bfloat16 or float16. Guards nest; a guard must be destroyed on
// the thread that made it.
class [[nodiscard]] AutocastGuard {
 public:
  explicit AutocastGuard(DType dtype = bfloat16, const AutocastOptions& options = {},
                         Site site = Site::here());
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  const class Autocaster* outer_;
  autograd::CastCache* outer_cache_;
  std::unique_ptr<autograd::CastCache> own_cache_;  // of a guard that starts a cache
};

// The short name, as in PyTorch: flow::autocast mixed_precision(flow::bfloat16);
using autocast = AutocastGuard;

bool is_autocast_enabled();
// The dtype of the innermost enabled guard; float32 if autocast is off.
DType autocast_dtype();

namespace autograd {

// Deletes the cached casts of weights. Call it when a trace begins or ends, or after the weights
// were updated.
void drop_cached_casts();

}  // namespace autograd

}  // namespace flow
