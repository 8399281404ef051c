// A function with a gradient of the user's own: the straight-through estimator, which rounds
// forward and passes the gradient on where the input is within bounds.
#include "tests/first_hour/expect.h"

struct RoundThrough : flow::Function<RoundThrough> {
  static flow::Tensor forward(flow::FunctionContext& ctx, const flow::Tensor& x, double bound) {
    ctx.save_for_backward({x});
    ctx.set(bound);
    return flow::clamp(flow::round(x), {-bound, bound});
  }

  static std::vector<flow::Tensor> backward(flow::FunctionContext& ctx,
                                            const std::vector<flow::Tensor>& dy) {
    const flow::Tensor x = ctx.saved()[0];
    return {dy[0] * (flow::abs(x) <= ctx.get<double>()).to(dy[0].dtype())};
  }
};

int main() {
  const flow::Tensor x = flow::tensor({-2.6f, -0.6f, 0.4f, 1.6f, 3.2f}, {.requires_grad = true});
  const flow::Tensor y = RoundThrough::apply(x, 2.0);
  expect_near(y, {-2, -1, 0, 2, 2}, "rounded and clamped");
  (y * y).sum().backward();
  expect_near(x.grad(), {0, -2, 0, 4, 0}, "2 y where |x| <= 2");
}
