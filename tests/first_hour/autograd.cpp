// Gradients, checked by hand and by formulas.
#include "tests/first_hour/expect.h"

int main() {
  const flow::Tensor x =
      flow::tensor({0.5, 1.0, 2.0}, {.dtype = flow::float64, .requires_grad = true});
  const flow::Tensor w =
      flow::tensor({1.0, -2.0, 3.0}, {.dtype = flow::float64, .requires_grad = true});
  const flow::Tensor y = (flow::sin(x) * w).sum();
  y.backward();
  expect_near(x.grad(), {std::cos(0.5), -2 * std::cos(1.0), 3 * std::cos(2.0)}, "w cos(x)");
  expect_near(w.grad(), {std::sin(0.5), std::sin(1.0), std::sin(2.0)}, "sin(x)");

  // Gradients add up until they are reset.
  (x * x).sum().backward();
  expect_near(x.grad(), {std::cos(0.5) + 1, -2 * std::cos(1.0) + 2, 3 * std::cos(2.0) + 4},
              "sum of both");
  x.set_grad(flow::Tensor());
  expect(!x.grad().defined(), "the gradient is gone");

  // The gradient of a gradient.
  const flow::Tensor cube = (x * x * x).sum();
  const flow::Tensor first = flow::grad({cube}, {x}, {.create_graph = true})[0];
  const flow::Tensor second = flow::grad({first.sum()}, {x})[0];
  expect_near(first, {0.75, 3, 12}, "3 x^2");
  expect_near(second, {3, 6, 12}, "6 x");

  {
    const flow::NoGradGuard no_grad;
    expect(!(x * 2).requires_grad(), "nothing is recorded");
  }
  expect(!x.detach().requires_grad(), "a detached tensor has no history");
  expect(flow::gradcheck([](const auto& in) { return std::vector{flow::tanh(in[0]) / in[1]}; },
                         {x, w}),
         "gradcheck agrees");
}
