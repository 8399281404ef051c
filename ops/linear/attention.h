// Attention.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow {

struct AttentionOptions {
  Tensor attn_mask = {};   // bool: true takes part; floating: added to the scores; broadcasts
  double dropout_p = 0;    // of the weights; always applied, so pass 0 when not training
  bool is_causal = false;  // query i sees keys 0 ... i; not together with attn_mask
  std::optional<double> scale = std::nullopt;  // unset: 1 / sqrt(D)
  // Key and value may have fewer heads, dim -3: each then serves as many queries in a row.
  bool enable_gqa = false;
};

// y = softmax(query key^T scale + mask) value; query: (..., T, D), key: (..., S, D), value:
// (..., S, E) -> (..., T, E), leading dims broadcast. Without mask and dropout the scores are never
// stored as a whole. A query that sees no key gives zeros and has no gradient.
//
//   Tensor y = scaled_dot_product_attention(q, k, v, {.is_causal = true});
Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key,
                                    const TensorArg& value, const AttentionOptions& options = {});

}  // namespace flow
