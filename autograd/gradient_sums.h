// Summing the gradients of global leaves over their replicas while backward goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "autograd/gradient_bucket.h"
#include "core/site.h"
#include "core/tensor.h"

namespace flow::autograd {

// Of one run of backward. Takes the gradients that have to be added up over ranks, P(sum) -> B,
// gathers those of one dtype and group of ranks in buckets, and sums each full bucket on the
// communication thread. What a bucket holds and when it is full follow from logical shapes and
// layouts, so that all ranks start the same sums in the same order. Destroyed early, it waits for
// the sums under way and drops them.
class GradientSums {
 public:
  // `bucket_mb` 0, or a trace: takes nothing, but brings gradients to where they differ from their
  // leaf in sums only, as it does with those it takes.
  GradientSums(double bucket_mb, Site site) : bucket_mb_(bucket_mb), site_(site) {}

  // Whether it took the gradient, complete on this rank, of `leaf`.
  bool take(const Tensor& leaf, Tensor& gradient);

  struct Summed {
    Tensor leaf;
    Tensor gradient;  // in the leaf's layout; nobody else uses its part of the memory
  };

  // Sums what is left and waits for the rest.
  std::vector<Summed> finish();

 private:
  struct Entry {
    Tensor leaf;
    Tensor gradient;
    int64_t place;
  };

  struct Bucket {
    GradientBucket memory;
    int64_t most_elements = 0;  // of any rank
    std::vector<Entry> entries = {};
  };

  // Gradients of one dtype on one placement that are partial along the same axes.
  struct Stream {
    Placement placement;
    uint32_t axes;
    double limit;  // of the bucket being filled, in bytes
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
