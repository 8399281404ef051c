// Threads of the program that belong to one rank.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/env.h"
#include "core/error.h"
#include "nn/flow.h"

namespace flow::nn {
namespace {

constexpr int kThreads = 4, kCalls = 20;

void on_threads(const std::function<void(int thread)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back(body, i);
  for (std::thread& thread : threads)
    thread.join();
}

struct Net : Module<Net> {
  Embedding tok{register_module("tok", Embedding(16, 24))};
  Conv1d conv{register_module("conv", Conv1d(24, 24, 3))};
  BatchNorm1d bn{register_module("bn", BatchNorm1d(24))};
  Linear out{register_module("out", Linear(24, 8))};

  Tensor forward(const Tensor& x) {
    return out(relu(bn(conv(tok(x).transpose(1, 2)))).transpose(1, 2));
  }
};

struct Step : Graph<Step> {
  Net net;

  Step(const Net& model, optim::SGD& optimizer) : net(model) { add_optimizer(optimizer); }

  Tensor build(const Tensor& x) {
    Tensor loss = net(x).square().mean();
    loss.backward();
    return loss;
  }
};

struct Eval : Graph<Eval> {
  Net net;

  explicit Eval(const Net& model) : net(model) {}

  Tensor build(const Tensor& x) { return net(x); }
};

TEST(UserThreads, MayCallOneModuleAtOnce) {
  Net net;
  net.eval();
  const Tensor x = randint(0, 16, {3, 9});
  std::vector<Tensor> results(kThreads);

  on_threads([&](int thread) {  // the first call, too
    for (int i = 0; i < kCalls; ++i)
      results[static_cast<size_t>(thread)] = net(x);
  });

  for (const Tensor& result : results) {
    EXPECT_TRUE(result.requires_grad());
    EXPECT_TRUE(result.equal(net(x)));
  }
}

// Where oneDNN is built in, the result of a convolution is in a blocked layout, which a view needs
// in strided form.
TEST(UserThreads, MayReadTheSameTensorsAtOnce) {
  const NoGradGuard no_grad;
  for (int round = 0; round < 10; ++round) {
    const Tensor y = relu(Conv2d(16, 32, 3)(randn({2, 16, 12, 12})));
    std::vector<Tensor> results(kThreads);

    on_threads([&](int thread) {
      results[static_cast<size_t>(thread)] = y.transpose(1, 2).reshape({-1}) * y.sum();
    });

    for (const Tensor& result : results)
      EXPECT_TRUE(result.equal(results[0]));
  }
}

TEST(UserThreads, TakeTurnsInCallsOfAGraph) {
  Net net;
  net.eval();
  Eval graph(net);
  std::vector<Tensor> inputs, expected;
  for (int i = 0; i < kThreads; ++i) {
    inputs.push_back(randint(0, 16, {3 + i % 2, 9}));  // two plans
    expected.push_back(net(inputs.back()));
  }
  std::atomic<int> num_equal = 0;

  on_threads([&](int thread) {
    const auto i = static_cast<size_t>(thread);
    for (int call = 0; call < kCalls; ++call)
      num_equal += graph(inputs[i]).allclose(expected[i]) ? 1 : 0;
  });

  EXPECT_EQ(num_equal, kThreads * kCalls);
}

// Each thread gets what one thread alone gets.
TEST(UserThreads, MayTrainModelsOfTheirOwn) {
  struct Training {
    Net net;
    optim::SGD optimizer{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
    Step step{net, optimizer};

    void run(const Tensor& x, bool compiled) {
      for (int i = 0; i < kCalls; ++i) {
        if (compiled) {
          step(x);
          continue;
        }
        optimizer.zero_grad();
        net(x).square().mean().backward();
        optimizer.step();
      }
    }
  };

  const StateDict initial = Net().state_dict();
  const Tensor x = randint(0, 16, {3, 9});
  std::vector<std::unique_ptr<Training>> trainings;  // with the eager and the compiled one alone
  for (int i = 0; i < kThreads + 2; ++i) {
    trainings.push_back(std::make_unique<Training>());
    trainings.back()->net.load_state_dict(initial);
    trainings.back()->step.compile(x);
  }

  on_threads([&](int thread) { trainings[static_cast<size_t>(thread)]->run(x, thread % 2 == 1); });
  trainings[kThreads]->run(x, false);
  trainings[kThreads + 1]->run(x, true);

  for (size_t i = 0; i < kThreads; ++i) {
    const StateDict expected = trainings[kThreads + i % 2]->net.state_dict();
    for (const auto& [name, tensor] : trainings[i]->net.state_dict())
      EXPECT_TRUE(tensor.equal(expected.at(name))) << i << ' ' << name;
  }
}

// The ranks would wait for each other: one for the turn, the other in a collective.
TEST(UserThreads, OfTwoRanksMayNotCallOneGraphAtOnce) {
  struct Slow : Graph<Slow> {
    std::atomic<bool> is_built = false, is_refused = false;

    Tensor build(const Tensor& x) {
      is_built = true;
      while (!is_refused)
        std::this_thread::yield();
      return x * 2;
    }
  };

  Slow graph;
  run_ranks(2, [&] {
    if (env::rank() == 0) {
      EXPECT_EQ(graph(ones({2})).sum().item<float>(), 4);
      return;
    }
    while (!graph.is_built)
      std::this_thread::yield();
    EXPECT_THROW(graph(ones({2})), InvalidArgument);
    graph.is_refused = true;
  });
}

}  // namespace
}  // namespace flow::nn
