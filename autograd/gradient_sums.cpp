#include "autograd/gradient_sums.h"

#include <algorithm>
#include <utility>

#include "autograd/bucket_size.h"
#include "boxing/comm/communicator.h"
#include "boxing/planner.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/tensor_impl.h"

namespace flow::autograd {

namespace {

// The axes along which a gradient must only be summed to get its leaf's layout.
uint32_t summed_axes(const TensorMeta& gradient, const TensorMeta& leaf) {
  uint32_t axes = 0;
  for (int64_t axis = 0; axis < leaf.nd_sbp.size(); ++axis) {
    if (gradient.nd_sbp[axis] == sbp::partial_sum && leaf.nd_sbp[axis].is_broadcast() &&
        leaf.placement.shape()[axis] > 1) {
      axes |= 1U << axis;
    }
  }
  return axes;
}

NdSbp with_partial(NdSbp nd_sbp, uint32_t axes) {
  for (int64_t axis = 0; axis < nd_sbp.size(); ++axis) {
    if ((axes >> axis & 1U) != 0) nd_sbp = nd_sbp.with(axis, sbp::partial_sum);
  }
  return nd_sbp;
}

}  // namespace

GradientSums::Stream& GradientSums::stream_for(const TensorMeta& gradient, uint32_t axes) {
  const auto known = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.placement == gradient.placement && stream.axes == axes &&
           stream.filling.memory.dtype() == gradient.dtype;
  });
  if (known != streams_.end()) return *known;
  streams_.push_back({.placement = gradient.placement,
                      .axes = axes,
                      .limit = GradientBucket::first_bytes(bucket_mb_),
                      .filling = {GradientBucket(gradient.dtype)}});
  return streams_.back();
}

bool GradientSums::take(const Tensor& leaf, Tensor& gradient) {
  const TensorMeta& target = leaf.meta();
  if (!target.is_global() || gradient.placement() != target.placement ||
      target.device != DeviceType::kCpu) {
    return false;
  }
  const uint32_t axes = summed_axes(gradient.meta(), target);
  if (axes == 0) return false;
  // Other redistributions come first, so that only parts have to be summed.
  const NdSbp addends = with_partial(target.nd_sbp, axes);
  if (gradient.sbp() != addends) gradient = gradient.to_global({.sbp = addends}, site_);
  const TensorMeta& given = gradient.meta();
  if (bucket_mb_ == 0 || gradient.impl().trace != nullptr || !given.is_held || given.numel == 0) {
    return false;
  }
  Stream& stream = stream_for(given, axes);
  // The first part of a balanced split is the largest.
  const int64_t most = box_of(given.shape, given.placement, given.nd_sbp, 0).size.numel();
  const auto bytes_with = [&](int64_t numel) {
    return static_cast<double>(stream.filling.most_elements + numel) *
           static_cast<double>(dtype_size(given.dtype));
  };
  if (!stream.filling.entries.empty() && bytes_with(most) > stream.limit) {
    launch(stream, Where::kBackground);
  }
  Bucket& bucket = stream.filling;
  const int64_t place = bucket.memory.add(given.local_numel);
  bucket.most_elements += most;
  bucket.entries.push_back({leaf, std::move(gradient), place});
  if (bytes_with(0) >= stream.limit) launch(stream, Where::kBackground);
  return true;
}

void GradientSums::launch(Stream& stream, Where where) {
  stream.limit = bucket_mb_ * kBytesPerMb;
  const DType dtype = stream.filling.memory.dtype();
  launched_.push_back(std::exchange(stream.filling, {GradientBucket(dtype)}));
  Bucket& bucket = launched_.back();
  bucket.memory.open();
  for (Entry& entry : bucket.entries) {
    const Tensor gradient = std::exchange(entry.gradient, {});
    const int64_t count = gradient.meta().local_numel;
    if (where == Where::kHere) {
      bucket.memory.lend(entry.place, count, gradient.to_local());
    } else {
      bucket.memory.write(entry.place, count, gradient.to_local());
    }
  }
  // The bucket is a tensor of one dim; each group of ranks sums its own bucket.
  const boxing::Route plan = boxing::one_step_route(
      {bucket.most_elements}, dtype,
      {stream.placement, with_partial(NdSbp::broadcast(stream.placement.num_axes()), stream.axes)},
      {stream.placement, NdSbp::broadcast(stream.placement.num_axes())});
  RankContext& context = *thread_state().context;
  const std::vector<int64_t> ranks = boxing::group_of(plan.steps[0], context.rank());
  const boxing::Fingerprint what{.op = "gradients",
                                 .shape = plan.shape,
                                 .dtype = dtype,
                                 .from = plan.from,
                                 .to = plan.to,
                                 .site = site_};
  if (where == Where::kHere) {
    bucket.memory.sum(boxing::communicator_for(context, ranks), what, plan);
  } else {
    bucket.memory.start_sum(boxing::communicator_for(context, ranks, boxing::Channel::kBackground),
                            what, plan);
  }
}

std::vector<GradientSums::Summed> GradientSums::finish() {
  // There is no more work to overlap with, so the last sums run on this thread.
  for (Stream& stream : streams_) {
    if (!stream.filling.entries.empty()) launch(stream, Where::kHere);
  }
  std::vector<Summed> sums;
  const int64_t rank = thread_state().context->rank();
  for (Bucket& bucket : launched_) {
    bucket.memory.wait();
    for (Entry& entry : bucket.entries) {
      const TensorMeta& leaf = entry.leaf.meta();
      const MetaPtr meta = global_meta(leaf.shape, leaf.dtype, leaf.placement, leaf.nd_sbp, rank);
      sums.push_back(
          {std::move(entry.leaf), Tensor::make(meta, bucket.memory.storage(), entry.place)});
    }
    bucket.memory.close();
  }
  launched_.clear();
  streams_.clear();
  return sums;
}

}  // namespace flow::autograd
