// The first steps of PyTorch's tutorials: a whole training, tensors, gradients, the training loop,
// saving and loading.
#include "tests/tutorials/tutorial.h"

namespace nn = flow::nn;

namespace {

struct NeuralNetwork : nn::Module<NeuralNetwork> {
  nn::Flatten flatten{register_module("flatten", nn::Flatten())};
  nn::Sequential linear_relu_stack{register_module(
      "linear_relu_stack", nn::Sequential(nn::Linear(28 * 28, 64), nn::ReLU(), nn::Linear(64, 64),
                                          nn::ReLU(), nn::Linear(64, 10)))};

  flow::Tensor forward(const flow::Tensor& x) { return linear_relu_stack(flatten(x)); }
};

template <class Loader>
void train(Loader& loader, NeuralNetwork& model, flow::optim::Optimizer& optimizer) {
  nn::CrossEntropyLoss loss_fn;
  model.train();
  for (const auto& [x, y] : loader) {
    const flow::Tensor loss = loss_fn(model(x), y);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
  }
}

template <class Loader>
double accuracy(Loader& loader, NeuralNetwork& model) {
  model.eval();
  const flow::NoGradGuard no_grad;
  double correct = 0, count = 0;
  for (const auto& [x, y] : loader) {
    correct += (model(x).argmax(1) == y).sum().item();
    count += static_cast<double>(y.size(0));
  }
  return correct / count;
}

void quickstart() {
  flow::data::DataLoader training(flow::data::Mnist(flow::data::generate_digits(2000, 1)),
                                  {.batch_size = 64, .shuffle = true});
  flow::data::DataLoader test(flow::data::Mnist(flow::data::generate_digits(300, 2)),
                              {.batch_size = 100});
  NeuralNetwork model;
  expect(model.repr() ==
             "NeuralNetwork(\n"
             "  (flatten): Flatten(start_dim=1, end_dim=-1)\n"
             "  (linear_relu_stack): Sequential(\n"
             "    (0): Linear(in_features=784, out_features=64, bias=True)\n"
             "    (1): ReLU()\n"
             "    (2): Linear(in_features=64, out_features=64, bias=True)\n"
             "    (3): ReLU()\n"
             "    (4): Linear(in_features=64, out_features=10, bias=True)\n"
             "  )\n"
             ")",
         "the model prints as in PyTorch:\n" + model.repr());
  flow::optim::Adam optimizer(model.parameters(), {.lr = 2e-3});
  const double before = accuracy(test, model);
  for (int epoch = 0; epoch < 8; ++epoch)
    train(training, model, optimizer);
  const double after = accuracy(test, model);
  flow::print("accuracy", before, "->", after);
  expect(before < 0.3 && after > 0.55, "training helps");
}

void tensors() {
  const flow::Tensor data = flow::tensor({{1, 2}, {3, 4}});
  expect(data.dtype() == flow::int64, "integers make int64");
  const flow::Tensor ones = flow::ones_like(data);
  const flow::Tensor random = flow::rand_like(data, {.dtype = flow::float32});
  expect_near(ones, {1, 1, 1, 1}, "ones_like");
  expect((random >= 0).all().item<bool>() && (random < 1).all().item<bool>(), "rand in [0, 1)");

  flow::Tensor tensor = flow::ones({4, 4});
  tensor.index({flow::Slice(), 1}) = 0;
  expect(tensor.sum().item() == 12, "a column is 0");
  const flow::Tensor joined = flow::cat({tensor, tensor, tensor}, 1);
  expect(joined.shape() == flow::Shape{4, 12}, "three side by side");
  const flow::Tensor y1 = tensor.matmul(tensor.t()), y2 = tensor * tensor;
  expect_near(y1[0], {3, 3, 3, 3}, "the matrix product");
  expect(flow::equal(y2, tensor), "the elementwise product of 0 and 1");
  tensor.add_(5);
  expect_near(tensor[0], {6, 5, 6, 6}, "in place");
}

void autograd() {
  // One layer with the loss of the tutorial: binary cross entropy of a product.
  const flow::Tensor x = flow::ones({5}), y = flow::zeros({3});
  const flow::Tensor w = flow::full({5, 3}, 0.25, {.requires_grad = true});
  const flow::Tensor b = flow::zeros({3}, {.requires_grad = true});
  const flow::Tensor z = flow::matmul(x, w) + b;
  const flow::Tensor loss = flow::binary_cross_entropy_with_logits(z, y);
  loss.backward();
  const double sigmoid = 1 / (1 + std::exp(-1.25));
  expect_near(loss.item(), -std::log(1 - sigmoid), "the loss");
  expect_near(b.grad(), std::vector<double>(3, sigmoid / 3), "d loss / d b = sigmoid(z) / 3");
  expect_near(w.grad(), std::vector<double>(15, sigmoid / 3), "d loss / d w");

  {
    const flow::NoGradGuard no_grad;
    expect(!(flow::matmul(x, w) + b).requires_grad(), "nothing is recorded");
  }
  // The Jacobian product of the tutorial: (x + 1)², transposed, twice.
  const flow::Tensor in = flow::eye(4, 5).requires_grad_();
  const flow::Tensor out = (in + 1).pow(2).t();
  flow::backward({out}, {flow::ones_like(out)});
  expect_near(in.grad()[0], {4, 2, 2, 2, 2}, "2 (x + 1)");
  flow::backward({(in + 1).pow(2).t()}, {flow::ones_like(out)});
  expect_near(in.grad()[0], {8, 4, 4, 4, 4}, "gradients add up");
}

void polynomial_with_optimizer() {
  // Fits a cubic to a sine, the example with which PyTorch introduces nn and optim.
  const flow::Tensor x = flow::linspace(-3.14159265, 3.14159265, 200);
  const flow::Tensor y = flow::sin(x);
  const flow::Tensor xx = x.unsqueeze(-1).pow(flow::tensor({1, 2, 3}));
  nn::Sequential model(nn::Linear(3, 1), nn::Flatten({.start_dim = 0, .end_dim = 1}));
  nn::MSELoss loss_fn({.reduction = "sum"});
  flow::optim::RMSprop optimizer(model.parameters(), {.lr = 1e-3});
  for (int t = 0; t < 2000; ++t) {
    const flow::Tensor loss = loss_fn(model(xx), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  // By least squares the best cubic, 0.855 x - 0.093 x³, has the loss 0.915; the best line has 40.
  const flow::Tensor loss = loss_fn(model(xx), y);
  flow::print("loss", loss.item());
  expect(loss.item() < 1.1, "the cubic is near the best one");
}

void save_and_load() {
  NeuralNetwork model, loaded;
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  model(flow::ones({2, 28, 28})).sum().backward();
  optimizer.step();
  nn::save_safetensors("model.safetensors", model.state_dict());
  nn::save_safetensors("optimizer.safetensors", optimizer.state_dict());

  loaded.load_state_dict(nn::load_safetensors("model.safetensors"));
  flow::optim::SGD resumed(loaded.parameters(), {.lr = 0.5, .momentum = 0.9});
  resumed.load_state_dict(nn::load_safetensors("optimizer.safetensors"));
  expect(resumed.lr() == 0.1, "the learning rate is part of the state");
  for (auto* one : {&model, &loaded}) {
    one->zero_grad();
    (*one)(flow::ones({2, 28, 28})).sum().backward();
  }
  optimizer.step();
  resumed.step();
  const flow::Tensor x = flow::randn({3, 28, 28});
  expect(flow::equal(model(x), loaded(x)), "the loaded training goes on as the saved one");

  // Part of a state, as for warm-starting.
  auto state = model.state_dict();
  state.erase("linear_relu_stack.4.bias");
  const nn::LoadResult result = loaded.load_state_dict(state, {.strict = false});
  expect(result.missing_keys == std::vector<std::string>{"linear_relu_stack.4.bias"},
         "the missing name is listed");
}

}  // namespace

int main() {
  return run_tutorials({{"quickstart", quickstart},
                        {"tensors", tensors},
                        {"autograd", autograd},
                        {"polynomial_with_optimizer", polynomial_with_optimizer},
                        {"save_and_load", save_and_load}});
}
