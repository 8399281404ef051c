// hybrid_eager.cpp as a compiled graph: a stage on ranks 0 and 1, one on ranks 2 and 3, trained by
// a step that is traced once and replayed.
//
//   flowrun -n 4 build/release/bin/hybrid_graph
#include <array>
#include <cmath>

#include <flow/flow.h>

#include "support/arguments.h"
#include "support/hybrid_model.h"
#include "support/report.h"
#include "support/training.h"

namespace nn = flow::nn;
namespace sbp = flow::sbp;
using flow::Tensor;

namespace {

struct Train : nn::Graph<Train> {
  Hybrid model;

  Train(Hybrid m, flow::optim::SGD& optimizer) : model(m) {
    model.stage0.to<nn::GraphModule>().set_stage(0, model.first);
    model.stage1.to<nn::GraphModule>().set_stage(1, model.second);
    add_optimizer(optimizer);
  }

  // The loss, and the sums of squares of both gradients, which lie on different ranks.
  std::array<Tensor, 3> build(const Tensor& x, const Tensor& y) {
    Tensor loss = flow::mse_loss(model(x).second, y);
    loss.backward();
    return {loss, flow::square(model.stage0.w.grad()).sum(),
            flow::square(model.stage1.w.grad()).sum()};
  }
};

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(
        argc, argv, "Trains a model of two stages as a compiled graph.", {.files = false});
    flow::manual_seed(arguments.seed);
    Hybrid model(arguments.device);
    const Tensor x = flow::randn({4, 5}, {.placement = model.first, .sbp = sbp::split(0)});
    const Tensor y = flow::randn({4, 3}, {.placement = model.second, .sbp = sbp::broadcast});
    flow::optim::SGD optimizer(model.parameters(), {.lr = 0.05});
    Train graph(model, optimizer);
    if (flow::env::rank() == 0) flow::print(graph.compile(x, y).summary());
    const int64_t steps = arguments.steps > 0 ? arguments.steps : 20;
    examples::StepLog log(arguments.log);
    for (int64_t step = 0; step < steps; ++step) {
      const auto [value, first, second] = graph(x, y);
      const auto loss = value.item<float>();  // every rank holds it: no rank waits
      if (flow::env::rank() == 0 && step % 5 == 0) flow::print("step", step, "loss", loss);
      const double norm = std::sqrt(first.item<double>() + second.item<double>());
      log.write(step, loss, norm, optimizer.lr(), log.rate_of(x.size(0)));
    }
  });
}
