// Splits the weights of an MLP over two ranks: results and gradients do not change.
#include <sstream>

#include "tests/first_hour/expect.h"

namespace nn = flow::nn;
namespace sbp = flow::sbp;

struct FeedForward : nn::Module<FeedForward> {
  nn::Linear up{register_module("up", nn::Linear(8, 32))};
  nn::Linear down{register_module("down", nn::Linear(32, 8))};

  flow::Tensor forward(const flow::Tensor& x) { return down(flow::gelu(up(x))); }
};

int main() {
  const flow::Placement both("cpu", {0, 1});
  flow::manual_seed(1);
  FeedForward single, split;
  split.load_state_dict(single.state_dict());
  split.to_global(both,
                  {{"up.*", sbp::split(0)}, {"down.weight", sbp::split(1)}, {"*", sbp::broadcast}});
  copy_values(split, single);
  expect(split.up.weight.shape() == flow::Shape{32, 8}, "the logical shape stays");
  expect(split.up.weight.to_local().shape() == flow::Shape{16, 8},
         "each rank has half of the rows");

  const flow::Tensor x = flow::randn({4, 8}, {.placement = both, .sbp = sbp::broadcast});
  flow::reset_boxing_report();
  const flow::Tensor y = split(x);
  y.sum().backward();
  const flow::Tensor wanted = single(x.full());
  wanted.sum().backward();
  expect(flow::allclose(y.full(), wanted, {.atol = 1e-6}), "the result");
  expect(split.up.weight.grad().sbp() == sbp::split(0), "the gradient is split as its weight is");
  expect(flow::allclose(split.up.weight.grad().full(), single.up.weight.grad(), {.atol = 1e-6}),
         "the gradient of up");
  expect(flow::allclose(split.down.weight.grad().full(), single.down.weight.grad(), {.atol = 1e-6}),
         "the gradient of down");
  if (flow::env::rank() == 0) flow::print(flow::boxing_report());
  std::ostringstream report;
  report << flow::boxing_report();
  expect(report.str().find("all_reduce") != std::string::npos, "the partial sums were reduced");
}
