// Attention.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct AttentionOptions {
  Tensor attn_mask = {};   // bool: true keys count; floating: added to the scores; broadcasts
  double dropout_p = 0;    // dropout of the weights, always applied: pass 0 at inference
  bool is_causal = false;  // query i sees keys 0 ... i; not together with attn_mask
  std::optional<double> scale = std::nullopt;  // unset: 1 / sqrt(D)
  // Allows key and value to have fewer heads (dim -3) than query; each of them then serves several
  // consecutive query heads.
  bool enable_gqa = false;
};

// Scaled dot-product attention (Vaswani et al. 2017): y = softmax(query key^T scale + mask) value.
// query: (..., T, D), key: (..., S, D), value: (..., S, E) -> (..., T, E); leading dims broadcast.
// Without mask and dropout, the full matrix of scores is never stored. A query that sees no key
// gives zeros and has no gradient.
//
//   Tensor y = scaled_dot_product_attention(q, k, v, {.is_causal = true});
Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key,
                                    const TensorArg& value, const AttentionOptions& options = {});

}  // namespace flow
