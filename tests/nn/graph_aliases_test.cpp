// Values of a compiled step that share memory: what one of them gets, the others must not.
#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

// Two runs of the graph, with all passes and with the exact ones only, equal the eager step.
template <class Graph, class... Args>
void expect_eager(const Args&... args) {
  struct WithPasses : Graph {
    explicit WithPasses(graph::PassSet passes) { this->config().set_passes(passes); }
  };

  Graph eager;
  const Tensor expected = eager.build(args...).detach();
  for (const graph::PassSet passes : {graph::PassSet::kAll, nn::exact}) {
    WithPasses graph(passes);
    for (int run = 0; run < 2; ++run)
      EXPECT_TRUE(graph(args...).equal(expected)) << "run " << run;
  }
}

// Two clones of one tensor are one value of the graph.
struct TwoClones : nn::Graph<TwoClones> {
  Tensor build(const Tensor& x) {
    const Tensor a = x.clone(), b = x.clone();
    a[0].zero_();
    b[1].fill_(7);
    return a + b * 10;
  }
};

struct CloneIsReturned : nn::Graph<CloneIsReturned> {
  Tensor build(const Tensor& x) {
    const Tensor a = x.clone(), b = x.clone();
    a.narrow(1, 1, 2).diagonal().zero_();
    return cat({a, b}, 0);
  }
};

struct TwoZeros : nn::Graph<TwoZeros> {
  Tensor build(const Tensor& x) {
    const Tensor a = zeros({3, 3}), b = zeros({3, 3});
    a.diagonal().fill_(1);
    b.select(1, 2).fill_(2);
    a[1] = x[0];
    return a - b + x;
  }
};

TEST(GraphAliases, AWriteToAViewOfACloneLeavesOthersAlone) {
  const Tensor x = randn({3, 3});
  expect_eager<TwoClones>(x);
  expect_eager<CloneIsReturned>(x);
  expect_eager<TwoZeros>(x);
}

// Both operands of an addition have one gradient.
struct HookedClone : nn::Graph<HookedClone> {
  nn::Linear first{nn::Linear(3, 3)}, second{nn::Linear(3, 3)};

  HookedClone() {
    const NoGradGuard no_grad;
    for (nn::Linear* layer : {&first, &second}) {
      layer->weight.copy_(eye(3));
      layer->bias.zero_();
    }
  }

  Tensor build(const Tensor& x) {
    const Tensor a = first(x), b = second(x);
    b.register_hook([](const Tensor& gradient) {
      const Tensor own = gradient.clone();
      own[0].zero_();
      return own;
    });
    return cat(grad({(a + b).sum()}, {first.weight, second.weight}), 0);
  }
};

TEST(GraphAliases, AHookThatWritesItsCloneLeavesOtherGradientsAlone) {
  expect_eager<HookedClone>(randn({2, 3}));
}

// The gradient of a sum is one number in memory.
struct WrittenGradient : nn::Graph<WrittenGradient> {
  Tensor build(const Tensor& x) {
    const Tensor w = x.clone().detach().requires_grad_();
    w.sum().backward();
    w.grad()[0].zero_();
    return w.grad() * x;
  }
};

TEST(GraphAliases, AWriteToARowOfAGradientLeavesOtherRowsAlone) {
  expect_eager<WrittenGradient>(randn({3, 2}));
}

struct ReshapedCapture : nn::Graph<ReshapedCapture> {
  Tensor outside = arange(0, 12, 1, {.dtype = float32}).view({3, 4}).t();

  Tensor build(const Tensor& x) {
    const Tensor flat = outside.reshape({-1});  // a copy, as the strides are not those of rows
    flat.narrow(0, 0, 5).fill_(-1);
    return flat + outside.flatten() + x;
  }
};

TEST(GraphAliases, AReshapedStridedTensorIsACopy) {
  expect_eager<ReshapedCapture>(ones({12}));
}

// An update may run before the last use of an argument.
struct TwoLayers : nn::Graph<TwoLayers> {
  nn::Linear l1{nn::Linear(4, 4)}, l2{nn::Linear(4, 4)};
  optim::SGD optimizer{{l1.weight, l2.weight}, {.lr = 0.5}};

  TwoLayers() { add_optimizer(optimizer); }

  Tensor build(const Tensor& x) {
    Tensor loss = l2(l1(x)).square().sum();
    loss.backward();
    return loss;
  }
};

TEST(GraphAliases, AnArgumentMayBeAParameterOfTheStep) {
  manual_seed(3);
  TwoLayers eager;
  manual_seed(3);
  TwoLayers graph;
  eager.build(eager.l2.weight.detach().clone());
  eager.optimizer.step();

  graph(graph.l2.weight.detach());

  EXPECT_TRUE(graph.l1.weight.equal(eager.l1.weight));
  EXPECT_TRUE(graph.l2.weight.equal(eager.l2.weight));
}

// Two leaves show the same memory.
struct HasTwins : nn::Graph<HasTwins> {
  Tensor a = tensor({1.F, 2.F}, {.requires_grad = true});
  Tensor b = a.detach().requires_grad_();

  std::pair<Tensor, Tensor> build(const Tensor& x) {
    ((x * a).sum() + (x * x * b).sum()).backward();
    return {a.grad().clone(), b.grad().clone()};
  }
};

TEST(GraphAliases, GradientsOfLeavesInOneMemoryStayAsTheyAre) {
  const Tensor x = tensor({2.F, 3.F});
  HasTwins graph;
  graph.b.set_grad(ones({2}));

  const auto [of_a, of_b] = graph(x);

  EXPECT_EQ(of_a.to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(of_b.to_vector<float>(), (std::vector<float>{4, 9}));
  EXPECT_FALSE(graph.a.grad().defined());
  EXPECT_EQ(graph.b.grad().to_vector<float>(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace flow
