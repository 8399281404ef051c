// Trains a model of two stages, one data parallel and one model parallel (support/hybrid_model.h),
// for a few steps.
//
//   flowrun -n 4 build/release/bin/hybrid_eager
#include <flow/flow.h>

#include "support/arguments.h"
#include "support/hybrid_model.h"
#include "support/report.h"
#include "support/training.h"

namespace sbp = flow::sbp;
using flow::Tensor;

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Trains a model of two stages.",
                                        {.files = false});
    flow::manual_seed(arguments.seed);
    Hybrid model(arguments.device);
    const Tensor x = flow::randn({4, 5}, {.placement = model.first, .sbp = sbp::split(0)});
    const Tensor y = flow::randn({4, 3}, {.placement = model.second, .sbp = sbp::broadcast});
    const auto [h, z] = model(x);
    if (flow::env::rank() == 0) flow::print(h.shape(), z.shape());  // (4, 8) (4, 3)

    flow::optim::SGD optimizer(model.parameters(), {.lr = 0.05});
    const int64_t steps = arguments.steps > 0 ? arguments.steps : 20;
    examples::StepLog log(arguments.log);
    for (int64_t step = 0; step < steps; ++step) {
      const Tensor loss = flow::mse_loss(model(x).second, y);
      optimizer.zero_grad();
      loss.backward();
      const double norm = log.is_on() ? examples::gradient_norm(model.parameters()) : 0;
      optimizer.step();
      const auto value = loss.item<float>();  // collective: every rank receives the value
      if (flow::env::rank() == 0 && step % 5 == 0) flow::print("step", step, "loss", value);
      log.write(step, value, norm, optimizer.lr(), log.rate_of(x.size(0)));
    }
    if (flow::env::rank() == 0) flow::print(model.layout_table());
  });
}
