// Trains an MLP on pictures of digits in the shape of MNIST, and measures how many it knows.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

struct Classifier : nn::Module<Classifier> {
  nn::Linear fc1{register_module("fc1", nn::Linear(28 * 28, 128))};
  nn::Linear fc2{register_module("fc2", nn::Linear(128, 10))};

  flow::Tensor forward(const flow::Tensor& images) {
    return fc2(flow::relu(fc1(images.flatten(1))));
  }
};

double accuracy(Classifier& model, const flow::data::Mnist& digits) {
  const flow::NoGradGuard no_grad;
  model.eval();
  const flow::Tensor found = model(digits.images()).argmax(1);
  model.train();
  return (found == digits.labels()).to(flow::float32).mean().item();
}

int main() {
  flow::manual_seed(0);
  const flow::data::Mnist train(flow::data::generate_digits(3000, 1));
  const flow::data::Mnist test(flow::data::generate_digits(500, 2));
  flow::data::DataLoader loader(train, {.batch_size = 50, .shuffle = true});
  Classifier model;
  flow::optim::Adam optimizer(model.parameters(), {.lr = 2e-3});
  const double before = accuracy(model, test);
  for (int epoch = 0; epoch < 12; ++epoch) {
    for (const auto& [images, labels] : loader) {
      optimizer.zero_grad();
      flow::cross_entropy(model(images), labels).backward();
      optimizer.step();
    }
  }
  const double after = accuracy(model, test);
  flow::print("accuracy before", before, "after", after);
  expect(before < 0.3, "an untrained model guesses");
  expect(after > 0.7, "the trained model knows most digits it has not seen");
}
