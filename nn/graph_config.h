// How a graph is compiled: what nn::Graph::config() sets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/dtype.h"
#include "graph/passes/pass_set.h"
#include "nn/optim/grad_scaler.h"
#include "pipeline/schedule.h"

namespace flow::nn {

inline constexpr graph::PassSet exact = graph::PassSet::kExact;

// What is cut over ranks that hold the same parameter (Rajbhandari et al. 2020); a stage has what
// those below it have. Values are those without. Parameters on one rank, and local ones, have
// nothing to cut.
struct ZeroOptions {
  // 1: optimizer state.
  // 2: gradients too: each is added up into parts as soon as it is made.
  // 3: parameters too: from the first compilation on each rank has its part, in the tensor as well
  //    (split where it was broadcast), and they are gathered where they are used, in forward and
  //    again in backward.
  int64_t stage = 1;
  // Gathers and sums of stages 2 and 3 are made once a step, not where parameters are used and for
  // each micro-batch: less is moved, but whole parameters are kept through the step, and with
  // micro-batches whole gradients.
  bool once_per_step = false;
  friend bool operator==(const ZeroOptions&, const ZeroOptions&) = default;
};

// Which runs of a graph a timeline shows.
struct TimelineOptions {
  int64_t skip = 1;      // runs before the first; the very first takes memory
  int64_t runs = 3;      // one after another
  bool kernels = false;  // each kernel too
};

class GraphTimeline;

// How a graph is compiled. After a change the next call compiles anew.
class GraphConfig {
 public:
  // Forward under autocast to `dtype`, bfloat16 or float16. For float16 the graph has a GradScaler:
  // backward() begins with its scale, gradients are divided by it before they are clipped, and
  // where any rank finds one that is not finite, the optimizer's step is left out on all. Between
  // backward() and the end of build() gradients are scaled.
  GraphConfig& enable_amp(DType dtype = bfloat16);
  // The same with options of the scaler's, for bfloat16 too.
  GraphConfig& enable_amp(DType dtype, const optim::GradScalerOptions& scaling);
  // A scaler of the program's in place of the graph's own, which eager steps and other graphs may
  // share; it must outlive the graph.
  GraphConfig& set_grad_scaler(optim::GradScaler& scaler);

  // The scaler, for its scale and state; null for none.
  optim::GradScaler* grad_scaler() const { return scaler_.get(); }

  GraphConfig& enable_zero(ZeroOptions options = {});
  // `exact`: only passes that leave results as they are bit for bit; the graph then equals the
  // eager step.
  GraphConfig& set_passes(graph::PassSet passes);
  // Results must be those of the whole batch: what would make them others, a batch norm in training
  // under micro-batches, raises Unsupported with module and line when the graph is compiled.
  GraphConfig& require_exact(bool on = true);
  // The batch is cut into so many parts along dim 0 of every input, which run one after another;
  // gradients are summed, results and random draws are those of the whole batch. Batch norm in
  // training takes the statistics of each part, over all ranks, and updates running ones once for
  // each, in order; summary() names such modules. Other ops that mix samples cannot be cut and
  // raise Unsupported when the graph is compiled.
  GraphConfig& set_micro_batches(int64_t count);
  // The order in which stages take micro-batches; pipeline::one_f_one_b() unless it is set. With
  // one micro-batch, too.
  GraphConfig& set_schedule(const pipeline::ScheduleRule& schedule);
  // What stages save for backward, and outside of them elements of ModuleList and Sequential, is
  // dropped and computed again (GraphModule::set_activation_checkpointing for single modules).
  // Modules that give more than one tensor are left as they are.
  GraphConfig& enable_recompute();
  // A folder where compiled plans are kept, and from where a later run of the same program takes
  // them instead of compiling; FLOW_PLAN_CACHE unless it is set, and none where that is not.
  GraphConfig& set_plan_cache(std::string folder);
  // Measures coming runs and writes them, all ranks in one, to a file that Perfetto and flow-sim
  // open (docs/timelines.md). The last of the runs writes it, on rank 0; later ones are not
  // measured. A change does not compile anew. Unsupported, at the first run, for a graph of local
  // tensors on several ranks.
  GraphConfig& set_timeline(const std::string& path, const TimelineOptions& options = {});

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
  std::shared_ptr<GraphTimeline> timeline_;
  graph::PassSet passes_ = graph::PassSet::kAll;
};

}  // namespace flow::nn
