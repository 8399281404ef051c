// Slices of split dims: their values are those of the logical tensor, and flow lays them out.
#include "tests/first_hour/expect.h"

namespace sbp = flow::sbp;

int main() {
  const flow::Placement both("cpu", {0, 1});
  const flow::Tensor x = flow::arange(12, {.dtype = flow::float32}).reshape({6, 2});
  const flow::Tensor global =
      x.to_global({.placement = both, .sbp = sbp::broadcast}).to_global({.sbp = sbp::split(0)});
  expect_near(global, x.to_vector<double>(), "the logical values");

  for (const auto& [text, slice, wanted] :
       {std::tuple("x[2]", global[2], x[2]),
        std::tuple("x[1:5]", global.narrow(0, 1, 4), x.narrow(0, 1, 4)),
        std::tuple("x[::2]", global.index({flow::Slice(flow::None, flow::None, 2)}),
                   x.index({flow::Slice(flow::None, flow::None, 2)})),
        std::tuple("x[:, 1]", global.index({flow::Slice(), 1}), x.index({flow::Slice(), 1}))}) {
    if (flow::env::rank() == 0)
      flow::print(text, slice.shape(), slice.sbp(), slice.to_local().shape());
    expect_near(slice, wanted.to_vector<double>(), text);
  }

  // A write through a slice changes the tensor on every layout.
  flow::Tensor y = global.clone();
  y[4] = 100;
  y.narrow(0, 0, 3).mul_(2);
  expect_near(y, {0, 2, 4, 6, 8, 10, 6, 7, 100, 100, 10, 11}, "what was written");
  expect(y.sbp() == sbp::split(0), "the tensor stays split");
}
