// A model of two stages on four ranks: the first data parallel on ranks 0 and 1, the second model
// parallel on ranks 2 and 3; trained for a few steps.
//
//   flowrun -n 4 build/release/bin/hybrid_eager
#include <utility>

#include <flow/flow.h>

namespace nn = flow::nn;
namespace sbp = flow::sbp;
using flow::Tensor;

namespace {

const flow::Placement kFirst("cpu", {0, 1}), kSecond("cpu", {2, 3});

struct Stage : nn::Module<Stage> {
  Tensor w;

  Stage(int64_t in, int64_t out, const flow::Placement& placement, flow::Sbp entry)
      : w(register_parameter("w", flow::randn({in, out}, {.placement = placement, .sbp = entry}))) {
  }

  Tensor forward(const Tensor& x) { return flow::matmul(x, w); }
};

struct Hybrid : nn::Module<Hybrid> {
  Stage stage0{register_module("stage0", Stage(5, 8, kFirst, sbp::broadcast))};
  Stage stage1{register_module("stage1", Stage(8, 3, kSecond, sbp::split(1)))};

  std::pair<Tensor, Tensor> forward(const Tensor& x) {
    const Tensor h = stage0(x);
    return {h, stage1(h.to_global({.placement = kSecond, .sbp = sbp::broadcast}))};
  }
};

}  // namespace

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
