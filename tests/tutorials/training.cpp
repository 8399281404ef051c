// Around a training: datasets and loaders, schedules, mixed precision, recomputation, the profiler,
// gradient accumulation, averaged weights, and reinforcement learning.
#include <deque>
#include <filesystem>

#include "tests/tutorials/tutorial.h"

namespace nn = flow::nn;
namespace schedules = flow::optim::lr_scheduler;

namespace {

// Points of a moon-shaped pair of classes.
struct Moons {
  using Sample = std::array<flow::Tensor, 2>;
  int64_t count;

  int64_t size() const { return count; }

  Sample operator[](int64_t i) const {
    const double angle = 3.14159265 * static_cast<double>(i) / static_cast<double>(count);
    const bool upper = i % 2 == 0;
    const double x = upper ? std::cos(angle) : 1 - std::cos(angle);
    const double y = upper ? std::sin(angle) : 0.5 - std::sin(angle);
    return {flow::tensor({x, y}).to(flow::float32), flow::tensor(upper ? 0 : 1)};
  }
};

nn::Sequential classifier() {
  return nn::Sequential(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(),
                        nn::Linear(32, 2));
}

void custom_dataset_and_loader() {
  const flow::data::Transformed noisy(Moons{400}, [](Moons::Sample sample) {
    sample[0] = sample[0] + 0.05 * flow::randn({2});
    return sample;
  });
  const auto parts = flow::data::random_split(noisy, {0.75, 0.25});
  flow::data::DataLoader training(parts[0], {.batch_size = 32, .shuffle = true, .num_workers = 2});
  flow::data::DataLoader test(parts[1], {.batch_size = 100});
  nn::Sequential model = classifier();
  flow::optim::AdamW optimizer(model.parameters(), {.lr = 1e-2});
  for (int epoch = 0; epoch < 15; ++epoch) {
    for (const auto& [x, y] : training) {
      optimizer.zero_grad();
      flow::cross_entropy(model(x), y).backward();
      optimizer.step();
    }
  }
  const flow::NoGradGuard no_grad;
  for (const auto& [x, y] : test) {
    const double accuracy = (model(x).argmax(1) == y).to(flow::float32).mean().item();
    flow::print("accuracy", accuracy);
    expect(accuracy > 0.95, "the moons are apart");
  }
}

void learning_rate_schedules() {
  nn::Linear model(1, 1);
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  schedules::ExponentialLR exponential(optimizer, {.gamma = 0.9});
  schedules::MultiStepLR steps(optimizer, {.milestones = {3, 5}, .gamma = 0.1});
  for (int epoch = 0; epoch < 6; ++epoch) {
    const double wanted = 0.1 * std::pow(0.9, epoch) * (epoch >= 5 ? 0.01 : epoch >= 3 ? 0.1 : 1);
    expect_near(optimizer.lr(), wanted, "the product of both schedules", 1e-9);
    model(flow::ones({1, 1})).sum().backward();
    optimizer.step();
    exponential.step();
    steps.step();
  }
  flow::optim::SGD other(model.parameters(), {.lr = 1});
  schedules::LambdaLR warm_up(other, {.lr_lambda = [](int64_t epoch) {
                                return std::min(1.0, static_cast<double>(epoch + 1) / 4);
                              }});
  expect_near(other.lr(), 0.25, "warm-up");
}

void automatic_mixed_precision() {
  nn::Sequential model(nn::Linear(16, 64), nn::ReLU(), nn::Linear(64, 16));
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.5});
  flow::optim::GradScaler scaler;
  const flow::Tensor x = flow::randn({64, 16});
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    flow::Tensor loss;
    {
      const flow::AutocastGuard autocast(flow::float16);
      const flow::Tensor y = model(x);
      expect(y.dtype() == flow::float16, "matrix products run in half precision");
      loss = flow::mse_loss(y, x);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    nn::utils::clip_grad_norm_(model.parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
    last = loss.item();
    if (step == 0) first = last;
  }
  flow::print("loss", first, "->", last);
  expect(last < 0.6 * first, "the loss falls");
}

