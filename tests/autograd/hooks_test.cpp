#include "autograd/hooks.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

Tensor leaf(float value) {
  return tensor({value}).requires_grad_();
}

TEST(Hooks, SeeAndReplaceTheGradient) {
  const Tensor x = leaf(2);
  const Tensor h = x * 3;
  Floats seen;
  h.register_hook([&](const Tensor& g) {
    seen = g.to_vector<float>();
    return g * 10;
  });

  (h * 5).backward();

  EXPECT_EQ(seen, Floats({5}));
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({150}));
}

TEST(Hooks, RunInOrderOnTheSumOfAllUses) {
  const Tensor x = leaf(2);
  Floats seen;
  x.register_hook([&](const Tensor& g) {
    seen.push_back(g.item<float>());
    return g + 1;
  });
  x.register_hook([&](const Tensor& g) {
    seen.push_back(g.item<float>());
    return Tensor();
  });

  (x * 3 + x).backward();

  EXPECT_EQ(seen, Floats({4, 5}));
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({5}));
}

TEST(Hooks, AnEmptyHookIsRefused) {
  const Tensor x = leaf(2);
  const Tensor h = x * 3;

  EXPECT_THROW(x.register_hook({}), InvalidArgument);
  EXPECT_THROW(register_post_accumulate_grad_hook(x, {}), InvalidArgument);
  EXPECT_THROW(register_node_hook(h, {}), InvalidArgument);
}

TEST(Hooks, RemovedHookIsNotCalled) {
  const Tensor x = leaf(2);
  int calls = 0;
  const int64_t hook = x.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  (x * 1).backward();
  x.remove_hook(hook);
  x.remove_hook(hook);
  (x * 1).backward();

  EXPECT_EQ(calls, 1);
}

TEST(Hooks, HookMayRemoveItself) {
  const Tensor x = leaf(2);
  int calls = 0;
  int64_t hook = 0;
  hook = x.register_hook([&](const Tensor&) {
    ++calls;
    x.remove_hook(hook);
    return Tensor();
  });
  (x * 1).backward();
  (x * 1).backward();

  EXPECT_EQ(calls, 1);
}

TEST(Hooks, ReplacementOfAnotherShapeThrows) {
  const Tensor x = leaf(2);
  x.register_hook([](const Tensor&) { return zeros({3}); });

  EXPECT_THROW((x * 1).backward(), InvalidArgument);
}

TEST(Hooks, TensorWithoutGradientHasNone) {
  EXPECT_THROW(zeros({1}).register_hook([](const Tensor&) { return Tensor(); }), InvalidArgument);
  EXPECT_THROW(register_post_accumulate_grad_hook(zeros({1}), [](const Tensor&) {}),
               InvalidArgument);
  EXPECT_THROW(register_node_hook(leaf(1), [](auto, auto) {}), InvalidArgument);
}

TEST(Hooks, LeafHookRunsOnceWithTheCompleteGradient) {
  const Tensor w = leaf(2);
  Floats seen;
  const int64_t hook = register_post_accumulate_grad_hook(
      w, [&](const Tensor& p) { seen.push_back(p.grad().item<float>()); });

  (w * 3 + w * w).backward();
  (w * 3).backward();
  w.remove_hook(hook);
  (w * 3).backward();

  EXPECT_EQ(seen, Floats({7, 10}));
}

TEST(Hooks, LeavesAreCompleteBeforeEarlierNodesRun) {
  // w is used by the last op only, so its gradient is there while the rest still runs.
  const Tensor x = leaf(2), w = leaf(5);
  std::vector<std::string> order;
  const Tensor h = x.exp();
  h.register_hook([&](const Tensor&) {
    order.emplace_back("h");
    return Tensor();
  });
  register_post_accumulate_grad_hook(w, [&](const Tensor&) { order.emplace_back("w"); });
  register_post_accumulate_grad_hook(x, [&](const Tensor&) { order.emplace_back("x"); });

  (h * w).backward();

  EXPECT_EQ(order, (std::vector<std::string>{"w", "h", "x"}));
}

TEST(Hooks, NodeHookSeesBothSidesOfTheRule) {
  const Tensor x = leaf(2), c = tensor({7.f});
  const Tensor y = x * c;
  Floats seen;
  register_node_hook(y, [&](std::span<const Tensor> dx, std::span<const Tensor> dy) {
    seen = {dy[0].item<float>(), dx[0].item<float>(), dx[1].defined() ? 1.f : 0.f};
  });

  (y * 3).backward();

  EXPECT_EQ(seen, Floats({3, 21, 0}));
}

TEST(Hooks, ErrorNamesTheOpAndItsLine) {
  const Tensor x = leaf(2);
  const Tensor y = x.exp();
  register_node_hook(y, [](auto, auto) { throw Unsupported("[test] no"); });

  try {
    y.backward();
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("[test] no; while computing the gradient of exp"), std::string::npos)
        << message;
    EXPECT_NE(message.find("hooks_test.cpp"), std::string::npos) << message;
  }
}

TEST(Hooks, FinalCallbackRunsAfterAllLeaves) {
  const Tensor x = leaf(2);
  Floats seen;
  x.register_hook([&](const Tensor&) {
    call_after_backward([&] { seen.push_back(x.grad().item<float>()); });
    return Tensor();
  });

  (x * 4).backward();

  EXPECT_EQ(seen, Floats({4}));
  EXPECT_THROW(call_after_backward([] {}), InvalidArgument);
}

TEST(Hooks, BackwardInsideAHookUsesItsOwnState) {
  const Tensor x = leaf(2), w = leaf(3);
  const Tensor inner = w * w;
  const Tensor h = x * 2;
  h.register_hook([&](const Tensor&) {
    inner.backward();
    return Tensor();
  });

  (h * w).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({6}));
  EXPECT_EQ(w.grad().to_vector<float>(), Floats({4 + 6}));
}

TEST(Hooks, BackwardInsideAHookMayUseNodesOfTheOuterRun) {
  const Tensor x = leaf(2);
  const Tensor h = x * x;
  const Tensor y = h * 3, z = h * 5;
  Floats inner;
  y.register_hook([&](const Tensor&) {
    inner = grad({h}, {x}, {.retain_graph = true})[0].to_vector<float>();
    return Tensor();
  });

  (y + z).backward();

  EXPECT_EQ(inner, Floats({4}));
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({32}));
}

}  // namespace
}  // namespace flow
