// A target network that follows a model: copied at first, then moved towards it by Polyak
// averaging.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

void copy_weights(const nn::ModuleBase& from, const nn::ModuleBase& to) {
  const flow::NoGradGuard no_grad;
  const auto source = from.parameters(), target = to.parameters();
  for (size_t i = 0; i < source.size(); ++i)
    target[i].copy_(source[i]);
}

// target = (1 - tau) target + tau source
void follow(const nn::ModuleBase& from, const nn::ModuleBase& to, double tau) {
  const flow::NoGradGuard no_grad;
  const auto source = from.parameters(), target = to.parameters();
  for (size_t i = 0; i < source.size(); ++i)
    target[i].lerp_(source[i], tau);
}

int main() {
  flow::manual_seed(0);
  nn::Linear online(3, 2),
      target(3, 2);  // two modules: `nn::Linear target = online` would be a handle
  expect(!flow::allclose(online.weight, target.weight), "they start with different weights");
  copy_weights(online, target);
  target.requires_grad_(false);
  expect(flow::equal(online.weight, target.weight), "the weights are copied");

  flow::optim::SGD optimizer(online.parameters(), {.lr = 0.5});
  flow::optim::MovingAverage average(online.parameters(), {.decay = 0.9});
  flow::Tensor followed = target.weight.clone(), averaged;
  for (int step = 0; step < 4; ++step) {
    const flow::Tensor x = flow::randn({8, 3});
    optimizer.zero_grad();
    flow::mse_loss(online(x), target(x) + 1).backward();
    optimizer.step();
    follow(online, target, 0.1);
    average.update();

    const flow::NoGradGuard no_grad;
    followed = 0.9 * followed + 0.1 * online.weight;
    averaged = step == 0 ? online.weight.clone() : 0.9 * averaged + 0.1 * online.weight;
  }
  expect(!target.weight.grad().defined(), "the target gets no gradient");
  expect(flow::allclose(target.weight, followed), "the target is the average by hand");
  expect(flow::allclose(average.averages()[0], averaged), "MovingAverage is the same average");
  expect(!flow::allclose(online.weight, target.weight), "the model goes its own way");

  const flow::Tensor own = online.weight.clone();
  {
    const auto scope = average.apply();
    expect(flow::allclose(online.weight, averaged), "within the scope the model has the averages");
  }
  expect(flow::equal(online.weight, own), "after the scope it has its own weights again");
}
