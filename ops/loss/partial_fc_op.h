// Definition of the sampling of classes.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// `num_sample` of `num_rows` rows are taken in `num_parts` balanced parts: part p of the sample is
// taken from part p of the rows. The default values mean that nothing is known about the sample.
struct SampledParts {
  int64_t num_rows = 0;
  int64_t num_sample = 0;
  int64_t num_parts = 0;

  static constexpr auto fields() {
    return std::tuple(key_field("num_rows", &SampledParts::num_rows),
                      key_field("num_sample", &SampledParts::num_sample),
                      key_field("num_parts", &SampledParts::num_parts));
  }

  // Returns true if ranks that evenly split `rows` of the rows and `samples` of the sample (the
  // counts that outer placement axes leave) hold the same parts of both.
  bool held_alike(int64_t rows, int64_t samples, int64_t num_ranks) const;
};

// (weight, label) -> mapped_label, sampled_label. Only the layout of the weight is used.
extern const OpDef kPartialFcSample;

}  // namespace flow::ops
