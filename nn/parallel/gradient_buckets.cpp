#include "nn/parallel/gradient_buckets.h"

#include <algorithm>
#include <string>
#include <utility>

#include "autograd/bucket_size.h"
#include "autograd/gradient_bucket.h"
#include "autograd/hooks.h"
#include "boxing/comm/communicator.h"
#include "boxing/layout.h"
#include "boxing/planner.h"
#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/module_reads.h"
#include "nn/parallel/traced_ranks.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"

namespace flow::nn::parallel {

using autograd::GradientBucket;

// A bucket's memory holds the gradients one after another, followed by the share of ranks that had
// a gradient, for each of them. A parameter that a rank did not use counts as zero there; a
// parameter that no rank used keeps no gradient. The memory is on the device of the parameters. On
// devices other than the CPU the shares are not used, because reading them would wait for backward:
// the ranks then tell each other in host memory (find_used).
struct GradientBuckets::Bucket {
  GradientBucket memory;
  std::vector<size_t> parameters = {};
  int64_t counts = 0;                    // offset of the shares
  size_t num_missing = 0;                // gradients that the running backward has not produced yet
  DeviceType device = DeviceType::kCpu;  // of its memory in the running backward
};

struct GradientBuckets::Place {
  size_t bucket = 0;
  int64_t offset = 0;
  int64_t numel = 0;
};

namespace {
Tensor to_device_of(const Tensor& parameter, const Tensor& x) {
  return x.device() == parameter.device() ? x : to_device(x, parameter.device());
}
}  // namespace

GradientBuckets::GradientBuckets(double bucket_mb) : bucket_mb_(bucket_mb) {}

std::shared_ptr<GradientBuckets> GradientBuckets::make(const NamedTensors& parameters,
                                                       double bucket_mb, Site site) {
  const SiteScope scope(site);
  if (!(bucket_mb > 0)) {
    throw InvalidArgument(str("[ddp] bucket_mb must be positive; received ", bucket_mb));
  }
  auto made = std::make_shared<GradientBuckets>(bucket_mb);
  made->follow(parameters);
  return made;
}

GradientBuckets::~GradientBuckets() {
  for (size_t i = 0; i < hooks_.size(); ++i)
    parameters_[i].remove_hook(hooks_[i]);
}

void GradientBuckets::follow(const NamedTensors& parameters) {
  const size_t num_known = parameters_.size();
  for (const auto& [name, parameter] : parameters) {
    if (parameter.is_global()) {
      throw InvalidArgument(
          str("[ddp] parameters must be local tensors, a copy on each rank; received ", name, " ",
              parameter.meta(), "; train global tensors without this wrapper"));
    }
    if (parameter.requires_grad() && !numbers_.contains(&parameter.impl())) add(name, parameter);
  }
  if (parameters_.size() == num_known) return;
  for (const auto& [name, parameter] : parameters) {
    const auto known = numbers_.find(&parameter.impl());
    if (known == numbers_.end()) continue;
    std::erase(order_, known->second);
    order_.push_back(known->second);
  }
  fill();
}

// The parameters own their hooks, so the hooks must not own the buckets.
void GradientBuckets::add(const std::string& name, const Tensor& parameter) {
  const size_t i = parameters_.size();
  hooks_.push_back(
      register_post_accumulate_grad_hook(parameter, [weak = weak_from_this(), i](const Tensor&) {
        if (const auto self = weak.lock()) self->note_gradient(i);
      }));
  numbers_.emplace(&parameter.impl(), i);
  names_.push_back(name);
  parameters_.push_back(parameter);
}

void GradientBuckets::fill() {
  buckets_.clear();
  places_.resize(parameters_.size());
  has_gradient_.resize(parameters_.size());
  double limit = GradientBucket::first_bytes(bucket_mb_);
  for (size_t k = order_.size(); k-- > 0;) {
    const size_t i = order_[k];
    const Tensor& parameter = parameters_[i];
    if (buckets_.empty() || buckets_.back().memory.dtype() != parameter.dtype() ||
        buckets_.back().memory.bytes_with(parameter.numel()) > limit) {
      if (!buckets_.empty()) limit = bucket_mb_ * autograd::kBytesPerMb;
      buckets_.push_back({GradientBucket(parameter.dtype(), boxing::ReduceOp::kMean)});
    }
    const int64_t numel = parameter.numel();
    places_[i] = {buckets_.size() - 1, buckets_.back().memory.add(numel), numel};
    buckets_.back().parameters.push_back(i);
  }
  for (Bucket& bucket : buckets_)
    bucket.counts = bucket.memory.add(static_cast<int64_t>(bucket.parameters.size()));
}

bool GradientBuckets::fits() const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Place& place = places_[i];
    if (buckets_[place.bucket].memory.dtype() != parameters_[i].dtype()) return false;
    if (place.numel != parameters_[i].numel()) return false;
  }
  return true;
}