void activation_checkpointing() {
  nn::Sequential block(nn::Linear(8, 8), nn::Tanh(), nn::Dropout(0.3), nn::Linear(8, 8));
  const flow::Tensor x = flow::randn({4, 8}, {.requires_grad = true});
  const auto random = flow::generator_state();
  block(x).square().sum().backward();
  const flow::Tensor plain = x.grad().clone(), weight = block.parameters()[0].grad().clone();
  block.zero_grad();
  x.set_grad(flow::Tensor());
  flow::set_generator_state(random);
  flow::recompute([&](const std::vector<flow::Tensor>& in) { return block(in[0]); }, {x})
      .square()
      .sum()
      .backward();
  expect(flow::equal(x.grad(), plain) && flow::equal(block.parameters()[0].grad(), weight),
         "recomputed activations give the same gradients, dropout included");
}

void profiler() {
  nn::Sequential model = classifier();
  const flow::Tensor x = flow::randn({100, 2});
  flow::profiler::Profile profile;
  {
    const flow::profiler::Scope scope("model_inference");
    model(x);
  }
  profile.stop();
  int64_t linears = 0;
  bool has_scope = false;
  for (const auto& average : profile.key_averages()) {
    if (average.key == "linear") linears = average.calls;
    has_scope = has_scope || average.key == "model_inference";
  }
  expect(linears == 3 && has_scope, "three linear layers ran in the scope:\n" + profile.table());
  profile.write_chrome_trace("trace.json");
  expect(std::filesystem::file_size("trace.json") > 100, "the trace is written");
}

void gradient_accumulation() {
  nn::Linear whole(4, 2), parts(4, 2);
  parts.load_state_dict(whole.state_dict());
  const flow::Tensor x = flow::randn({12, 4}), y = flow::randn({12, 2});
  flow::mse_loss(whole(x), y).backward();
  for (int64_t i = 0; i < 3; ++i) {
    const flow::Tensor loss =
        flow::mse_loss(parts(x.narrow(0, 4 * i, 4)), y.narrow(0, 4 * i, 4)) / 3;
    loss.backward();
  }
  expect(flow::allclose(whole.weight.grad(), parts.weight.grad()), "three parts are one batch");
}

void averaged_weights() {
  // The average of noisy iterates is closer to the optimum than the last of them.
  nn::Linear model(1, 1, {.bias = false});
  flow::optim::SGD optimizer(model.parameters(), {.lr = 0.3});
  flow::optim::MovingAverage swa(model.parameters(), {.decay = std::nullopt});
  double last_error = 0, count = 0;
  for (int step = 0; step < 200; ++step) {
    const flow::Tensor x = flow::randn({4, 1});
    const flow::Tensor y = 2 * x + flow::randn({4, 1});
    optimizer.zero_grad();
    flow::mse_loss(model(x), y).backward();
    optimizer.step();
    if (step < 50) continue;
    swa.update();
    last_error += std::abs(model.weight.item() - 2);
    ++count;
  }
  swa.copy_to_tensors();
  expect(std::abs(model.weight.item() - 2) < 0.5 * last_error / count,
         "the average is nearer than the iterates are on average");
}

