// The sizes of the buckets in which gradients are summed over ranks, in eager steps, under
// DistributedDataParallel and in compiled steps.
#pragma once

namespace flow::autograd {

inline constexpr double kBucketMb = 25;
// The first bucket is small, so that the first transfer starts early.
inline constexpr double kFirstBucketMb = 1;
inline constexpr double kBytesPerMb = 1 << 20;

}  // namespace flow::autograd
