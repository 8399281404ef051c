// Op definitions of attention, for its kernels. Operands are (batch..., rows, width) with the same
// batch dims; logsumexp is (batch..., T) and float32 for 16-bit operands.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct AttentionAttrs {
  bool is_causal = false;
  double scale = 1;

  static constexpr auto fields() {
    return std::tuple(key_field("is_causal", &AttentionAttrs::is_causal),
                      value_field("scale", &AttentionAttrs::scale));
  }
};

extern const OpDef kAttention;          // (q, k, v) -> y, logsumexp of the scores
extern const OpDef kAttentionBackward;  // (dy, q, k, v, y, logsumexp) -> dq, dk, dv

}  // namespace flow::ops
