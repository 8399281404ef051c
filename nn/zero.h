// ZeRO in a graph (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models"): where parameters and their gradients lie.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"
#include "graph/passes/shard_captures.h"
#include "graph/trace/tracer.h"
#include "nn/optim/optimizer.h"

namespace flow::nn {

// The parameters of a graph's optimizers that several ranks hold whole.
class ZeroParameters {
 public:
  // Lays an optimizer's parameters out for a stage: from 3 on cut, below as they lay before another
  // graph cut them. Collective where one moves.
  void add(optim::Optimizer& optimizer, int64_t stage);

  // The gradient of a parameter in the layout of its parts; undefined for other tensors.
  // `is_transient`: for each micro-batch apart.
  Tensor gradient_in_parts(const Tensor& parameter, const Tensor& gradient,
                           bool is_transient) const;

  // While it lives, parameters that are cut look as if they lay whole; they have no values.
  class [[nodiscard]] StandIns {
   public:
    explicit StandIns(const ZeroParameters& parameters);
    ~StandIns();
    StandIns(const StandIns&) = delete;
    StandIns& operator=(const StandIns&) = delete;

    // Puts the parameters in the place of their stand-ins in a step that was traced meanwhile.
    // Returns the layouts that the parameters have, for shard_captures().
    std::vector<graph::ShardedCapture> replace_in(graph::TracedStep& step) const;

   private:
    struct StandIn {
      Tensor parameter;
      Tensor data;   // the part
      Tensor whole;  // in its place
    };

    std::vector<StandIn> stand_ins_;
  };

 private:
  struct Entry {
    Tensor parameter;
    NdSbp whole;
    NdSbp parts;
  };

  const Entry* find(const Tensor& parameter) const;

  std::vector<Entry> entries_;
};

}  // namespace flow::nn
