// A training step as a compiled graph: its losses and weights are those of the eager loop.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

struct Net : nn::Module<Net> {
  nn::Linear fc1{register_module("fc1", nn::Linear(6, 32))};
  nn::LayerNorm norm{register_module("norm", nn::LayerNorm({32}))};
  nn::Linear fc2{register_module("fc2", nn::Linear(32, 3))};

  flow::Tensor forward(const flow::Tensor& x) {
    return fc2(flow::dropout(flow::gelu(norm(fc1(x))), {.p = 0.1, .training = is_training()}));
  }
};

struct TrainStep : nn::Graph<TrainStep> {
  Net net;

  TrainStep(Net n, flow::optim::AdamW& optimizer) : net(register_module("net", n)) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
  }

  flow::Tensor build(const flow::Tensor& x, const flow::Tensor& labels) {
    const flow::Tensor loss = flow::cross_entropy(net(x), labels);
    loss.backward();
    return loss;
  }
};

int main() {
  flow::manual_seed(4);
  Net eager, compiled;
  compiled.load_state_dict(eager.state_dict());
  flow::optim::AdamW eager_optimizer(eager.parameters(), {.lr = 1e-2});
  flow::optim::AdamW optimizer(compiled.parameters(), {.lr = 1e-2});
  TrainStep step(compiled, optimizer);

  for (int i = 0; i < 10; ++i) {
    const flow::Tensor x = flow::randn({16, 6});
    const flow::Tensor labels = flow::randint(3, {16}, {.dtype = flow::int64});
    const auto random = flow::generator_state();
    const flow::Tensor loss = flow::cross_entropy(eager(x), labels);
    eager_optimizer.zero_grad();
    loss.backward();
    nn::utils::clip_grad_norm_(eager.parameters(), 1.0);
    eager_optimizer.step();

    flow::set_generator_state(random);  // the graph draws the same dropout
    expect_near(step(x, labels).item(), loss.item(), "the loss of the graph", 1e-6);
  }
  expect(flow::allclose(compiled.fc1.weight, eager.fc1.weight), "the weights are the same");
  flow::print(step.explain());
}
