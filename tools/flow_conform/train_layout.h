// How a training lies on the ranks.
#pragma once

#include <string>

#include "nn/module.h"

namespace flow::conform {

// Ranks as data x tensor parallel; an axis of one rank is left out.
class TrainLayout {
 public:
  // "dpN", "tpN", "zero1" joined by "+", or "ddpN". Throws NotSupported for other words, BadSpec
  // where the product is not the number of ranks.
  explicit TrainLayout(const std::string& text);

  bool is_global() const { return placement_.defined(); }

  // Each rank trains a model of its own on its rows, and gradients are averaged.
  bool has_replicas() const { return has_replicas_; }

  bool shards_state() const { return shards_state_; }

  // Weights of layers that follow each other are split by rows and by columns in turn.
  void lay_out(nn::ModuleBase& model) const;
  // Of all ranks' equal local tensor: its rows go to the data-parallel ranks, local ones to
  // replicas.
  Tensor rows(const Tensor& batch) const;

 private:
  NdSbp nd_sbp(Sbp data, Sbp tensor) const;

  int64_t data_ = 1;
  int64_t tensor_ = 1;
  bool shards_state_ = false;
  bool has_replicas_ = false;
  Placement placement_;
};

}  // namespace flow::conform
