// Data parallel training with DistributedDataParallel: two ranks, each with its own half of the
// data. The program of OneFlow's documentation; the losses are the same digit for digit.
//
//   flowrun -n 2 build/release/bin/ddp      or: mpirun -n 2 …
#include <array>
#include <charconv>
#include <string>

#include <flow/flow.h>

namespace nn = flow::nn;
using flow::Tensor;

namespace {

struct Model : nn::Module<Model> {
  Tensor w{register_parameter("w", flow::zeros({2, 1}))};

  Tensor forward(const Tensor& x) { return flow::matmul(x, w); }
};

// The shortest decimals that give the number back.
std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace

int main() {
  const Tensor train_x[] = {flow::tensor({{1.F, 2.F}, {2.F, 3.F}}),
                            flow::tensor({{4.F, 6.F}, {3.F, 1.F}})};
  const Tensor train_y[] = {flow::tensor({{8.F}, {13.F}}), flow::tensor({{26.F}, {9.F}})};
  constexpr int kIterations = 500;

  nn::parallel::DistributedDataParallel ddp{Model()};
  nn::MSELoss mse({.reduction = "sum"});
  flow::optim::SGD optimizer(ddp.parameters(), {.lr = 0.01});
  const int64_t rank = flow::env::rank();
  for (int i = 1; i <= kIterations; ++i) {
    const Tensor loss = mse(ddp(train_x[rank]), train_y[rank]);
    if (i % 50 == 0) {
      const std::string head = std::to_string(i) + "/" + std::to_string(kIterations);
      flow::print(head + " loss:" + shortest(loss.item<double>()));
    }
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  flow::print("w:", ddp.module().w);
}
