// A model of two stages, one data and one model parallel (support/hybrid_model.h), trained for a
// few steps.
//
//   flowrun -n 4 build/release/bin/hybrid_eager
#include <flow/flow.h>

#include "support/hybrid_model.h"

namespace sbp = flow::sbp;
using flow::Tensor;

int main() {
  flow::manual_seed(1);
  Hybrid model;
  const Tensor x = flow::randn({4, 5}, {.placement = kFirst, .sbp = sbp::split(0)});
  const Tensor y = flow::randn({4, 3}, {.placement = kSecond, .sbp = sbp::broadcast});
  const auto [h, z] = model(x);
  if (flow::env::rank() == 0) flow::print(h.shape(), z.shape());  // (4, 8) (4, 3)

  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.05});
  for (int step = 0; step < 20; ++step) {
    const Tensor loss = flow::mse_loss(model(x).second, y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    const auto value = loss.item<float>();  // collective: every rank learns it
    if (flow::env::rank() == 0 && step % 5 == 0) flow::print("step", step, "loss", value);
  }
  if (flow::env::rank() == 0) flow::print(model.layout_table());
}
