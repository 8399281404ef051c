// Data parallel training on two ranks, with global tensors and with DistributedDataParallel: both
// give the losses and weights of one rank that sees the whole batch.
#include "tests/first_hour/expect.h"

namespace nn = flow::nn;
namespace sbp = flow::sbp;

nn::Sequential make_model() {
  return nn::Sequential(nn::Linear(4, 16), nn::Tanh(), nn::Linear(16, 1));
}

flow::Tensor target_of(const flow::Tensor& x) {
  return flow::sin(x.sum(1, {.keepdim = true}));
}

int main() {
  const flow::Placement both("cpu", {0, 1});
  const int64_t rank = flow::env::rank();
  expect(flow::env::world_size() == 2, "the program runs on two ranks");

  nn::Sequential whole = make_model(), global = make_model(), replica = make_model();
  // All three start with the same weights.
  global.to_global(both, sbp::broadcast);
  copy_values(global, whole);
  copy_values(global, replica);
  nn::parallel::DistributedDataParallel ddp(replica);
  flow::optim::SGD whole_sgd(whole.parameters(), {.lr = 0.1}),
      global_sgd(global.parameters(), {.lr = 0.1}), replica_sgd(replica.parameters(), {.lr = 0.1});

  for (int step = 0; step < 5; ++step) {
    // The logical batch. Every rank draws the same values, and keeps its rows of them.
    const flow::Tensor x = flow::randn({8, 4}, {.placement = both, .sbp = sbp::split(0)});
    const flow::Tensor all = x.full();  // (8, 4), local
    const flow::Tensor own = x.to_local();
    expect(own.shape() == flow::Shape{4, 4}, "each rank has half of the rows");
    expect(flow::equal(own, all.narrow(0, 4 * rank, 4)), "rank 0 has the first half");

    const flow::Tensor loss = flow::mse_loss(whole(all), target_of(all));
    whole_sgd.zero_grad();
    loss.backward();
    whole_sgd.step();

    const flow::Tensor global_loss = flow::mse_loss(global(x), target_of(x));
    global_sgd.zero_grad();
    global_loss.backward();
    global_sgd.step();
    expect_near(global_loss.item(), loss.item(), "the loss of global tensors", 1e-6);

    replica_sgd.zero_grad();
    flow::mse_loss(ddp(own), target_of(own)).backward();
    replica_sgd.step();
  }
  for (size_t i = 0; i < whole.parameters().size(); ++i) {
    const flow::Tensor wanted = whole.parameters()[i];
    expect(flow::allclose(global.parameters()[i].full(), wanted), "global weights");
    expect(flow::allclose(replica.parameters()[i], wanted), "weights of DistributedDataParallel");
  }
}
