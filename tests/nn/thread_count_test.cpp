// The number of compute threads changes no bit: models of awkward sizes, large enough that loops
// and products are divided.
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"

namespace flow {
namespace {

constexpr int kSteps = 2;

// The losses of a few steps and all parameters after them.
using Outcome = std::vector<std::vector<float>>;

template <class Model>
Outcome train(Model model, optim::Optimizer& optimizer, const Tensor& input, const Tensor& target) {
  Outcome outcome(1);
  for (int step = 0; step < kSteps; ++step) {
    const Tensor output = model(input);
    const Tensor loss = cross_entropy(output.reshape({target.numel(), output.size(-1)}), target);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    outcome[0].push_back(loss.item<float>());
  }
  for (const Tensor& parameter : model.parameters())
    outcome.push_back(parameter.to_vector<float>());
  return outcome;
}

Outcome with_threads(int num_threads, const std::function<Outcome()>& run) {
  RankContext context({}, num_threads);
  const RankScope scope(context);
  manual_seed(7);
  return run();
}

void expect_equal_for_any_threads(const std::function<Outcome()>& run) {
  const Outcome one = with_threads(1, run);
  EXPECT_EQ(with_threads(2, run), one);
  EXPECT_EQ(with_threads(3, run), one);
}

TEST(ThreadCount, MlpTrainsToTheSameBits) {
  expect_equal_for_any_threads([] {
    models::Mlp model({331, 517, 203, 11});
    optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
    return train(model, optimizer, randn({149, 331}), randint(0, 11, {149}));
  });
}

TEST(ThreadCount, LenetTrainsToTheSameBits) {
  expect_equal_for_any_threads([] {
    models::Lenet model;
    optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
    return train(model, optimizer, randn({13, 1, 28, 28}), randint(0, 10, {13}));
  });
}

TEST(ThreadCount, GptTrainsToTheSameBits) {
  expect_equal_for_any_threads([] {
    models::Gpt model(
        {.vocab_size = 131, .block_size = 61, .n_layer = 2, .n_head = 3, .n_embd = 141});
    optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
    return train(model, optimizer, randint(0, 131, {11, 61}), randint(0, 131, {11 * 61}));
  });
}

TEST(ThreadCount, SetNumThreadsChangesTheRanksPool) {
  RankContext context({}, 2);
  const RankScope scope(context);
  EXPECT_EQ(get_num_threads(), 2);
  const Tensor x = randn({300, 300});
  const auto sums = [&] { return matmul(x, x).sum(0).to_vector<float>(); };
  const std::vector<float> expected = sums();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    EXPECT_EQ(get_num_threads(), threads);
    EXPECT_EQ(sums(), expected);
  }
  EXPECT_THROW(set_num_threads(0), InvalidArgument);
  EXPECT_THROW(set_num_threads(5000), InvalidArgument);
  EXPECT_EQ(get_num_threads(), 3);
}

}  // namespace
}  // namespace flow
