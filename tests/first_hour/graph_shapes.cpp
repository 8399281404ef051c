// A graph for evaluation, called with batches of several sizes.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

struct Scores : nn::Graph<Scores> {
  nn::Sequential model;

  explicit Scores(nn::Sequential m) : model(m) {}

  std::pair<flow::Tensor, flow::Tensor> build(const flow::Tensor& x) {
    const flow::Tensor p = flow::softmax(model(x), 1);
    return {p, p.argmax(1)};
  }
};

int main() {
  flow::manual_seed(0);
  nn::Sequential model(nn::Linear(5, 16), nn::Tanh(), nn::Dropout(0.5), nn::Linear(16, 3));
  model.eval();
  Scores graph(model);
  for (const int64_t rows : {1, 8, 3, 8, 0}) {
    const flow::Tensor x = flow::randn({rows, 5});
    const auto [p, best] = graph(x);
    expect(p.shape() == flow::Shape{rows, 3}, "a row of probabilities for each sample");
    expect(flow::allclose(p, flow::softmax(model(x), 1)), "the graph equals the model");
    expect(flow::equal(best, p.argmax(1)), "the second result belongs to the first");
  }

  // A write to the weights is seen by the next call.
  const flow::Tensor x = flow::randn({2, 5});
  const flow::Tensor before = graph(x).first;
  {
    const flow::NoGradGuard no_grad;
    for (const flow::Tensor& parameter : model.parameters())
      parameter.mul_(2);
  }
  expect(!flow::allclose(graph(x).first, before), "new weights give new results");
  flow::print(graph.compile(x).summary());
}
