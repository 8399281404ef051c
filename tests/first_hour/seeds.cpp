// Random numbers: what they depend on.
#include "tests/first_hour/expect.h"

namespace sbp = flow::sbp;

int main() {
  // Without manual_seed the seed is 0, so every run draws the same numbers.
  expect(flow::generator_state().seed == 0, "the default seed is 0");
  const flow::Tensor first = flow::randn({4, 3});
  const flow::Tensor second = flow::randn({4, 3});
  expect(!flow::equal(first, second), "each draw has other numbers");
  flow::manual_seed(0);
  expect(flow::equal(flow::randn({4, 3}), first), "the seed restarts the numbers");

  // A layout does not change them.
  const flow::Placement both("cpu", {0, 1});
  const auto draw = [&](const flow::NdSbp& layout) {
    flow::manual_seed(5);
    return flow::randn({4, 3}, {.placement = both, .sbp = layout}).full();
  };
  expect(flow::equal(draw(sbp::split(0)), draw(sbp::broadcast)), "split rows have the same values");
  expect(flow::equal(draw(sbp::split(1)), draw(sbp::broadcast)), "and so have split columns");

  // Local draws differ between ranks, though the seed is the same.
  flow::manual_seed(5);
  const flow::Tensor local = flow::randn({2});
  const flow::Tensor all = flow::comm::all_gather(local.unsqueeze(0));
  expect(!flow::equal(all[0], all[1]), "each rank draws its own local values");

  // The state of the generator is two numbers.
  const auto state = flow::generator_state();
  const flow::Tensor drawn = flow::rand({3});
  flow::set_generator_state(state);
  expect(flow::equal(flow::rand({3}), drawn), "a state that is set again gives the same numbers");
}
