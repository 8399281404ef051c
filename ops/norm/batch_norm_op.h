// Op definitions of batch_norm. Weight and bias are optional and float32 for 16-bit inputs. moments
// are (2, C) float64: mean and biased variance of each channel. If the batch is normalised in
// balanced parts of dim 0, each by its own statistics, moments are (2 parts, C), in which the two
// rows of a part follow each other.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct BatchNormAttrs {
  double eps = 1e-5;
  int64_t parts = 1;
  int64_t samples = 0;  // of all parts

  static constexpr auto fields() {
    return std::tuple(value_field("eps", &BatchNormAttrs::eps),
                      key_field("parts", &BatchNormAttrs::parts),
                      key_field("samples", &BatchNormAttrs::samples));
  }
};

struct BatchNormHardtanhAttrs {
  double eps = 1e-5;
  double min_val = -1;
  double max_val = 1;

  static constexpr auto fields() {
    return std::tuple(key_field("eps", &BatchNormHardtanhAttrs::eps),
                      key_field("min_val", &BatchNormHardtanhAttrs::min_val),
                      key_field("max_val", &BatchNormHardtanhAttrs::max_val));
  }
};

struct RunningStatsAttrs {
  double momentum = 0.1;
  int64_t count = 2;  // logical elements of a channel

  static constexpr auto fields() {
    return std::tuple(value_field("momentum", &RunningStatsAttrs::momentum),
                      value_field("count", &RunningStatsAttrs::count));
  }
};

// Computes statistics and result in one op, for tensors whose batch is not split. Global tensors
// are normalised through ops/norm/channel_op.h, whose sums may be partial.
extern const OpDef kBatchNorm;          // (x, weight, bias) -> y, moments
extern const OpDef kBatchNormBackward;  // (dy, x, moments, weight) -> dx, dweight, dbias
// hardtanh of batch_norm, of one part. Only the compiler of graphs makes calls of these two
// (graph/passes/fuse_batch_norm.h).
extern const OpDef kBatchNormHardtanh;          // (x, weight, bias) -> y, moments
extern const OpDef kBatchNormHardtanhBackward;  // (dy, y, x, moments, weight) -> dx, dweight, dbias
// Writes running_mean and running_var: (mean, var, moments).
extern const OpDef kUpdateRunningStats;
// Adds one to a scalar int64 in place, for each batch that was normalised.
extern const OpDef kCountBatch;

}  // namespace flow::ops
