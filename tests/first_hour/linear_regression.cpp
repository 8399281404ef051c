// Fits y = 3 x0 - 2 x1 + 0.5 by gradient descent.
#include "tests/first_hour/expect.h"

int main() {
  flow::manual_seed(1);
  const flow::Tensor x = flow::randn({200, 2});
  const flow::Tensor y = x.matmul(flow::tensor({{3.f}, {-2.f}})) + 0.5;

  flow::nn::Linear model(2, 1);
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  float loss = 0;
  for (int step = 0; step < 200; ++step) {
    const flow::Tensor error = flow::mse_loss(model(x), y);
    optimizer.zero_grad();
    error.backward();
    optimizer.step();
    loss = static_cast<float>(error.item());
  }
  flow::print("loss", loss, "weight", model.weight, "bias", model.bias);
  expect(loss < 1e-8, "the loss is almost 0");
  expect_near(model.weight, {3, -2}, "the weight", 1e-3);
  expect_near(model.bias, {0.5}, "the bias", 1e-3);
}
