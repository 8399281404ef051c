// ZeRO in a graph (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models"): the layout of parameters and their gradients.
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
  // Changes an optimizer's parameters to the layout of a stage: shards from stage 3 on; below it,
  // the layout that they had before another graph sharded them. Collective if a parameter moves.
  void add(optim::Optimizer& optimizer, int64_t stage);

  // Returns the gradient of a parameter in the layout of its shards, and an undefined tensor if the
  // parameter is not sharded. `is_transient`: do this for each micro-batch separately.
  Tensor gradient_in_parts(const Tensor& parameter, const Tensor& gradient,
                           bool is_transient) const;

  // While an instance lives, sharded parameters appear to be whole, but have no values.
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
      Tensor data;   // the shard
      Tensor whole;  // the stand-in for the whole parameter
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