std::vector<size_t> GradientBuckets::bucket_sizes() const {
  std::vector<size_t> sizes;
  for (const Bucket& bucket : buckets_)
    sizes.push_back(bucket.parameters.size());
  return sizes;
}

void GradientBuckets::pause() {
  paused_in_.push_back(thread_state().trace);
}

void GradientBuckets::resume() {
  paused_in_.pop_back();
}

bool GradientBuckets::is_synchronising() const {
  const void* trace = thread_state().trace;
  if (trace == nullptr) return paused_in_.empty();
  note_condition(this, [weak = weak_from_this()] {
    const auto self = weak.lock();
    return self == nullptr || self->paused_in_.empty();
  });
  if (std::any_of(paused_in_.begin(), paused_in_.end(),
                  [&](const void* other) { return other != trace; })) {
    throw Unsupported(
        "[DistributedDataParallel] a graph was called under no_sync(), but its gradients do not "
        "leave it; call no_sync() in build(), around the backward calls whose gradients a later "
        "backward averages",
        user_site(Site::none()));
  }
  return paused_in_.empty();
}

void GradientBuckets::note_gradient(size_t parameter) {
  if (!is_synchronising()) return;
  // A new backward has begun; the previous one has ended or failed.
  if (backward_ != backward_number()) begin_backward();
  if (has_gradient_[parameter]) return check_not_averaged(parameter);
  has_gradient_[parameter] = true;
  if (thread_state().trace != nullptr) return trace_mean(parameter);
  --buckets_[places_[parameter].bucket].num_missing;
  launch_ready();
}

// A backward inside the running one, which a hook or a custom function calls, may give a parameter
// gradients before and after those of the running one. The mean must have them all.
void GradientBuckets::check_not_averaged(size_t parameter) const {
  const size_t bucket = places_[parameter].bucket;
  const bool is_averaged = thread_state().trace != nullptr
                               ? means_[parameter].defined()
                               : bucket < num_launched_ && where_of(bucket) == Where::kBackground;
  if (!is_averaged) return;
  throw Unsupported(
      str("[DistributedDataParallel] ", names_[parameter],
          " got another gradient after the ranks had begun to average its gradient, because a hook "
          "or a custom function calls backward() inside this backward; let it return the gradient, "
          "or call backward() under no_sync() and average with comm::all_reduce"),
      user_site(Site::none()));
}

void GradientBuckets::begin_backward() {
  if (!fits()) fill();
  backward_ = backward_number();
  num_launched_ = 0;
  std::fill(has_gradient_.begin(), has_gradient_.end(), false);
  for (Bucket& bucket : buckets_)
    bucket.num_missing = bucket.parameters.size();
  means_.assign(parameters_.size(), Tensor());
  const bool is_traced = thread_state().trace != nullptr;
  call_after_backward([self = shared_from_this(), is_traced] {
    is_traced ? self->finish_trace() : self->finish();
  });
}

// Nothing can overlap with the last bucket, and a small bucket does not justify waking a thread:
// finish() sends these. The choice is the same on all ranks.
GradientBuckets::Where GradientBuckets::where_of(size_t bucket) const {
  constexpr double kLeastBytes = 64 << 10;
  const bool is_small = buckets_[bucket].memory.bytes_with(0) < kLeastBytes;
  return is_small || bucket + 1 == buckets_.size() ? Where::kHere : Where::kBackground;
}

