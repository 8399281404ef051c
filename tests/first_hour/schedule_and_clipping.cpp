// AdamW with a warm-up, a cosine schedule and clipped gradients: the numbers are those of PyTorch.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;
namespace schedules = flow::optim::lr_scheduler;

flow::Tensor wave(const flow::Shape& shape, double phase = 0) {
  return flow::sin(flow::arange(shape.numel(), {.dtype = flow::float32}) + phase).reshape(shape);
}

int main() {
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 2));
  {
    const flow::NoGradGuard no_grad;
    double phase = 0;
    for (const flow::Tensor& parameter : net.parameters())
      parameter.copy_(0.5 * wave(parameter.shape(), phase++));
  }
  const flow::Tensor x = wave({5, 4}), y = wave({5, 2}, 1);
  flow::optim::AdamW optimizer(net.parameters(), {.lr = 0.05, .weight_decay = 0.1});
  schedules::LinearLR warm_up(optimizer, {.start_factor = 0.25, .total_iters = 2});
  schedules::CosineAnnealingLR cosine(optimizer, {.T_max = 4});
  schedules::SequentialLR schedule(optimizer, {&warm_up, &cosine}, {.milestones = {2}});

  struct Step {
    double loss, norm, lr;
  };

  const Step wanted[] = {{1.0593583583831787, 2.026719093322754, 0.0125},
                         {0.9341815710067749, 1.865167260169983, 0.03125},
                         {0.6710941195487976, 1.495002269744873, 0.05},
                         {0.384186327457428, 1.0009182691574097, 0.04267766952966369},
                         {0.2497943639755249, 0.6887983083724976, 0.025}};
  for (const Step& step : wanted) {
    const flow::Tensor loss = flow::mse_loss(net(x), y);
    optimizer.zero_grad();
    loss.backward();
    const flow::Tensor norm = nn::utils::clip_grad_norm_(net.parameters(), 0.5);
    expect_near(loss.item(), step.loss, "the loss", 1e-4);
    expect_near(norm.item(), step.norm, "the norm of the gradients", 1e-4);
    expect_near(optimizer.lr(), step.lr, "the learning rate", 1e-9);
    optimizer.step();
    schedule.step();
  }
}
