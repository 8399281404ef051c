// How a training is distributed over the ranks.
#pragma once

#include <string>
#include <vector>

#include "nn/module.h"
#include "pipeline/generators.h"

namespace flow::conform {

// The schedule and the micro-batches of a pipeline.
struct Pipelining {
  pipeline::ScheduleRule rule = {};
  int64_t micro_batches = 1;
};

// The schedule of this name, or in this file of actions. Throws NotSupported for an unknown name.
pipeline::ScheduleRule schedule_named(const std::string& text);

// Arranges the ranks as pipeline workers x data parallel x tensor parallel. A data or tensor
// parallel axis of one rank is omitted.
class TrainLayout {
 public:
  // Parses "dpN", "tpN", "ppN", "zeroN", "recompute" and "amp", joined by "+", or "ddpN". Throws
  // NotSupported for other words, and BadSpec if the product is not the number of ranks. The
  // schedule determines which stages a worker has.
  explicit TrainLayout(const std::string& text, const Pipelining& pipelining = {});

  bool is_global() const { return !placements_.empty(); }

  // True if each rank trains its own model on its rows, and gradients are averaged.
  bool has_replicas() const { return has_replicas_; }

  // The stage of ZeRO. 0: every rank holds all optimizer state of its parameters.
  int64_t zero_stage() const { return zero_stage_; }

  bool recomputes() const { return recomputes_; }

  bool is_mixed_precision() const { return is_mixed_precision_; }

  int64_t num_stages() const { return static_cast<int64_t>(worker_of_.size()); }

  // Splits the weights of consecutive layers by rows and by columns in turn, and sets stages and
  // recomputation on the modules. Throws NotSupported if there are more stages than modules.
  void lay_out(nn::ModuleBase& model) const;

  // Splits the rows of a local tensor that is the same on all ranks: over the data-parallel ranks
  // of the first stage, or as local tensors over replicas.
  Tensor inputs(const Tensor& batch) const { return rows(batch, 0); }

  // The same as inputs(), for the last stage.
  Tensor targets(const Tensor& batch) const { return rows(batch, num_stages() - 1); }

 private:
  void parse(const std::string& word);
  void check_together(const std::string& text) const;
  void assign_stages(const Pipelining& pipelining);
  NdSbp nd_sbp(Sbp data, Sbp tensor) const;
  void place(nn::ModuleBase& module, const std::string& prefix, int64_t stage) const;
  void place_stages(const nn::ModuleBase& model) const;
  Tensor rows(const Tensor& batch, int64_t stage) const;

  int64_t data_ = 1;
  int64_t tensor_ = 1;
  int64_t workers_ = 1;
  int64_t zero_stage_ = 0;
  bool has_replicas_ = false;
  bool recomputes_ = false;
  bool is_mixed_precision_ = false;
  std::vector<int64_t> worker_of_;     // by stage
  std::vector<Placement> placements_;  // by stage; empty if tensors are local
};

}  // namespace flow::conform
