// The embedding's weight is the output layer's: one parameter with the sum of both gradients. The
// numbers are those of PyTorch.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

struct Bigram : nn::Module<Bigram> {
  nn::Embedding tokens{register_module("tokens", nn::Embedding(5, 3))};

  flow::Tensor forward(const flow::Tensor& x) { return flow::linear(tokens(x), tokens.weight); }
};

int main() {
  Bigram model;
  {
    const flow::NoGradGuard no_grad;
    model.tokens.weight.copy_(
        flow::sin(flow::arange(15, {.dtype = flow::float32})).reshape({5, 3}));
  }
  expect(model.parameters().size() == 1, "one parameter");
  const flow::Tensor logits = model(flow::tensor(std::vector<int64_t>{1, 3, 1}, {3}));
  const flow::Tensor loss =
      flow::cross_entropy(logits, flow::tensor(std::vector<int64_t>{0, 2, 4}, {3}));
  loss.backward();
  expect_near(loss.item(), 3.6739959716796875, "the loss");
  expect_near(model.tokens.weight.grad(),
              {-0.04103688523173332, 0.23541149497032166, 0.2954236567020416, 0.4389755129814148,
               -1.117841362953186, -1.646920084953308, -0.13166067004203796, 0.1646568477153778,
               0.3095896244049072, 0.2781156897544861, -0.7100297212600708, -1.0453770160675049,
               -0.040908101946115494, 0.23363763093948364, 0.29337799549102783},
              "the gradient of both uses");
}
