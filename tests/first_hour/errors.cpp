// What the messages of common mistakes say.
#include <functional>

#include "tests/first_hour/expect.h"

void expect_error(const std::function<void()>& mistake, const std::vector<std::string>& parts) {
  try {
    mistake();
  } catch (const flow::InvalidArgument& error) {
    const std::string message = error.what();
    for (const std::string& part : parts)
      expect(message.find(part) != std::string::npos, "'" + part + "' is in: " + message);
    flow::print(message);
    return;
  }
  throw std::runtime_error("no error: " + parts[0]);
}

int main() {
  const flow::Tensor a = flow::ones({4, 3}), b = flow::ones({5, 2});
  expect_error([&] { flow::matmul(a, b); }, {"[matmul]", "(4, 3) float32", "(5, 2) float32"});
  expect_error([&] { a + b; }, {"[add]", "(4, 3)", "(5, 2)"});
  expect_error([&] { a.reshape({5, 2}); }, {"[reshape]", "(4, 3)", "(5, 2)"});
  expect_error([&] { a.sum(2); }, {"[sum]", "2"});
  expect_error([&] { a.index({7}); }, {"7", "4"});
  expect_error([&] { flow::cross_entropy(a, flow::tensor({0, 1, 2, 3})); }, {"3"});
  expect_error([&] { a.backward(); }, {"[backward]", "requires_grad"});

  flow::Tensor x = flow::ones({2}, {.requires_grad = true});
  const flow::Tensor y = x.exp();
  {
    const flow::NoGradGuard no_grad;
    y.mul_(2);
  }
  expect_error([&] { y.sum().backward(); }, {"exp"});

  flow::nn::Linear linear(3, 2);
  expect_error([&] { linear(flow::ones({4, 5})); }, {"[linear]", "(4, 5)", "(2, 3)"});
  expect_error(
      [&] {
        linear.load_state_dict({{"weigth", flow::ones({2, 3})}});
      },
      {"weigth", "weight", "bias"});
  expect_error(
      [&] {
        flow::randn({2}, {.placement = flow::Placement("cpu", {0, 1}), .sbp = flow::sbp::split(0)});
      },
      {"rank 1", "flowrun"});
}
