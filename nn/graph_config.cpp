#include "nn/graph_config.h"

#include <utility>

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "graph/passes/pass.h"
#include "nn/graphs/graph_timeline.h"
#include "ops/linear/cpu_table.h"
#include "pipeline/schedule_size.h"

namespace flow::nn {

namespace {

// Whether set_grad_scaler() gave the scaler; the program owns it.
bool is_of_program(const std::shared_ptr<optim::GradScaler>& scaler) {
  return scaler != nullptr && scaler.use_count() == 0;
}

}  // namespace

GraphConfig& GraphConfig::enable_amp(DType dtype, Site site) {
  const SiteScope scope(site);
  if (dtype != bfloat16 && dtype != float16) {
    throw Unsupported(
        str("[graph] mixed precision supports bfloat16 and float16; received ", dtype));
  }
  amp_ = dtype;
  if (is_of_program(scaler_)) return *this;
  scaler_ = dtype == float16 ? std::make_shared<optim::GradScaler>() : nullptr;
  return *this;
}

GraphConfig& GraphConfig::enable_amp(DType dtype, const optim::GradScalerOptions& scaling,
                                     Site site) {
  const SiteScope scope(site);
  if (is_of_program(scaler_)) {
    throw InvalidArgument(
        "[graph] enable_amp() got options of a scaler although set_grad_scaler() gave one; leave "
        "one of the two out");
  }
  auto scaler = std::make_shared<optim::GradScaler>(scaling);
  enable_amp(dtype);
  scaler_ = std::move(scaler);
  return *this;
}

GraphConfig& GraphConfig::set_grad_scaler(optim::GradScaler& scaler) {
  scaler_ = std::shared_ptr<optim::GradScaler>(std::shared_ptr<void>(), &scaler);
  return *this;
}

GraphConfig& GraphConfig::enable_zero(ZeroOptions options, Site site) {
  const SiteScope scope(site);
  if (options.stage < 0 || options.stage > 3) {
    throw InvalidArgument(
        str("[graph] the ZeRO stage must be 1, 2 or 3, or 0 for none; received ", options.stage));
  }
  zero_ = options;
  return *this;
}

GraphConfig& GraphConfig::set_passes(graph::PassSet passes) {
  if (passes == exact) ops::use_cpu_table_of_rank_0();
  passes_ = passes;
  return *this;
}

GraphConfig& GraphConfig::set_overlap(const OverlapOptions& options, Site site) {
  const SiteScope scope(site);
  const auto require = [](bool holds, const char* name, double value, const char* wanted) {
    if (!holds)
      throw InvalidArgument(str("[graph] ", name, " must be ", wanted, "; received ", value));
  };
  require(options.bucket_mb > 0, "bucket_mb", options.bucket_mb, "positive");
  require(options.first_bucket_mb > 0, "first_bucket_mb", options.first_bucket_mb, "positive");
  require(options.least_kb >= 0, "least_kb", options.least_kb, "at least 0");
  require(options.least_hidden_us >= 0, "least_hidden_us", options.least_hidden_us, "at least 0");
  require(options.most_memory_share >= 0, "most_memory_share", options.most_memory_share,
          "at least 0");
  overlap_ = options;
  return *this;
}

GraphConfig& GraphConfig::enable_pass(const std::string& name, bool on, Site site) {
  const SiteScope scope(site);
  std::string names;
  bool is_known = false;
  for (const graph::Pass& pass : graph::optimizing_passes()) {
    names += (names.empty() ? "" : ", ") + pass.name;
    is_known |= pass.name == name;
  }
  if (!is_known) {
    throw InvalidArgument(str("[graph] no pass '", name, "' can be switched; give one of ", names));
  }
  if (on) {
    disabled_passes_.erase(name);
  } else {
    disabled_passes_.insert(name);
  }
  return *this;
}

GraphConfig& GraphConfig::require_exact(bool on) {
  is_exact_ = on;
  return *this;
}

GraphConfig& GraphConfig::set_micro_batches(int64_t count, Site site) {
  const SiteScope scope(site);
  if (count < 1 || count > pipeline::kMostActions)
    throw InvalidArgument(str("[graph] the number of micro-batches must be 1 to ",
                              pipeline::kMostActions, "; received ", count));
  micro_batches_ = count;
  return *this;
}

GraphConfig& GraphConfig::set_schedule(const pipeline::ScheduleRule& schedule) {
  schedule_ = schedule;
  return *this;
}

GraphConfig& GraphConfig::set_plan_cache(std::string folder) {
  plan_cache_ = std::move(folder);
  return *this;
}

GraphConfig& GraphConfig::set_max_plans(int64_t count, Site site) {
  const SiteScope scope(site);
  if (count < 1) {
    throw InvalidArgument(str("[graph] a graph must keep at least 1 plan; received ", count));
  }
  max_plans_ = count;
  return *this;
}

GraphConfig& GraphConfig::set_cuda_graphs(bool on) {
  cuda_graphs_ = on;
  return *this;
}

GraphConfig& GraphConfig::enable_recompute() {
  recomputes_ = true;
  return *this;
}

GraphConfig& GraphConfig::set_timeline(const std::string& path, const TimelineOptions& options,
                                       Site site) {
  const SiteScope scope(site);
  timeline_ = std::make_shared<GraphTimeline>(path, options);
  return *this;
}

}  // namespace flow::nn
