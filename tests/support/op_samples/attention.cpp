#include "ops/linear/attention.h"

#include "core/dispatch.h"
#include "ops/linear/attention_op.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

template <bool kCausal>
void attend(const Inputs& x) {
  scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = kCausal});
}

// (dy, q, k, v, y, logsumexp)
template <bool kCausal>
void backward(const Inputs& x) {
  dispatch_multi<3>(ops::kAttentionBackward, {&x[0], &x[1], &x[2], &x[3], &x[4], &x[5]},
                    ops::AttentionAttrs{kCausal, 0.5}, Site::here());
}

// The sums of 16-bit operands are float32, which a sample of a single dtype cannot provide.
constexpr DTypeSet kWideFloats = only(DType::kFloat32) | only(DType::kFloat64);

}  // namespace

Samples attention_samples() {
  return {
      {"attention", {in({5, 3}), in({2, 3}), in({2, 2})}, kFloats, attend<false>},
      {"attention", {in({2, 5, 3}), in({2, 5, 3}), in({2, 5, 2})}, kFloats, attend<true>, "causal"},
      {"attention", {in({2, 3}), in({5, 3}), in({5, 2})}, kFloats, attend<true>, "causal, few"},
      {"attention", {in({5, 3}), in({2, 3}), in({2, 2})}, kFloats, attend<true>, "causal, more"},
      {.op = "attention",
       .inputs = {in({3, 150, 20}), in({3, 150, 20}), in({3, 150, 24})},
       .dtypes = kFloats,
       .call = attend<true>,
       .label = "large",
       .only_kernels = true},
      {"attention_backward",
       {in({5, 2}), in({5, 3}), in({2, 3}), in({2, 2}), in({5, 2}), in({5}, 1, 3)},
       kWideFloats,
       backward<false>},
      {"attention_backward",
       {in({2, 5, 2}), in({2, 5, 3}), in({2, 5, 3}), in({2, 5, 2}), in({2, 5, 2}),
        in({2, 5}, 1, 3)},
       kWideFloats,
       backward<true>,
       "causal"},
      {.op = "attention_backward",
       .inputs = {in({3, 150, 24}), in({3, 150, 20}), in({3, 150, 20}), in({3, 150, 24}),
                  in({3, 150, 24}), in({3, 150}, 4, 5)},
       .dtypes = kWideFloats,
       .call = backward<true>,
       .label = "large",
       .only_kernels = true},
  };
}

}  // namespace flow::contract
