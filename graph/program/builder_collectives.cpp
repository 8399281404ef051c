// How a ProgramBuilder adds collectives: sums wait for others of their group and become buckets,
// and some run in the background.
#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "boxing/planner.h"
#include "graph/program/builder.h"

namespace flow::graph {

namespace {

// Of redistributions in the background that are no buckets. What they read stays in memory until
// they end.
constexpr size_t kMostInBackground = 2;

// A layout for a tensor of one dim that has the partial axes of another and is whole along the
// others.
boxing::Layout summed(const boxing::Layout& layout) {
  NdSbp nd_sbp = NdSbp::broadcast(layout.placement.num_axes());
  for (int64_t axis = 0; axis < nd_sbp.size(); ++axis) {
    if (layout.nd_sbp[axis].is_partial()) nd_sbp = nd_sbp.with(axis, layout.nd_sbp[axis]);
  }
  return {layout.placement, nd_sbp};
}

// Whether kernels write a part of a bucket as they write a buffer of its own. On devices, those for
// results at other addresses may be slower, or add in another order.
bool is_aligned(const Buffer& part) {
  constexpr int64_t kDeviceAlignment = 16;
  const int64_t begin = part.offset * static_cast<int64_t>(dtype_size(part.meta->dtype));
  return part.meta->device == DeviceType::kCpu || begin % kDeviceAlignment == 0;
}

}  // namespace

void ProgramBuilder::add_collective(Step step, TransferStart start) {
  const bool in_background = allows_background_ && start != TransferStart::kInOrder &&
                             step.guard == kNoBuffer &&
                             step.as<CollectiveStep>()->route->steps.size() == 1;
  const std::vector<int64_t> ranks = summed_ranks(step);
  flush_used(step);
  if (ranks.empty() || (in_background && start == TransferStart::kAtOnce))
    return push_collective(std::move(step), in_background);
  pending_.push_back({std::move(step), ranks});
  if (in_background) flush_like(pending_.size() - 1, true);
}

void ProgramBuilder::push_collective(Step step, bool in_background) {
  end_used(step);
  if (in_background) {
    const auto is_bucket = [&](size_t started) {
      return program_.steps[started].as<BucketStep>() != nullptr;
    };
    const size_t others = running_.size() - static_cast<size_t>(std::count_if(
                                                running_.begin(), running_.end(), is_bucket));
    if (step.as<BucketStep>() == nullptr && others >= kMostInBackground) {
      const auto oldest = std::find_if_not(running_.begin(), running_.end(), is_bucket);
      end_running(static_cast<size_t>(oldest - running_.begin()));
    }
    step.in_background = true;
    running_.push_back(program_.steps.size());
  }
  program_.steps.push_back(std::move(step));
}

void ProgramBuilder::end_used(const Step& step) {
  for (size_t i = 0; i < running_.size();) {
    if (must_follow(step, program_.steps[running_[i]])) {
      end_running(i);
    } else {
      ++i;
    }
  }
}

void ProgramBuilder::end_running(size_t index) {
  const size_t started = running_[index];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  add_wait(started);
}

void ProgramBuilder::end_communication() {
  while (!pending_.empty())
    flush_like(0, false);
  while (!running_.empty())
    end_running(0);
}

std::vector<int64_t> ProgramBuilder::summed_ranks(const Step& step) const {
  const boxing::Route& route = *step.as<CollectiveStep>()->route;
  const TensorMeta& input = *buffer(step.inputs[0]).meta;
  const TensorMeta& output = *buffer(step.outputs[0]).meta;
  const bool is_sum = route.steps.size() == 1 &&
                      route.steps[0].kind == boxing::RouteStepKind::kAllReduce &&
                      boxing::adds_up(route.steps[0]);
  const bool is_plain = input.is_held && output.is_held && input.blocked == nullptr &&
                        input.is_contiguous && output.is_contiguous && input.local_numel > 0 &&
                        input.device == output.device;
  if (!is_sum || !is_plain || step.guard != kNoBuffer) return {};
  std::vector<int64_t> ranks = boxing::group_of(route.steps[0], program_.rank);
  return ranks.size() > 1 ? ranks : std::vector<int64_t>();
}

bool ProgramBuilder::must_follow(const Step& step, const Step& other) const {
  const auto has = [&](const std::vector<BufferId>& ids, BufferId id) {
    return id != kNoBuffer && std::any_of(ids.begin(), ids.end(), [&](BufferId of) {
             return of != kNoBuffer && program_.root_of(id) == program_.root_of(of);
           });
  };
  const auto is_written = [&](BufferId id) { return has(other.outputs, id); };
  return is_written(step.guard) ||
         std::any_of(step.inputs.begin(), step.inputs.end(), is_written) ||
         std::any_of(step.outputs.begin(), step.outputs.end(),
                     [&](BufferId id) { return is_written(id) || has(other.inputs, id); });
}

void ProgramBuilder::complete(const std::vector<BufferId>& buffers) {
  flush_used({.inputs = buffers});
}

void ProgramBuilder::flush_used(const Step& step) {
  for (size_t i = 0; i < pending_.size();) {
    if (must_follow(step, pending_[i].step)) {
      flush_like(i, false);
      i = 0;
    } else {
      ++i;
    }
  }
}

void ProgramBuilder::flush_like(size_t pending, bool in_background) {
  const auto kind_of = [this](const PendingSum& sum) {
    const boxing::Route& route = *sum.step.as<CollectiveStep>()->route;
    return std::tuple(route.dtype, route.steps[0].is_mean, buffer(sum.step.inputs[0]).meta->device);
  };
  const std::vector<int64_t> ranks = pending_[pending].ranks;
  const auto others = std::stable_partition(
      pending_.begin(), pending_.end(), [&, kind = kind_of(pending_[pending])](const auto& sum) {
        return sum.ranks != ranks || kind_of(sum) != kind;
      });
  std::vector<PendingSum> sums(std::make_move_iterator(others),
                               std::make_move_iterator(pending_.end()));
  pending_.erase(others, pending_.end());
  add_bucket(sums, in_background);
}

void ProgramBuilder::add_bucket(std::span<PendingSum> sums, bool in_background) {
  if (sums.size() == 1) return push_collective(std::move(sums[0].step), in_background);
  Step bucket{.file = sums[0].step.file,
              .line = sums[0].step.line,
              .module = sums[0].step.module,
              .phase = sums[0].step.phase};
  const boxing::Route& first = *sums[0].step.as<CollectiveStep>()->route;
  const BufferId memory = static_cast<BufferId>(program_.buffers.size());
  int64_t elements = 0, most = 0;
  for (const PendingSum& sum : sums) {
    const boxing::Route& route = *sum.step.as<CollectiveStep>()->route;
    // The first part of a balanced split is the largest.
    most += box_of(route.shape, route.from.placement, route.from.nd_sbp, 0).size.numel();
    Buffer& output = program_.buffer(sum.step.outputs[0]);
    output.base = memory;
    output.offset = elements;
    elements += output.meta->local_numel;
    bucket.inputs.push_back(sum.step.inputs[0]);
    bucket.outputs.push_back(sum.step.outputs[0]);
  }
  program_.buffers.push_back(
      {.meta = local_meta({elements}, first.dtype, buffer(bucket.outputs[0]).meta->device),
       .is_per_micro_batch = program_.buffer(bucket.outputs[0]).is_per_micro_batch});
  made_in_.push_back(current_block());
  boxing::Route route =
      boxing::one_step_route({most}, first.dtype, summed(first.from), summed(first.to));
  route.steps[0].is_mean = first.steps[0].is_mean;
  bucket.body = BucketStep{std::make_shared<const boxing::Route>(std::move(route))};
  push_collective(std::move(bucket), in_background);
}

BufferId ProgramBuilder::movable_addend(BufferId addend, BufferId bucket) const {
  BufferId root = addend;
  for (; buffer(root).base != kNoBuffer; root = buffer(root).base) {
    if (buffer(root).offset != 0 || buffer(root).begins != kNoTable) return kNoBuffer;
  }
  const Buffer& memory = buffer(root);
  const bool fits = memory.external < 0 && memory.holders == kNoTable &&
                    memory.meta->blocked == nullptr && memory.meta->is_contiguous &&
                    memory.meta->local_numel == buffer(addend).meta->local_numel &&
                    memory.meta->dtype == buffer(bucket).meta->dtype &&
                    memory.is_per_micro_batch == buffer(bucket).is_per_micro_batch;
  return fits && root != bucket ? root : kNoBuffer;
}

void ProgramBuilder::share_bucket_memory() {
  const bool has_buckets =
      std::any_of(program_.steps.begin(), program_.steps.end(),
                  [](const Step& step) { return step.as<BucketStep>() != nullptr; });
  if (!has_buckets) return;
  std::vector<size_t> last_use(program_.buffers.size(), 0);  // by root
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    const Step& step = program_.steps[i];
    const auto* wait = step.as<WaitStep>();
    if (wait != nullptr && program_.steps[wait->started].as<BucketStep>() != nullptr) continue;
    for (const auto* ids : {&step.inputs, &step.outputs}) {
      for (const BufferId id : *ids) {
        if (id != kNoBuffer) last_use[static_cast<size_t>(program_.root_of(id))] = i;
      }
    }
  }
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    const Step& step = program_.steps[i];
    if (step.as<BucketStep>() == nullptr) continue;
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const Buffer& sum = program_.buffer(step.outputs[k]);
      if (!is_aligned(sum)) continue;
      const BufferId addend = movable_addend(step.inputs[k], sum.base);
      if (addend == kNoBuffer || last_use[static_cast<size_t>(addend)] > i) continue;
      // The first sum of an addend that the bucket adds up twice would overwrite it.
      const auto shows_it = [&](BufferId id) { return program_.root_of(id) == addend; };
      if (std::count_if(step.inputs.begin(), step.inputs.end(), shows_it) != 1) continue;
      program_.buffer(addend).base = sum.base;
      program_.buffer(addend).offset = sum.offset;
    }
  }
}

}  // namespace flow::graph