// Buckets start in the same order on all ranks, whatever the order in which gradients arrive.
void GradientBuckets::launch_ready() {
  for (; num_launched_ < buckets_.size(); ++num_launched_) {
    if (where_of(num_launched_) == Where::kHere) continue;
    if (buckets_[num_launched_].num_missing > 0) return;
    launch(buckets_[num_launched_], Where::kBackground);
  }
}

void GradientBuckets::launch(Bucket& bucket, Where where) {
  const NoGradGuard no_grad;
  GradientBucket& memory = bucket.memory;
  bucket.device = parameters_[bucket.parameters[0]].device();
  memory.open(bucket.device);
  for (size_t k = 0; k < bucket.parameters.size(); ++k) {
    const size_t i = bucket.parameters[k];
    // If this backward computed no gradient, one from an earlier backward counts.
    const Tensor grad = parameters_[i].grad();
    if (where == Where::kHere) {
      memory.lend(places_[i].offset, parameters_[i].numel(), grad);
    } else {
      memory.write(places_[i].offset, parameters_[i].numel(), grad);
    }
    memory.part(bucket.counts + static_cast<int64_t>(k), 1).fill_(grad.defined() ? 1 : 0);
  }
  RankContext& context = *thread_state().context;
  const boxing::Fingerprint what{.op = "gradients",
                                 .shape = {memory.num_elements()},
                                 .site = user_site(Site::none())};  // that of backward
  const boxing::Route route =
      boxing::mean_route(what.shape, memory.dtype(), boxing::all_ranks(bucket.device));
  if (where == Where::kHere) {
    memory.sum(boxing::world_communicator(context), what, route);
  } else {
    memory.start_sum(boxing::world_communicator(context, boxing::Channel::kBackground), what,
                     route);
  }
}

void GradientBuckets::finish() {
  for (; num_launched_ < buckets_.size(); ++num_launched_) {
    if (where_of(num_launched_) == Where::kBackground) {
      launch(buckets_[num_launched_], Where::kBackground);
    }
  }
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (where_of(i) == Where::kHere) launch(buckets_[i], Where::kHere);
  }
  const NoGradGuard no_grad;
  find_used();
  for (Bucket& bucket : buckets_) {
    GradientBucket& memory = bucket.memory;
    memory.wait();
    std::vector<double> users;
    if (bucket.device == DeviceType::kCpu) {
      users = memory.part(bucket.counts, static_cast<int64_t>(bucket.parameters.size()))
                  .to_vector<double>();
    }
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const size_t i = bucket.parameters[k];
      if (users.empty() ? is_used_[i] == 0 : users[k] == 0) continue;
      const Tensor& parameter = parameters_[i];
      const Tensor mean = memory.part(places_[i].offset, parameter.numel());
      parameter.set_grad(to_device_of(parameter, mean.view(parameter.shape())));
    }
    memory.close();
  }
}

void GradientBuckets::find_used() {
  const bool is_on_host = std::all_of(buckets_.begin(), buckets_.end(), [](const Bucket& bucket) {
    return bucket.device == DeviceType::kCpu;
  });
  if (is_on_host) return;
  is_used_.assign(parameters_.size(), 0);
  for (size_t i = 0; i < parameters_.size(); ++i)
    is_used_[i] = parameters_[i].grad().defined() ? 1 : 0;
  boxing::world_communicator(*thread_state().context)
      .all_reduce(is_used_.data(), is_used_.data(), static_cast<int64_t>(is_used_.size()),
                  DType::kInt32, boxing::ReduceOp::kMax,
                  {.op = "gradients", .site = user_site(Site::none())});
}

// Traced as soon as the gradient is complete, so that its transfer may begin there.
void GradientBuckets::trace_mean(size_t parameter) {
  means_[parameter] = internal::traced_mean(parameters_[parameter].grad(), names_[parameter]);
}

void GradientBuckets::finish_trace() {
  for (size_t i = parameters_.size(); i-- > 0;) {
    // If this backward computed no gradient, one from an earlier backward of the trace counts.
    const Tensor grad = parameters_[i].grad();
    if (!has_gradient_[i] && grad.defined() && grad.impl().trace != nullptr) trace_mean(i);
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (means_[i].defined()) parameters_[i].set_grad(std::exchange(means_[i], {}));
  }
}

}  // namespace flow::nn::parallel
