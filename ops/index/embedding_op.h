// Definitions of embedding and its gradient.
#pragma once

#include <tuple>

#include "core/op.h"
#include "ops/loss/partial_fc_op.h"

namespace flow::ops {

// Inputs: indices, weight. A `padding_idx` of -1 means none. The indices may be a sample that was
// taken part by part (SampledParts).
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

// Inputs: indices, rows (…, D). The result is zeros (num_rows, D) to which each row is added at its
// index, except rows whose index is padding_idx.
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
