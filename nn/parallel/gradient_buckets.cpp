#include "nn/parallel/gradient_buckets.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "core/context.h"
#include "core/error.h"
#include "nn/comm.h"
#include "ops/binary.h"
#include "ops/creation.h"

namespace flow::nn::parallel {

// A bucket's memory holds the gradients one after the other, then for each of them how many ranks
// had one: a parameter that a rank did not use counts as zero there, one that nobody used keeps no
// gradient.
struct GradientBuckets::Bucket {
  DType dtype = DType::kFloat32;
  int64_t num_elements = 0;
  std::vector<size_t> parameters;
  size_t num_missing = 0;  // of the backward under way
  Tensor flat;
  std::optional<comm::Work> work;
};

struct GradientBuckets::Place {
  size_t bucket = 0;
  int64_t offset = 0;
};

namespace {

constexpr double kBytesPerMb = 1 << 20;
// Small, so that the first transfer starts early.
constexpr double kFirstBucketMb = 1;

}  // namespace

GradientBuckets::GradientBuckets() = default;

std::shared_ptr<GradientBuckets> GradientBuckets::make(const NamedTensors& parameters,
                                                       double bucket_mb) {
  if (!(bucket_mb > 0)) {
    throw InvalidArgument(str("[ddp] bucket_mb must be positive; received ", bucket_mb));
  }
  const auto made = std::make_shared<GradientBuckets>();
  for (const auto& [name, parameter] : parameters) {
    if (parameter.is_global()) {
      throw InvalidArgument(str("[ddp] parameters are local tensors, a copy on each rank; ", name,
                                " is ", parameter.meta(),
                                "; global tensors train in parallel without this wrapper"));
    }
    if (parameter.requires_grad()) made->parameters_.push_back(parameter);
  }
  made->places_.resize(made->parameters_.size());
  made->has_gradient_.resize(made->parameters_.size());
  double limit = std::min(kFirstBucketMb, bucket_mb) * kBytesPerMb;
  for (size_t i = made->parameters_.size(); i-- > 0;) {
    const Tensor& parameter = made->parameters_[i];
    const auto bytes_with = [&](const Bucket& bucket) {
      return static_cast<double>(bucket.num_elements + parameter.numel()) *
             static_cast<double>(parameter.element_size());
    };
    auto& buckets = made->buckets_;
    if (buckets.empty() || buckets.back().dtype != parameter.dtype() ||
        bytes_with(buckets.back()) > limit) {
      if (!buckets.empty()) limit = bucket_mb * kBytesPerMb;
      buckets.emplace_back().dtype = parameter.dtype();
    }
    made->places_[i] = {buckets.size() - 1, buckets.back().num_elements};
    buckets.back().num_elements += parameter.numel();
    buckets.back().parameters.push_back(i);
  }
  made->add_hooks();
  return made;
}

GradientBuckets::~GradientBuckets() {
  for (size_t i = 0; i < hooks_.size(); ++i)
    parameters_[i].remove_hook(hooks_[i]);
}

// The parameters keep their hooks, so these may not keep the buckets.
void GradientBuckets::add_hooks() {
  const std::weak_ptr<GradientBuckets> weak = weak_from_this();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(register_post_accumulate_grad_hook(parameters_[i], [weak, i](const Tensor&) {
      if (const auto self = weak.lock()) self->note_gradient(i);
    }));
  }
}

std::vector<size_t> GradientBuckets::bucket_sizes() const {
  std::vector<size_t> sizes;
  for (const Bucket& bucket : buckets_)
    sizes.push_back(bucket.parameters.size());
  return sizes;
}

void GradientBuckets::note_gradient(size_t parameter) {
  if (!is_synchronising_) return;
  if (!is_running_) {
    is_running_ = true;
    num_launched_ = 0;
    std::fill(has_gradient_.begin(), has_gradient_.end(), false);
    for (Bucket& bucket : buckets_)
      bucket.num_missing = bucket.parameters.size();
    call_after_backward([self = shared_from_this()] { self->finish(); });
  }
  if (has_gradient_[parameter]) return;
  has_gradient_[parameter] = true;
  --buckets_[places_[parameter].bucket].num_missing;
  launch_ready();
}

// In one order on all ranks, whatever the order in which gradients arrive.
void GradientBuckets::launch_ready() {
  while (num_launched_ < buckets_.size() && buckets_[num_launched_].num_missing == 0)
    launch(buckets_[num_launched_++]);
}

void GradientBuckets::launch(Bucket& bucket) {
  const NoGradGuard no_grad;
  const auto num_parameters = static_cast<int64_t>(bucket.parameters.size());
  bucket.flat = empty({bucket.num_elements + num_parameters}, {.dtype = bucket.dtype});
  for (int64_t k = 0; k < num_parameters; ++k) {
    const size_t i = bucket.parameters[static_cast<size_t>(k)];
    const Tensor part = bucket.flat.narrow(0, places_[i].offset, parameters_[i].numel());
    const Tensor grad = parameters_[i].grad();
    // An older gradient counts as well, where this backward gave none.
    if (grad.defined()) {
      part.copy_(grad.reshape({-1}));
    } else {
      part.zero_();
    }
    bucket.flat.narrow(0, bucket.num_elements + k, 1).fill_(grad.defined() ? 1 : 0);
  }
  bucket.work = comm::all_reduce_async_(bucket.flat);
}

void GradientBuckets::finish() {
  is_running_ = false;
  while (num_launched_ < buckets_.size())
    launch(buckets_[num_launched_++]);
  const NoGradGuard no_grad;
  const auto num_ranks = static_cast<double>(env::world_size());
  for (Bucket& bucket : buckets_) {
    std::exchange(bucket.work, std::nullopt)->wait();
    const Tensor flat = std::exchange(bucket.flat, Tensor());
    const Tensor mean = flat.narrow(0, 0, bucket.num_elements).div_(num_ranks);
    const auto num_users =
        flat.narrow(0, bucket.num_elements, flat.numel() - bucket.num_elements).to_vector<double>();
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const size_t i = bucket.parameters[k];
      if (num_users[k] == 0) continue;
      const Tensor& parameter = parameters_[i];
      parameter.set_grad(
          mean.narrow(0, places_[i].offset, parameter.numel()).view(parameter.shape()));
    }
  }
}

}  // namespace flow::nn::parallel
