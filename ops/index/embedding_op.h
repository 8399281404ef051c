// Definitions of embedding and its gradient.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/loss/partial_fc_op.h"

namespace flow::ops {

// Inputs: indices, weight. `padding_idx` is -1 for none. The indices may be a sample by parts.
struct EmbeddingAttrs : SampledParts {
  int64_t padding_idx = -1;
  bool scale_grad_by_freq = false;

  static constexpr auto fields() {
    return std::tuple_cat(
        SampledParts::fields(),
        std::tuple(key_field("padding_idx", &EmbeddingAttrs::padding_idx),
                   key_field("scale_grad_by_freq", &EmbeddingAttrs::scale_grad_by_freq)));
  }
};

// Inputs: indices, rows (…, D). Zeros (num_rows, D) with each row added at its index, but for the
// rows of padding_idx.
struct EmbeddingBackwardAttrs : SampledParts {
  int64_t padding_idx = -1;

  static constexpr auto fields() {
    return std::tuple_cat(
        SampledParts::fields(),
        std::tuple(key_field("padding_idx", &EmbeddingBackwardAttrs::padding_idx)));
  }
};

extern const OpDef kEmbedding, kEmbeddingBackward;

}  // namespace flow::ops
