// A gradient bucket: the gradients of several tensors in one block of memory, summed over a group
// of ranks together.
#pragma once

#include <cstdint>
#include <vector>

#include "boxing/comm/background_work.h"
#include "boxing/comm/communicator.h"
#include "boxing/route.h"
#include "core/tensor.h"

namespace flow::autograd {

// Used by one thread of its rank. Call add, open, write, then sum (or start_sum and wait);
// afterwards part() returns sums. Sums are computed elementwise in the order of the ranks, so the
// result equals that of summing each gradient separately.
class GradientBucket {
 public:
  // The size of the first bucket.
  static double first_bytes(double bucket_mb);

  // `op` says whether the ranks' gradients are summed or averaged.
  explicit GradientBucket(DType dtype, boxing::ReduceOp op = boxing::ReduceOp::kSum)
      : dtype_(dtype), op_(op) {}

  DType dtype() const { return dtype_; }

  int64_t num_elements() const { return num_elements_; }

  // The size of the bucket in bytes if `numel` elements were added.
  double bytes_with(int64_t numel) const;
  // Reserves room for `numel` elements and returns their place.
  int64_t add(int64_t numel);

  // Takes memory on the device. The sums of a bucket on a device are queued there: those of
  // start_sum() on the communication stream, so that they overlap with what is queued meanwhile.
  void open(DeviceType device = DeviceType::kCpu);
  // Returns `count` elements at `place` as a tensor of one dim.
  Tensor part(int64_t place, int64_t count) const;
  // Writes a local gradient; an undefined one writes zeros.
  void write(int64_t place, int64_t count, const Tensor& gradient) const;
  // Like write(), but for sum() only: sum() then reads a gradient in host memory where it is, if
  // possible. Places must be passed in ascending order.
  void lend(int64_t place, int64_t count, const Tensor& gradient);
  // The memory that contains the parts.
  const Ref<Storage>& storage() const;

  // Releases this object's reference to the memory; others may still hold parts of it.
  void close() { flat_ = {}; }

  // Starts the sum in the background and returns. All ranks of `group`, which must be a background
  // group, must start their sums in the same order. boxing_report() lists it as `route`.
  void start_sum(boxing::Communicator& group, const boxing::Fingerprint& what,
                 const boxing::Route& route);
  // Sums on the calling thread and blocks until the sums are complete.
  void sum(boxing::Communicator& group, const boxing::Fingerprint& what,
           const boxing::Route& route);

  // Blocks until the sum that start_sum started is complete, or queued, so that work that is queued
  // from now on may read it; rethrows its exception. Does nothing if start_sum was not called.
  void wait() { work_.wait(); }

 private:
  // Adds the bucket's own memory from the end of the last part to `end` to parts_.
  void add_own_part(int64_t end);

  DType dtype_;
  boxing::ReduceOp op_;
  int64_t num_elements_ = 0;
  Tensor flat_;
  std::vector<Tensor> lent_;
  // The parts that sum() adds up; they cover the places up to num_in_parts_.
  std::vector<boxing::Communicator::SourcePart> parts_;
  int64_t num_in_parts_ = 0;
  boxing::BackgroundWork work_;
};

}  // namespace flow::autograd
