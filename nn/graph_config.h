// How a graph is compiled: the options behind nn::Graph::config().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/dtype.h"
#include "graph/passes/overlap_options.h"
#include "graph/passes/pass_set.h"
#include "nn/optim/grad_scaler.h"
#include "pipeline/generators.h"

namespace flow::nn {

using graph::OverlapOptions;

inline constexpr graph::PassSet exact = graph::PassSet::kExact;

// What ZeRO shards over the ranks that hold the same parameter (Rajbhandari et al. 2020). Each
// stage includes the stages below it. Results are the same as without ZeRO. Local parameters, and
// parameters on one rank, are not sharded.
struct ZeroOptions {
  // 1: optimizer state.
  // 2: also gradients: each one is reduced to shards as soon as it is computed.
  // 3: also parameters: from the first compilation on, each rank holds its shard, in the tensor as
  //    well (split where it was broadcast). Parameters are gathered where they are used, in forward
  //    and again in backward.
  int64_t stage = 1;
  // If true, the gathers and reductions of stages 2 and 3 happen once per step, and not at each use
  // of a parameter and for each micro-batch. Less data moves, but whole parameters, and with
  // micro-batches whole gradients, are kept during the step.
  bool once_per_step = false;
  friend bool operator==(const ZeroOptions&, const ZeroOptions&) = default;
};

// Which runs of a graph are recorded in a timeline.
struct TimelineOptions {
  int64_t skip = 1;      // runs that are not recorded at first; the very first one allocates memory
  int64_t runs = 3;      // number of consecutive runs to record
  bool kernels = false;  // also record each kernel
};

class GraphTimeline;

// How a graph is compiled. After a change, the next call compiles again.
class GraphConfig {
 public:
  // Runs forward under autocast to `dtype`, bfloat16 or float16; another dtype is Unsupported. For
  // float16 the graph has a GradScaler: backward() starts from the scaled loss, gradients are
  // divided by the scale before they are clipped, and if any rank finds a gradient that is not
  // finite, all ranks skip the optimizer's step. Between backward() and the end of build()
  // gradients are scaled.
  GraphConfig& enable_amp(DType dtype = bfloat16, Site site = Site::here());
  // The same with options for the scaler, which is then used for bfloat16 as well.
  GraphConfig& enable_amp(DType dtype, const optim::GradScalerOptions& scaling,
                          Site site = Site::here());
  // Uses the program's scaler instead of the graph's. Eager steps and other graphs may share it. It
  // must outlive the graph.
  GraphConfig& set_grad_scaler(optim::GradScaler& scaler);

  // The scaler, for access to its scale and state; null if there is none.
  optim::GradScaler* grad_scaler() const { return scaler_.get(); }

  // Shards optimizer state, and from stages 2 and 3 gradients and parameters. Stage 0 turns it off;
  // a stage outside 0 to 3 is InvalidArgument.
  GraphConfig& enable_zero(ZeroOptions options = {}, Site site = Site::here());
  // With `exact`, only passes that leave results bit for bit unchanged run; the graph then equals
  // the eager step on contiguous() copies of its arguments and captured tensors. Ranks whose table
  // of matrix products differs from rank 0's (FLOW_CPU_TABLE) use rank 0's from this call on.
  GraphConfig& set_passes(graph::PassSet passes);
  // Says which transfers between ranks run while the step computes. Results do not depend on it.
  // Throws InvalidArgument for a negative number and for buckets of no bytes.
  GraphConfig& set_overlap(const OverlapOptions& options, Site site = Site::here());
  // Switches one of the optimizing passes on or off; docs/graph.md lists their names, and so does
  // the InvalidArgument for another name. All of them are on by default but fuse_gelu_products and
  // join_bias_gradients, which no GPU has run.
  GraphConfig& enable_pass(const std::string& name, bool on = true, Site site = Site::here());
  // Requires that results are those of the whole batch. Modules that would change them (a batch
  // norm in training under micro-batches) raise Unsupported with module and line when the graph is
  // compiled.
  GraphConfig& require_exact(bool on = true);
  // Splits the batch into this many parts along dim 0 of every input; the parts run one after
  // another. Gradients are summed; results and random draws are those of the whole batch. Batch
  // norm in training uses the statistics of each part, over all ranks, and updates its running
  // statistics once for each part, in order; summary() names such modules. Other ops that mix
  // samples cannot be split and raise Unsupported when the graph is compiled. A count below 1 is
  // InvalidArgument.
  GraphConfig& set_micro_batches(int64_t count, Site site = Site::here());
  // The order in which stages process micro-batches; the default is pipeline::one_f_one_b(). It
  // applies to one micro-batch as well.
  GraphConfig& set_schedule(const pipeline::ScheduleRule& schedule);
  // Recomputes activations in backward instead of saving them: those of stages, and outside of
  // stages those of the elements of ModuleList and Sequential.
  // GraphModule::set_activation_checkpointing does this for single modules. Modules that return
  // more than one tensor keep their activations.
  GraphConfig& enable_recompute();
  // The folder of the plan cache: a later run of the same program loads compiled plans from there
  // instead of compiling. The default is the environment variable FLOW_PLAN_CACHE; without it there
  // is no cache.
  GraphConfig& set_plan_cache(std::string folder);
  // The most plans that the graph keeps; the default is 32. After a compilation, the plans that
  // were not called for the longest time are dropped with their memory; a call that needs one of
  // them compiles it again. This change does not cause a compilation. Throws InvalidArgument for
  // less than one plan.
  GraphConfig& set_max_plans(int64_t count, Site site = Site::here());
  // Whether steps on a CUDA device are queued as CUDA graphs where that is possible, which takes
  // the host much less time. A plan runs twice without them; its third run captures them. Results
  // are the same bit for bit. docs/cuda.md says what they cost and which steps stay outside. Off by
  // default. This change does not cause a compilation.
  GraphConfig& set_cuda_graphs(bool on = true);
  // Records the next runs on all ranks and writes them to one file, which Perfetto and flow-sim can
  // open (docs/timelines.md). If the graph has several plans, each counts its own runs, and the
  // file shows the first that has enough. Rank 0 writes the file at the end of the last recorded
  // run; later runs are not recorded. This change does not cause a compilation. Throws
  // InvalidArgument for less than one run or a negative skip. The first run throws Unsupported for
  // a graph of local tensors on several ranks.
  GraphConfig& set_timeline(const std::string& path, const TimelineOptions& options = {},
                            Site site = Site::here());

 private:
  friend class GraphBase;

  std::optional<DType> amp_;
  std::shared_ptr<optim::GradScaler> scaler_;
  ZeroOptions zero_ = {.stage = 0};
  int64_t micro_batches_ = 1;
  pipeline::ScheduleRule schedule_;
  bool recomputes_ = false;
  bool is_exact_ = false;
  std::optional<std::string> plan_cache_;
  int64_t max_plans_ = 32;
  bool cuda_graphs_ = false;
  std::shared_ptr<GraphTimeline> timeline_;
  graph::PassSet passes_ = graph::PassSet::kAll;
  graph::OverlapOptions overlap_;
  std::set<std::string> disabled_passes_ = {"fuse_gelu_products", "join_bias_gradients"};
};

}  // namespace flow::nn
