// Definition of the sampling of classes.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// Of `num_rows` rows in `num_parts` balanced parts `num_sample` are taken: part p of the sample
// lies in part p of the rows. By default nothing is known of a sample.
struct SampledParts {
  int64_t num_rows = 0;
  int64_t num_sample = 0;
  int64_t num_parts = 0;

  static constexpr auto fields() {
    return std::tuple(key_field("num_rows", &SampledParts::num_rows),
                      key_field("num_sample", &SampledParts::num_sample),
                      key_field("num_parts", &SampledParts::num_parts));
  }

  // Whether ranks that cut `rows` of the rows and `samples` of the sample evenly, what outer
  // placement axes leave of them, hold the same parts of both.
  bool held_alike(int64_t rows, int64_t samples, int64_t num_ranks) const;
};

// weight, label -> mapped_label, sampled_label. Of the weight only the layout counts.
extern const OpDef kPartialFcSample;

}  // namespace flow::ops
