// Mixed precision: matrix products in 16 bits, what needs range or sums many numbers in float32
// (Micikevicius et al. 2018).
#pragma once

#include <memory>

#include "core/dtype.h"
#include "core/site.h"

namespace flow {

namespace autograd {
struct CastCache;
}

struct AutocastOptions {
  bool enabled = true;        // false: calls take their inputs as they are again
  bool cache_enabled = true;  // keep the casts of weights until the outermost guard ends
};

// While it lives, calls of this thread cast their floating inputs by the rule of their op
// (OpDef::autocast), with PyTorch's lists for CUDA, on every device:
//   to `dtype`   matmul, bmm, addmm, linear, conv*, attention, recurrent cells, prelu, einsum
//   to float32   softmax, layer_norm, rms_norm, group_norm, losses, exp, log, pow, rsqrt, softplus,
//                sum, prod, cumsum, cumprod, norm, logsumexp, tan, sinh, cosh, asin, acos
//   to the widest of their inputs   scatter_add
// All others take what they are given and promote mixtures, as does an op that writes in place;
// float64 is left alone. Casts are recorded ops, so gradients arrive in the dtypes of the leaves.
//
//   Tensor loss;
//   {
//     const flow::AutocastGuard autocast(flow::bfloat16);
//     loss = cross_entropy(model(x), target);
//   }
//   loss.backward();
//
// backward() runs outside: the gradients of an op have the dtypes of its forward. recompute() and
// the backward of a custom function run under the autocast of their forward. Throws InvalidArgument
// unless `dtype` is bfloat16 or float16. Guards nest; each is used on one thread.
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
  std::unique_ptr<autograd::CastCache> own_cache_;  // of a guard that starts one
};

// The short name: flow::autocast mixed_precision(flow::bfloat16);
using autocast = AutocastGuard;

bool is_autocast_enabled();
// Of the innermost enabled guard; float32 where autocast is off.
DType autocast_dtype();

namespace autograd {

// Forgets the casts of weights: a trace begins or ends, or the weights were updated.
void drop_cached_casts();

// Gives this thread the autocast of an earlier call for a scope.
class [[nodiscard]] AutocastScope {
 public:
  explicit AutocastScope(const Autocaster* autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const Autocaster* outer_;
};

}  // namespace autograd

}  // namespace flow
