#include "autograd/gradient_bucket.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "autograd/bucket_size.h"
#include "boxing/comm/copy_bytes.h"
#include "boxing/comm/device_collectives.h"
#include "boxing/transfer_log.h"
#include "core/context.h"
#include "core/tensor_impl.h"
#include "ops/creation/creation.h"

namespace flow::autograd {

namespace {

using SourcePart = boxing::Communicator::SourcePart;

void sum_parts(std::span<const SourcePart> parts, const Tensor& flat, boxing::ReduceOp op,
               boxing::Communicator& group, const boxing::Fingerprint& what,
               const boxing::Route& route, boxing::TransferLog& log) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::byte* const sums = flat.impl().data();
  if (flat.device() == DeviceType::kCpu) {
    group.all_reduce_parts(parts, sums, flat.dtype(), op, what);
  } else {
    boxing::device_collectives_for(*thread_state().context, group)
        .all_reduce(sums, sums, flat.numel(), flat.dtype(), op, what);
  }
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  if (!route.steps.empty()) log.add(what.site, route, took.count());
}

boxing::TransferLog& log_here() {
  return thread_state().context->slot<boxing::TransferLog>();
}

}  // namespace

double GradientBucket::first_bytes(double bucket_mb) {
  return std::min(kFirstBucketMb, bucket_mb) * kBytesPerMb;
}

double GradientBucket::bytes_with(int64_t numel) const {
  return static_cast<double>(num_elements_ + numel) * static_cast<double>(dtype_size(dtype_));
}

int64_t GradientBucket::add(int64_t numel) {
  return std::exchange(num_elements_, num_elements_ + numel);
}

void GradientBucket::open(DeviceType device) {
  flat_ =
      empty({num_elements_}, {.dtype = dtype_, .device = std::string(device_type_name(device))});
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

void GradientBucket::lend(int64_t place, int64_t count, const Tensor& gradient) {
  if (!gradient.defined() || !gradient.meta().is_contiguous || gradient.dtype() != dtype_ ||
      gradient.device() != DeviceType::kCpu || flat_.device() != DeviceType::kCpu) {
    return write(place, count, gradient);
  }
  add_own_part(place);
  parts_.push_back({gradient.impl().data(), count});
  lent_.push_back(gradient);
  num_in_parts_ = place + count;
}

void GradientBucket::add_own_part(int64_t end) {
  const int64_t begin = std::exchange(num_in_parts_, end);
  if (begin < end) {
    parts_.push_back({flat_.impl().data() + boxing::bytes_of(begin, dtype_), end - begin});
  }
}

const Ref<Storage>& GradientBucket::storage() const {
  return flat_.impl().storage;
}

void GradientBucket::start_sum(boxing::Communicator& group, const boxing::Fingerprint& what,
                               const boxing::Route& route) {
  work_ = boxing::BackgroundWork(*thread_state().context, flat_.device(),
                                 [&group, flat = flat_, op = op_, what, route, &log = log_here()] {
                                   const SourcePart all{flat.impl().data(), flat.numel()};
                                   sum_parts({&all, 1}, flat, op, group, what, route, log);
                                 });
}

void GradientBucket::sum(boxing::Communicator& group, const boxing::Fingerprint& what,
                         const boxing::Route& route) {
  add_own_part(num_elements_);
  sum_parts(parts_, flat_, op_, group, what, route, log_here());
  parts_.clear();
  lent_.clear();
  num_in_parts_ = 0;
}

}  // namespace flow::autograd
