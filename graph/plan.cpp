#include "graph/plan.h"

#include <algorithm>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"

namespace flow::graph {

Plan::Plan(TracedStep step, PassSet passes, const Lowering& lowering)
    : graph_(std::move(step.graph)),
      passes_(run_passes(graph_, passes)),
      captures_(std::move(step.captures)) {
  compile(lowering ? lowering : [](const Graph& graph, int64_t rank) {
    return lower(graph, rank, kernel_table());
  });
  for (const ValueId output : graph_.outputs)
    output_metas_.push_back(graph_.value(output).meta_on(program_.rank));
  externals_.resize(graph_.inputs.size());
  externals_.insert(externals_.end(), captures_.begin(), captures_.end());
  externals_.resize(externals_.size() + output_metas_.size());
}

// Ranks whose tensors are all local need not know of each other.
void Plan::compile(const Lowering& lowering) {
  const bool is_global = std::any_of(graph_.values.begin(), graph_.values.end(),
                                     [](const Value& v) { return v.placement.defined(); });
  if (is_global) {
    std::vector<Program> programs = lower_all(graph_, lowering);
    certificate_ = certify(programs);
    program_ = std::move(programs[static_cast<size_t>(env::rank())]);
  } else {
    program_ = lowering(graph_, env::rank());
    certificate_ = certify({&program_, 1});
    certificate_.ranks[0].rank = env::rank();
  }
}

int64_t Plan::output_bytes() const {
  int64_t bytes = 0;
  for (const MetaPtr meta : output_metas_)
    bytes += static_cast<int64_t>(meta->local_bytes());
  return bytes;
}

bool Plan::fits() const {
  for (size_t i = 0; i < captures_.size(); ++i) {
    const BufferId buffer = program_.externals[graph_.inputs.size() + i];
    if (captures_[i].meta_ptr() != program_.buffers[static_cast<size_t>(buffer)].meta) {
      return false;
    }
  }
  return true;
}

std::vector<Tensor> Plan::run(std::span<const Tensor> inputs) {
  FLOW_ASSERT(inputs.size() == graph_.inputs.size(), "the step has ", graph_.inputs.size(),
              " inputs, ", inputs.size(), " are given");
  RankContext& rank = *thread_state().context;
  if (!executor_) executor_ = std::make_unique<Executor>(program_);
  std::copy(inputs.begin(), inputs.end(), externals_.begin());
  const size_t first_output = inputs.size() + captures_.size();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < output_metas_.size(); ++i) {
    const MetaPtr meta = output_metas_[i];
    outputs.push_back(Tensor::make(
        meta, Storage::allocate(rank.allocator(), meta->is_held ? meta->local_bytes() : 0)));
    externals_[first_output + i] = outputs.back();
  }
  executor_->run(externals_);
  for (size_t i = 0; i < captures_.size(); ++i) {
    const Capture& capture = graph_.captures[i];
    const TensorImpl& written = captures_[i].impl();
    if (capture.initial != capture.final_value && written.storage) written.storage->bump_version();
  }
  std::fill(externals_.begin() + static_cast<std::ptrdiff_t>(first_output), externals_.end(),
            Tensor());
  std::fill(externals_.begin(), externals_.begin() + static_cast<std::ptrdiff_t>(inputs.size()),
            Tensor());
  return outputs;
}

}  // namespace flow::graph