void deep_q_learning() {
  // A corridor of 5 cells: the reward is at its right end.
  const int64_t cells = 5;
  const auto observe = [&](const std::vector<int64_t>& states) {
    return flow::one_hot(flow::tensor(states, {static_cast<int64_t>(states.size())}), cells)
        .to(flow::float32);
  };
  const auto make = [&] {
    return nn::Sequential(nn::Linear(cells, 24), nn::ReLU(), nn::Linear(24, 2));
  };
  nn::Sequential policy = make(), target = make();
  target.load_state_dict(policy.state_dict());
  flow::optim::AdamW optimizer(policy.parameters(), {.lr = 5e-3, .amsgrad = true});
  nn::SmoothL1Loss criterion;

  struct Transition {
    int64_t state, action, next;
    float reward, goes_on;
  };

  std::deque<Transition> memory;
  int64_t state = 0;
  for (int step = 0; step < 1200; ++step) {
    const bool explores = flow::rand({}).item() < 0.5;
    int64_t action = flow::randint(2, {}, {.dtype = flow::int64}).item<int64_t>();
    if (!explores) {
      const flow::NoGradGuard no_grad;
      action = policy(observe({state})).max(1).indices.item<int64_t>();
    }
    const int64_t next = std::max<int64_t>(0, state + (action == 1 ? 1 : -1));
    const bool ends = next == cells - 1;
    memory.push_back({state, action, next, ends ? 1.F : 0.F, ends ? 0.F : 1.F});
    if (memory.size() > 300) memory.pop_front();
    state = ends ? 0 : next;
    if (memory.size() < 64) continue;

    std::vector<int64_t> states, actions, nexts;
    std::vector<float> rewards, continues;
    for (const int64_t i :
         flow::randint(static_cast<int64_t>(memory.size()), {32}, {.dtype = flow::int64})
             .to_vector<int64_t>()) {
      const Transition& one = memory[static_cast<size_t>(i)];
      states.push_back(one.state);
      actions.push_back(one.action);
      nexts.push_back(one.next);
      rewards.push_back(one.reward);
      continues.push_back(one.goes_on);
    }
    const flow::Tensor chosen =
        policy(observe(states)).gather(1, flow::tensor(actions, {32, 1})).squeeze(1);
    flow::Tensor expected;
    {
      const flow::NoGradGuard no_grad;
      expected = flow::tensor(rewards, {32}) +
                 0.9 * target(observe(nexts)).max(1).values * flow::tensor(continues, {32});
    }
    optimizer.zero_grad();
    criterion(chosen, expected).backward();
    nn::utils::clip_grad_value_(policy.parameters(), 100);
    optimizer.step();
    // The target follows slowly.
    auto follower = target.state_dict();
    const flow::NoGradGuard no_grad;
    for (const auto& [name, value] : policy.state_dict())
      follower.at(name).lerp_(value, 0.02);
  }
  const flow::NoGradGuard no_grad;
  const flow::Tensor values = policy(observe({0, 1, 2, 3}));
  flow::print(values);
  expect(values.argmax(1).equal(flow::ones({4}, {.dtype = flow::int64})),
         "the policy goes to the right");
  // The values are powers of the discount: 0.9³, 0.9², 0.9, 1.
  expect_near(values.max(1).values, {0.729, 0.81, 0.9, 1}, "the values", 0.12);
}

void policy_gradient() {
  // REINFORCE on a bandit with three arms.
  nn::Linear policy(1, 3);
  flow::optim::Adam optimizer(policy.parameters(), {.lr = 0.05});
  const flow::Tensor means = flow::tensor({0.2f, 0.8f, 0.5f});
  for (int step = 0; step < 200; ++step) {
    const flow::distributions::Categorical choice({.logits = policy(flow::ones({64, 1}))});
    const flow::Tensor arms = choice.sample();
    const flow::Tensor rewards = means.index_select(0, arms) + 0.1 * flow::randn({64});
    const flow::Tensor loss = -(choice.log_prob(arms) * (rewards - rewards.mean())).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  const flow::Tensor probabilities = flow::softmax(policy(flow::ones({1, 1})), 1);
  expect(probabilities.index({0, 1}).item() > 0.8, "the best arm is chosen");
}

}  // namespace

int main() {
  return run_tutorials({{"custom_dataset_and_loader", custom_dataset_and_loader},
                        {"learning_rate_schedules", learning_rate_schedules},
                        {"automatic_mixed_precision", automatic_mixed_precision},
                        {"activation_checkpointing", activation_checkpointing},
                        {"profiler", profiler},
                        {"gradient_accumulation", gradient_accumulation},
                        {"averaged_weights", averaged_weights},
                        {"deep_q_learning", deep_q_learning},
                        {"policy_gradient", policy_gradient}});
}
