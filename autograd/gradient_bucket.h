// Gradients of several tensors in one piece of memory, summed over a group of ranks in one go.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <vector>

#include "boxing/comm/communicator.h"
#include "core/tensor.h"

namespace flow::autograd {

// Confined to one thread of its rank. Used as: add, open, write, then sum (or start_sum and wait);
// afterwards part() holds sums. Adding values elementwise in the order of the ranks, it gives what
// summing the gradients one by one would.
class GradientBucket {
 public:
  static constexpr double kBytesPerMb = 1 << 20;
  static constexpr double kDefaultMb = 25;

  // Of the first bucket: small, so that the first transfer starts early.
  static double first_bytes(double bucket_mb);

  // What the ranks' gradients become: their sum or their mean.
  explicit GradientBucket(DType dtype, boxing::ReduceOp op = boxing::ReduceOp::kSum)
      : dtype_(dtype), op_(op) {}

  // Waits for a sum under way, whose outcome nobody asks for any more.
  ~GradientBucket();
  GradientBucket(GradientBucket&&) = default;
  GradientBucket& operator=(GradientBucket&&) = default;

  DType dtype() const { return dtype_; }

  int64_t num_elements() const { return num_elements_; }

  // Bytes with `numel` more elements.
  double bytes_with(int64_t numel) const;
  // Room for `numel` elements; their place.
  int64_t add(int64_t numel);

  void open();
  // `count` elements at `place`, a tensor of one dim.
  Tensor part(int64_t place, int64_t count) const;
  // A local gradient; zeros for an undefined one.
  void write(int64_t place, int64_t count, const Tensor& gradient) const;
  // As write(), for sum() only: where it can, that reads the gradient in its place. Places ascend.
  void lend(int64_t place, int64_t count, const Tensor& gradient);
  // What parts lie in.
  const Ref<Storage>& storage() const;

  // Lets go of the memory; others may hold parts of it.
  void close() { flat_ = {}; }

  using Done = std::function<void(double took_us)>;

  // In the background, in the order in which the ranks of `group` (a background one) start; `done`
  // is called on the communication thread.
  void start_sum(boxing::Communicator& group, const boxing::Fingerprint& what, Done done = {});
  // On the calling thread.
  void sum(boxing::Communicator& group, const boxing::Fingerprint& what, const Done& done = {});
  // For start_sum, if it was called; throws what went wrong.
  void wait();

 private:
  // What lies in the bucket itself from the last part up to `end`.
  void add_own_part(int64_t end);

  DType dtype_;
  boxing::ReduceOp op_;
  int64_t num_elements_ = 0;
  Tensor flat_;
  std::vector<Tensor> lent_;
  std::vector<boxing::Communicator::SourcePart> parts_;  // what sum() adds up, up to num_in_parts_
  int64_t num_in_parts_ = 0;
  std::future<void> work_;
};

}  // namespace flow::autograd
