#include "graph/run/compiled_step.h"

#include <algorithm>
#include <utility>

#include "boxing/check_replicas.h"
#include "boxing/ranks/fail_ranks.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/env.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/strided_twin.h"
#include "graph/ir/graph_uses.h"
#include "graph/program/program_classes.h"
#include "graph/program/summary.h"
#include "ops/creation/copy.h"

namespace flow::graph {

namespace {
// The meta of a tensor's strided form.
MetaPtr strided_meta(const Tensor& tensor) {
  const MetaPtr meta = tensor.meta_ptr();
  return meta->blocked == nullptr ? meta : with_blocked(meta, nullptr);
}

MetaPtr row_major(MetaPtr meta) {
  return meta->is_contiguous ? meta : with_strides(meta, contiguous_strides(meta->local_shape));
}

// Memory for a copy on the same device, so that the host waits for no device. That of the host does
// not come from the allocator, because the stated peak has no such copies.
Ref<Storage> room_for(RankContext& rank, DeviceType device, size_t bytes) {
  if (device != DeviceType::kCpu) return allocate_storage(rank, device, bytes);
  auto* const memory = new std::byte[bytes];
  return Storage::wrap(memory, bytes, [memory](void* /*data*/) { delete[] memory; });
}
}  // namespace

CompiledStep::CompiledStep(std::vector<Tensor> captures,
                           std::shared_ptr<const CompiledArtifact> step,
                           const std::vector<size_t>& copied, std::shared_ptr<Arena> arena)
    : captures_(std::move(captures)),
      step_(std::move(step)),
      agreement_(*step_),
      rank_(env::rank()),
      program_(&step_->program_of(rank_)),
      arena_(arena ? std::move(arena) : std::make_shared<Arena>()),
      checks_replicas_(env_flag("FLOW_CHECK")) {
  FLOW_ASSERT(may_run(*program_, graph()), "the step is for other local tensors than rank ", rank_,
              " has");
  for (const ValueId output : graph().outputs)
    output_metas_.push_back(graph().value(output).meta_on(rank_));
  for (size_t i = 0; i < captures_.size(); ++i) {
    const MetaPtr now = strided_meta(captures_[i]);
    const MetaPtr traced = graph().value(graph().captures[i].initial).meta_on(rank_);
    capture_metas_.push_back(row_major(now) == traced ? now : traced);
    const bool shares = std::find(copied.begin(), copied.end(), i) != copied.end();
    if (now->is_held && (shares || !now->is_contiguous)) copied_.push_back(i);
    const Capture& capture = graph().captures[i];
    if (capture.initial != capture.final_value) written_.push_back(i);
  }
  find_statistics();
  externals_.resize(graph().inputs.size());
  externals_.insert(externals_.end(), captures_.begin(), captures_.end());
  externals_.resize(externals_.size() + output_metas_.size());
}

int64_t CompiledStep::output_bytes() const {
  int64_t bytes = 0;
  for (const MetaPtr meta : output_metas_)
    bytes += static_cast<int64_t>(meta->local_bytes());
  return bytes;
}

bool CompiledStep::writes(const Tensor& tensor) const {
  return std::any_of(written_.begin(), written_.end(), [&](size_t i) {
    const TensorImpl& written = captures_[i].impl();
    return written.storage && memory_of(written) == memory_of(tensor.impl());
  });
}

bool CompiledStep::fits() const {
  for (size_t i = 0; i < captures_.size(); ++i) {
    if (strided_meta(captures_[i]) != capture_metas_[i]) return false;
  }
  return true;
}

void CompiledStep::copy_captures() {
  const NoGradGuard no_grad;
  for (const size_t i : copied_)
    externals_[graph().inputs.size() + i] = captures_[i].clone();
}

void CompiledStep::write_back() {
  const NoGradGuard no_grad;
  for (const size_t i : copied_) {
    Tensor& copy = externals_[graph().inputs.size() + i];
    const Capture& capture = graph().captures[i];
    if (capture.initial != capture.final_value) captures_[i].copy_(copy);
    copy = captures_[i];
  }
}

void CompiledStep::find_statistics() {
  const GraphUses uses(graph());
  for (size_t i = 0; i < captures_.size(); ++i) {
    const Capture& capture = graph().captures[i];
    const Node* writer = uses.maker_node(capture.final_value);
    const bool is_written = capture.initial != capture.final_value && writer != nullptr;
    const bool is_copied = std::find(copied_.begin(), copied_.end(), i) != copied_.end();
    if (!is_written || is_copied || writer->phase == Phase::kUpdate) continue;
    if (captures_[i].meta().is_held) statistics_.push_back({i});
  }
}

void CompiledStep::keep_statistics() {
  RankContext& rank = *thread_state().context;
  OthersMemory others(rank);
  for (Statistic& statistic : statistics_) {
    TensorImpl& impl = captures_[statistic.capture].impl();
    make_writable(impl);
    others.add(impl, "graph", Site::none());
    const DeviceType device = impl.meta->device;
    if (!statistic.before) statistic.before = room_for(rank, device, impl.meta->local_bytes());
    copy_bytes(rank, statistic.before->data(), device, impl.data(), device,
               statistic.before->bytes());
  }
}

void CompiledStep::restore_statistics() {
  RankContext& rank = *thread_state().context;
  OthersMemory others(rank);
  for (const Statistic& statistic : statistics_) {
    TensorImpl& impl = captures_[statistic.capture].impl();
    others.add(impl, "graph", Site::none());
    const DeviceType device = impl.meta->device;
    copy_bytes(rank, impl.data(), device, statistic.before->data(), device,
               statistic.before->bytes());
  }
}

void CompiledStep::give_up(const std::exception* untold) {
  if (untold != nullptr) boxing::fail_ranks(*thread_state().context, untold->what());
  if (executor_) executor_->cancel_run();
  restore_statistics();
  for (const size_t i : copied_)
    externals_[graph().inputs.size() + i] = captures_[i];
  release_externals();
}

void CompiledStep::release_externals() {
  const auto begin = externals_.begin();
  const auto num_inputs = static_cast<std::ptrdiff_t>(graph().inputs.size());
  const auto first_output = num_inputs + static_cast<std::ptrdiff_t>(captures_.size());
  std::fill(begin, begin + num_inputs, Tensor());
  std::fill(begin + first_output, externals_.end(), Tensor());
}

Executor& CompiledStep::executor() {
  if (!executor_) executor_ = std::make_unique<Executor>(*program_, arena_);
  return *executor_;
}

std::string CompiledStep::summary() const {
  return summary_of(*step_, rank_);
}

std::string CompiledStep::cuda_graphs_summary() const {
  return executor_ == nullptr ? std::string() : executor_->cuda_graphs_summary();
}

std::string CompiledStep::cuda_graphs_explanation() const {
  return executor_ == nullptr ? std::string() : executor_->cuda_graphs_explanation();
}

void CompiledStep::record_steps(bool on) {
  executor().record_steps(on);
}

std::vector<Tensor> CompiledStep::run(std::span<const Tensor> inputs) {
  FLOW_ASSERT(inputs.size() == graph().inputs.size(), "the step has ", graph().inputs.size(),
              " inputs, ", inputs.size(), " are given");
  agree();
  try {
    keep_statistics();
  } catch (const std::exception& error) {  // nothing has changed yet
    boxing::fail_ranks(*thread_state().context, error.what());
    throw;
  }
  try {
    return run_once(inputs);
  } catch (const DistributedError&) {  // all ranks get it
    give_up(nullptr);
    throw;
  } catch (const InvalidArgument& error) {
    give_up(agreement_.has_errors_of_one_rank() ? &error : nullptr);
    throw;
  } catch (const std::exception& error) {  // such as too little memory
    give_up(&error);
    throw;
  }
}

std::vector<Tensor> CompiledStep::run_once(std::span<const Tensor> inputs) {
  RankContext& rank = *thread_state().context;
  std::copy(inputs.begin(), inputs.end(), externals_.begin());
  const size_t first_output = inputs.size() + captures_.size();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < output_metas_.size(); ++i) {
    const MetaPtr meta = output_metas_[i];
    const size_t bytes = meta->is_held ? meta->local_bytes() : 0;
    outputs.push_back(Tensor::make(meta, allocate_storage(rank, meta->device, bytes)));
    externals_[first_output + i] = outputs.back();
  }
  copy_captures();
  {
    const boxing::StepScope in_step(agreement_.step());
    executor().use_cuda_graphs(uses_cuda_graphs_);
    executor().run(externals_);
  }
  write_back();
  for (size_t i = 0; i < captures_.size(); ++i) {
    const Capture& capture = graph().captures[i];
    const TensorImpl& written = captures_[i].impl();
    if (capture.initial != capture.final_value && written.storage) written.storage->bump_version();
  }
  release_externals();
  if (checks_replicas_) check_results(outputs);
  return outputs;
}

void CompiledStep::check_results(std::span<const Tensor> outputs) const {
  for (const Tensor& output : outputs)
    boxing::check_replicas(output, "graph", Site::none());
  for (size_t i = 0; i < captures_.size(); ++i) {
    const Capture& capture = graph().captures[i];
    if (capture.initial == capture.final_value) continue;
    boxing::check_replicas(captures_[i], "graph", Site::none());
  }
}

}  // namespace flow::graph
