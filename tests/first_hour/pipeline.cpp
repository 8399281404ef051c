// A model in two stages on two ranks, trained in micro-batches: the losses are those of one rank.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;
namespace sbp = flow::sbp;

struct Net : nn::Module<Net> {
  nn::Sequential front{register_module("front", nn::Sequential(nn::Linear(6, 24), nn::GELU()))};
  nn::Sequential back{
      register_module("back", nn::Sequential(nn::Linear(24, 24), nn::GELU(), nn::Linear(24, 3)))};

  flow::Tensor forward(const flow::Tensor& x) { return back(front(x)); }
};

struct TrainStep : nn::Graph<TrainStep> {
  Net net;

  TrainStep(Net n, flow::optim::AdamW& optimizer, const flow::Placement& first,
            const flow::Placement& last)
      : net(n) {
    net.front.to<nn::GraphModule>().set_stage(0, first);
    net.back.to<nn::GraphModule>().set_stage(1, last);
    add_optimizer(optimizer);
    config().set_micro_batches(4).set_schedule(flow::pipeline::one_f_one_b());
  }

  flow::Tensor build(const flow::Tensor& x, const flow::Tensor& labels) {
    const flow::Tensor loss = flow::cross_entropy(net(x), labels);
    loss.backward();
    return loss;
  }
};

int main() {
  const flow::Placement first("cpu", {0}), last("cpu", {1});
  flow::manual_seed(3);
  Net single, staged;
  staged.front.to_global(first, sbp::broadcast);
  staged.back.to_global(last, sbp::broadcast);
  copy_values(staged, single);
  flow::optim::AdamW single_optimizer(single.parameters(), {.lr = 1e-2});
  flow::optim::AdamW optimizer(staged.parameters(), {.lr = 1e-2});
  TrainStep step(staged, optimizer, first, last);

  for (int i = 0; i < 5; ++i) {
    const flow::Tensor x = flow::randn({16, 6}, {.placement = first, .sbp = sbp::broadcast});
    const flow::Tensor labels =
        flow::randint(3, {16}, {.dtype = flow::int64, .placement = last, .sbp = sbp::broadcast});
    const flow::Tensor loss = flow::cross_entropy(single(x.full()), labels.full());
    single_optimizer.zero_grad();
    loss.backward();
    single_optimizer.step();
    expect_near(step(x, labels).item(), loss.item(), "the loss of the pipeline", 1e-5);
  }
}
