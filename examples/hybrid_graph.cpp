// hybrid_eager.cpp as a compiled graph: a stage on ranks 0 and 1, one on ranks 2 and 3, trained by
// a step that is traced once and replayed.
//
//   flowrun -n 4 build/release/bin/hybrid_graph
#include <flow/flow.h>

#include "support/hybrid_model.h"

namespace nn = flow::nn;
namespace sbp = flow::sbp;
using flow::Tensor;

namespace {

struct Train : nn::Graph<Train> {
  Hybrid model;

  Train(Hybrid m, flow::optim::SGD& optimizer) : model(m) {
    model.stage0.to<nn::GraphModule>().set_stage(0, kFirst);
    model.stage1.to<nn::GraphModule>().set_stage(1, kSecond);
    add_optimizer(optimizer);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = flow::mse_loss(model(x).second, y);
    loss.backward();
    return loss;
  }
};

}  // namespace

int main() {
  flow::manual_seed(1);
  Hybrid model;
  const Tensor x = flow::randn({4, 5}, {.placement = kFirst, .sbp = sbp::split(0)});
  const Tensor y = flow::randn({4, 3}, {.placement = kSecond, .sbp = sbp::broadcast});
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.05});
  Train graph(model, optimizer);
  if (flow::env::rank() == 0) flow::print(graph.compile(x, y).summary());
  for (int step = 0; step < 20; ++step) {
    const auto loss = graph(x, y).item<float>();  // lies on every rank: waits for nobody
    if (flow::env::rank() == 0 && step % 5 == 0) flow::print("step", step, "loss", loss);
  }
}
