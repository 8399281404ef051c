// A module of the user's own with parameters, a buffer, sub-modules and a list of them.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;

struct Block : nn::Module<Block> {
  explicit Block(int64_t width)
      : scale(register_parameter("scale", flow::ones({width}))),
        calls(register_buffer("calls", flow::zeros({}, {.dtype = flow::int64}))),
        fc(register_module("fc", nn::Linear(width, width))) {}

  flow::Tensor forward(const flow::Tensor& x) {
    if (is_training()) calls += 1;
    return x + flow::tanh(fc(x)) * scale;
  }

  flow::Tensor scale, calls;
  nn::Linear fc;
};

struct Net : nn::Module<Net> {
  explicit Net(int64_t depth) {
    for (int64_t i = 0; i < depth; ++i)
      blocks.push_back(Block(4));
  }

  flow::Tensor forward(const flow::Tensor& x) {
    flow::Tensor y = x;
    for (Block& block : blocks)
      y = block(y);
    return head(y);
  }

  nn::ModuleList<Block> blocks{register_module("blocks", nn::ModuleList<Block>())};
  nn::Linear head{register_module("head", nn::Linear(4, 1))};
};

int main() {
  flow::manual_seed(0);
  Net net(2);
  std::string names;
  for (const auto& [name, tensor] : net.named_parameters())
    names += name + " ";
  expect(names ==
             "blocks.0.scale blocks.0.fc.weight blocks.0.fc.bias blocks.1.scale "
             "blocks.1.fc.weight blocks.1.fc.bias head.weight head.bias ",
         "names: " + names);
  expect(net.num_parameters() == 2 * (4 + 16 + 4) + 4 + 1, "the number of parameters");

  const flow::Tensor x = flow::randn({3, 4});
  const flow::Tensor y = net(x);
  expect(y.shape() == flow::Shape{3, 1}, "y is (3, 1)");
  y.sum().backward();
  for (const auto& [name, tensor] : net.named_parameters())
    expect(tensor.grad().defined(), name + " has a gradient");
  net.eval();
  net(x);
  expect(net.get_buffer("blocks.1.calls").item() == 1, "only the call in training counts");

  // A second net with the same values.
  Net other(2);
  other.load_state_dict(net.state_dict());
  other.eval();
  expect(flow::allclose(other(x), net(x)), "equal states give equal results");

  // A copy of a module is a handle of the same parameters.
  Net same = net;
  flow::NoGradGuard no_grad;
  same.head.bias.fill_(5);
  expect_near(net.head.bias, {5}, "the bias seen through the other handle");
}
