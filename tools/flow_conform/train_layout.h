// How a training lies on the ranks.
#pragma once

#include <string>
#include <vector>

#include "nn/module.h"
#include "pipeline/schedule.h"

namespace flow::conform {

// How the stages of a pipeline take turns.
struct Pipelining {
  pipeline::ScheduleRule rule = {};
  int64_t micro_batches = 1;
};

// The rule that a name or a file of actions stands for. Throws NotSupported for another name.
pipeline::ScheduleRule schedule_named(const std::string& text);

// Ranks as workers of a pipeline x data x tensor parallel; of the latter two, an axis of one rank
// is left out.
class TrainLayout {
 public:
  // "dpN", "tpN", "ppN", "zeroN", "recompute", "amp" joined by "+", or "ddpN". Throws NotSupported
  // for other words, BadSpec where the product is not the number of ranks. The schedule says which
  // stages a worker has.
  explicit TrainLayout(const std::string& text, const Pipelining& pipelining = {});

  bool is_global() const { return !placements_.empty(); }

  // Each rank trains a model of its own on its rows, and gradients are averaged.
  bool has_replicas() const { return has_replicas_; }

  // 0: every rank holds all optimizer state of its parameters.
  int64_t zero_stage() const { return zero_stage_; }

  bool recomputes() const { return recomputes_; }

  bool is_mixed_precision() const { return is_mixed_precision_; }

  int64_t num_stages() const { return static_cast<int64_t>(worker_of_.size()); }

  // Weights of layers that follow each other are split by rows and by columns in turn; stages and
  // recomputation are set on the modules. Throws NotSupported for more stages than modules.
  void lay_out(nn::ModuleBase& model) const;

  // Of all ranks' equal local tensor: its rows go to the data-parallel ranks of the first stage,
  // local ones to replicas.
  Tensor inputs(const Tensor& batch) const { return rows(batch, 0); }

  // As inputs(), to the last stage.
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
  std::vector<Placement> placements_;  // by stage; empty: local tensors
};

}  // namespace flow::conform
