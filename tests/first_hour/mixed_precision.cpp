// bfloat16 and float16 under autocast, with a scaler for float16.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

double trained_loss(std::optional<flow::DType> dtype) {
  flow::manual_seed(2);
  nn::Sequential model(nn::Linear(8, 64), nn::GELU(), nn::Linear(64, 1));
  flow::optim::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  flow::optim::GradScaler scaler({.enabled = dtype == flow::float16});
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    const flow::Tensor x = flow::randn({64, 8});
    const flow::Tensor wanted = flow::sin(x.sum(1, {.keepdim = true}));
    flow::Tensor loss;
    if (dtype) {
      const flow::AutocastGuard autocast(*dtype);
      const flow::Tensor y = model(x);
      expect(y.dtype() == *dtype, "products have the dtype of autocast");
      loss = flow::mse_loss(y, wanted);
    } else {
      loss = flow::mse_loss(model(x), wanted);
    }
    expect(loss.dtype() == flow::float32, "losses are float32");
    optimizer.zero_grad();
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    last = loss.item();
  }
  for (const flow::Tensor& parameter : model.parameters())
    expect(parameter.dtype() == flow::float32 && parameter.grad().dtype() == flow::float32,
           "weights stay float32");
  return last;
}

int main() {
  const double full = trained_loss({}), brain = trained_loss(flow::bfloat16),
               half = trained_loss(flow::float16);
  flow::print("float32", full, "bfloat16", brain, "float16", half);
  expect_near(brain, full, "the loss in bfloat16", 0.1);
  expect_near(half, full, "the loss in float16", 0.05);
}
