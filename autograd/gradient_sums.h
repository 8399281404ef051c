// Sums the gradients of global leaves over their replicas while backward continues.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/gradient_bucket.h"
#include "core/site.h"
#include "core/tensor.h"

namespace flow::autograd {

// Belongs to one run of backward. Takes the gradients that must be summed over ranks, P(sum) -> B,
// collects those of one dtype and group of ranks in buckets, and sums each full bucket on the
// communication thread. Logical shapes and layouts determine the contents of a bucket and when it
// is full, so all ranks start the same sums in the same order. If the object is destroyed early, it
// waits for the running sums and discards them.
class GradientSums {
 public:
  // With `bucket_mb` 0, or in a trace, take() takes no gradient, but still redistributes it until
  // it differs from the leaf's layout in sums only.
  GradientSums(double bucket_mb, Site site) : bucket_mb_(bucket_mb), site_(site) {}

  // Takes the gradient of `leaf`, which must be complete on this rank. Returns false if it did not
  // take it.
  bool take(const Tensor& leaf, Tensor& gradient);

  struct Summed {
    Tensor leaf;
    Tensor gradient;  // in the leaf's layout; no other tensor uses its part of the memory
  };

  // Sums the remaining gradients, waits for all sums and returns them.
  std::vector<Summed> finish();

 private:
  struct Entry {
    Tensor leaf;
    Tensor gradient;
    int64_t place;
  };

  struct Bucket {
    GradientBucket memory;
    int64_t most_elements = 0;  // on the rank with the most
    std::vector<Entry> entries = {};
  };

  // The gradients of one dtype on one placement that are partial along the same axes.
  struct Stream {
    Placement placement;
    uint32_t axes;
    double limit;  // size in bytes at which the current bucket is full
    Bucket filling;
  };

  enum class Where : uint8_t { kBackground, kHere };

  Stream& stream_for(const TensorMeta& gradient, uint32_t axes);
  void launch(Stream& stream, Where where);

  double bucket_mb_;
  Site site_;
  std::vector<Stream> streams_;
  std::vector<Bucket> launched_;
};

}  // namespace flow::autograd
