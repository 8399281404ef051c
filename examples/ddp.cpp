// Data parallel training with DistributedDataParallel: two ranks, each with its own half of the
// data. This is the program of OneFlow's documentation, and its losses are the same digit for
// digit.
//
//   flowrun -n 2 build/release/bin/ddp      or: mpirun -n 2 …
#include <string>

#include <flow/flow.h>

#include "support/arguments.h"
#include "support/report.h"
#include "support/training.h"

namespace nn = flow::nn;
using flow::Tensor;

namespace {

struct Model : nn::Module<Model> {
  Tensor w{register_parameter("w", flow::zeros({2, 1}))};

  Tensor forward(const Tensor& x) { return flow::matmul(x, w); }
};

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv, "Trains with DistributedDataParallel.",
                                        {.random = false, .files = false});
    const Tensor train_x[] = {flow::tensor({{1.F, 2.F}, {2.F, 3.F}}),
                              flow::tensor({{4.F, 6.F}, {3.F, 1.F}})};
    const Tensor train_y[] = {flow::tensor({{8.F}, {13.F}}), flow::tensor({{26.F}, {9.F}})};
    const int64_t iterations = arguments.steps > 0 ? arguments.steps : 500;

    const int64_t rank = flow::env::rank();
    const Tensor x = train_x[rank].to(arguments.device), y = train_y[rank].to(arguments.device);
    Model model;
    model.to(arguments.device);
    nn::parallel::DistributedDataParallel ddp(model);
    nn::MSELoss mse({.reduction = "sum"});
    flow::optim::SGD optimizer(ddp.parameters(), {.lr = 0.01});
    examples::StepLog log(arguments.log);
    for (int64_t i = 1; i <= iterations; ++i) {
      const Tensor loss = mse(ddp(x), y);
      if (i % 50 == 0) {
        const std::string head = std::to_string(i) + "/" + std::to_string(iterations);
        flow::print(head + " loss:" + examples::shortest(loss.item<double>()));
      }
      optimizer.zero_grad();
      loss.backward();
      if (log.is_on()) {
        log.write(i - 1, loss.item<double>(), examples::gradient_norm(ddp.parameters()),
                  optimizer.lr(), log.rate_of(x.size(0)));
      }
      optimizer.step();
    }
    flow::print("w:", ddp.module().w);
  });
}
