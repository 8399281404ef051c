#include "autograd/gradient_bucket.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "boxing/comm/comm_thread.h"
#include "core/context.h"
#include "core/tensor_impl.h"
#include "ops/creation.h"

namespace flow::autograd {

namespace {

constexpr double kFirstMb = 1;

void sum_in_place(const Tensor& flat, boxing::Communicator& group, const boxing::Fingerprint& what,
                  const GradientBucket::Done& done) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::byte* const data = flat.impl().data();
  group.all_reduce(data, data, flat.numel(), flat.dtype(), boxing::ReduceOp::kSum, what);
  if (done) done(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
}

}  // namespace

double GradientBucket::first_bytes(double bucket_mb) {
  return std::min(kFirstMb, bucket_mb) * kBytesPerMb;
}

GradientBucket::~GradientBucket() {
  if (work_.valid()) work_.wait();
}

double GradientBucket::bytes_with(int64_t numel) const {
  return static_cast<double>(num_elements_ + numel) * static_cast<double>(dtype_size(dtype_));
}

int64_t GradientBucket::add(int64_t numel) {
  return std::exchange(num_elements_, num_elements_ + numel);
}

void GradientBucket::open() {
  flat_ = empty({num_elements_}, {.dtype = dtype_});
}

Tensor GradientBucket::part(int64_t place, int64_t count) const {
  return flat_.narrow(0, place, count);
}

void GradientBucket::write(int64_t place, int64_t count, const Tensor& gradient) const {
  if (count == 0) return;
  if (gradient.defined()) {
    part(place, count).copy_(gradient.reshape({-1}));
  } else {
    part(place, count).zero_();
  }
}

const Ref<Storage>& GradientBucket::storage() const {
  return flat_.impl().storage;
}

void GradientBucket::start_sum(boxing::Communicator& group, const boxing::Fingerprint& what,
                               Done done) {
  work_ = boxing::comm_thread(*thread_state().context)
              .submit([&group, flat = flat_, what, done = std::move(done)] {
                sum_in_place(flat, group, what, done);
              });
}

void GradientBucket::sum(boxing::Communicator& group, const boxing::Fingerprint& what,
                         const Done& done) {
  sum_in_place(flat_, group, what, done);
}

void GradientBucket::wait() {
  if (work_.valid()) work_.get();
}

}  // namespace flow::autograd
