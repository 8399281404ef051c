// A model of two stages on four ranks: the first data parallel on ranks 0 and 1, the second model
// parallel on ranks 2 and 3.
#pragma once

#include <string>
#include <utility>

#include <flow/flow.h>

struct Stage : flow::nn::Module<Stage> {
  flow::Tensor w;

  Stage(int64_t in, int64_t out, const flow::Placement& placement, flow::Sbp entry)
      : w(register_parameter("w", flow::randn({in, out}, {.placement = placement, .sbp = entry}))) {
  }

  flow::Tensor forward(const flow::Tensor& x) { return flow::matmul(x, w); }
};

struct Hybrid : flow::nn::Module<Hybrid> {
  flow::Placement first, second;
  Stage stage0, stage1;

  explicit Hybrid(const std::string& device)
      : first(device, {0, 1}),
        second(device, {2, 3}),
        stage0(register_module("stage0", Stage(5, 8, first, flow::sbp::broadcast))),
        stage1(register_module("stage1", Stage(8, 3, second, flow::sbp::split(1)))) {}

  std::pair<flow::Tensor, flow::Tensor> forward(const flow::Tensor& x) {
    const flow::Tensor h = stage0(x);
    return {h, stage1(h.to_global({.placement = second, .sbp = flow::sbp::broadcast}))};
  }
};
