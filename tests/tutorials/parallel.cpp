// Training on two ranks: replicas (DDP), sharded parameters (FSDP), tensor parallel layers and a
// pipeline, each with the losses of one rank.
#include "tests/tutorials/tutorial.h"

namespace nn = flow::nn;
namespace sbp = flow::sbp;

namespace {

struct ToyModel : nn::Module<ToyModel> {
  nn::Linear net1{register_module("net1", nn::Linear(10, 10))};
  nn::ReLU relu{register_module("relu", nn::ReLU())};
  nn::Linear net2{register_module("net2", nn::Linear(10, 4))};

  flow::Tensor forward(const flow::Tensor& x) { return net2(relu(net1(x))); }
};

const flow::Placement& both() {
  static const flow::Placement ranks("cpu", {0, 1});
  return ranks;
}

// Trains a model on one rank and another one by `step(x, y)`, on the same batches; all ranks hold
// whole copies of x (8, 10) and y (8, 4).
template <class Step>
void expect_same_training(ToyModel& single, const Step& step) {
  flow::optim::SGD optimizer(single.parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 5; ++i) {
    const flow::Tensor x =
        flow::randn({8, 10}, {.placement = both(), .sbp = sbp::broadcast}).to_local();
    const flow::Tensor y =
        flow::randn({8, 4}, {.placement = both(), .sbp = sbp::broadcast}).to_local();
    const flow::Tensor loss = flow::mse_loss(single(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    expect_near(step(x, y), loss.item(), "the loss of step " + std::to_string(i), 1e-4);
  }
}

flow::Tensor globally(const flow::Tensor& x, const flow::NdSbp& layout) {
  return x.to_global({.placement = both(), .sbp = sbp::broadcast}).to_global({.sbp = layout});
}

void distributed_data_parallel() {
  ToyModel single, model;
  model.load_state_dict(single.state_dict());
  nn::parallel::DistributedDataParallel ddp(model);
  flow::optim::SGD optimizer(ddp.parameters(), {.lr = 0.1, .momentum = 0.9});
  const int64_t rank = flow::env::rank();
  // Ranks begin with different values; DDP has broadcast those of rank 0.
  single.load_state_dict(model.state_dict());
  expect_same_training(single, [&](const flow::Tensor& x, const flow::Tensor& y) {
    const flow::Tensor loss =
        flow::mse_loss(ddp(x.narrow(0, 4 * rank, 4)), y.narrow(0, 4 * rank, 4));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return flow::comm::all_reduce(loss.detach()).item() / 2;
  });
}

void fully_sharded() {
  ToyModel model, single;
  model.to_global(both(), sbp::split(0));
  copy_values(model, single);
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  expect(model.net1.weight.to_local().shape() == flow::Shape{5, 10}, "a rank holds half");
  expect_same_training(single, [&](const flow::Tensor& x, const flow::Tensor& y) {
    const flow::Tensor loss =
        flow::mse_loss(model(globally(x, sbp::split(0))), globally(y, sbp::split(0)));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.item();
  });
}

void tensor_parallel() {
  ToyModel model, single;
  model.to_global(
      both(), {{"net1.*", sbp::split(0)}, {"net2.weight", sbp::split(1)}, {"*", sbp::broadcast}});
  copy_values(model, single);
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  expect_same_training(single, [&](const flow::Tensor& x, const flow::Tensor& y) {
    const flow::Tensor loss =
        flow::mse_loss(model(globally(x, sbp::broadcast)), globally(y, sbp::broadcast));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.item();
  });
}

struct PipelineStep : nn::Graph<PipelineStep> {
  ToyModel model;

  PipelineStep(const ToyModel& m, flow::optim::SGD& optimizer) : model(m) {
    model.net1.to<nn::GraphModule>().set_stage(0, flow::Placement("cpu", {0}));
    model.net2.to<nn::GraphModule>().set_stage(1, flow::Placement("cpu", {1}));
    add_optimizer(optimizer);
    config().set_micro_batches(4).set_schedule(flow::pipeline::one_f_one_b());
  }

  flow::Tensor build(const flow::Tensor& x, const flow::Tensor& y) {
    const flow::Tensor loss = flow::mse_loss(model(x), y);
    loss.backward();
    return loss;
  }
};

void pipeline() {
  const flow::Placement first("cpu", {0}), last("cpu", {1});
  ToyModel model, single;
  model.net1.to_global(first, sbp::broadcast);
  model.net2.to_global(last, sbp::broadcast);
  copy_values(model, single);
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  PipelineStep step(model, optimizer);
  expect_same_training(single, [&](const flow::Tensor& x, const flow::Tensor& y) {
    return step(globally(x, sbp::broadcast).to_global({.placement = first, .sbp = sbp::broadcast}),
                globally(y, sbp::broadcast).to_global({.placement = last, .sbp = sbp::broadcast}))
        .item();
  });
}

void collectives() {
  const int64_t rank = flow::env::rank();
  const flow::Tensor own = flow::full({2}, static_cast<double>(rank + 1));
  expect_near(flow::comm::all_reduce(own), {3, 3}, "the sum over the ranks");
  expect_near(own.to_global({.placement = both(), .sbp = sbp::split(0)}), {1, 1, 2, 2},
              "the parts side by side");
}

}  // namespace

int main() {
  expect(flow::env::world_size() == 2, "the program runs on two ranks");
  return run_tutorials({{"distributed_data_parallel", distributed_data_parallel},
                        {"fully_sharded", fully_sharded},
                        {"tensor_parallel", tensor_parallel},
                        {"pipeline", pipeline},
                        {"collectives", collectives}});
}
