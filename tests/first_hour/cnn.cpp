// A convolutional network whose losses, and outputs after training, are those of PyTorch.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

flow::Tensor wave(const flow::Shape& shape, double phase = 0) {
  return flow::sin(flow::arange(shape.numel(), {.dtype = flow::float32}) + phase).reshape(shape);
}

int main() {
  nn::Sequential net(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Conv2d(4, 8, 3, {.stride = 2}), nn::BatchNorm2d(8), nn::ReLU(),
                     nn::Flatten(), nn::Linear(72, 3));
  {
    const flow::NoGradGuard no_grad;
    double phase = 0;
    for (const flow::Tensor& parameter : net.parameters())
      parameter.copy_(0.3 * wave(parameter.shape(), phase++));
  }
  const flow::Tensor images = wave({6, 1, 16, 16});
  const flow::Tensor labels = flow::tensor(std::vector<int64_t>{0, 1, 2, 0, 1, 2}, {6});
  flow::optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});

  const double wanted[] = {1.155845284461975, 1.1191083192825317, 1.06112539768219,
                           1.0391422510147095};
  for (const double loss_of_pytorch : wanted) {
    const flow::Tensor loss = flow::cross_entropy(net(images), labels);
    expect_near(loss.item(), loss_of_pytorch, "the loss", 2e-4);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  net.eval();
  expect_near(net(images)[0], {0.08235055208206177, 0.34436675906181335, 0.08713153749704361},
              "the scores of the first image", 5e-3);
}
