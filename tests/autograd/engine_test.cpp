#include "autograd/engine.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

Tensor leaf(const std::vector<float>& values) {
  return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_();
}

Floats floats(const Tensor& x) {
  return x.to_vector<float>();
}

TEST(Engine, ChainMultipliesDerivatives) {
  const Tensor x = leaf({1, 2, 3});

  const Tensor y = (x * x * 3 + 1).sum();
  y.backward();

  EXPECT_EQ(floats(x.grad()), Floats({6, 12, 18}));
}

TEST(Engine, DiamondAddsBothPaths) {
  const Tensor x = leaf({2});

  const Tensor h = x * 2;
  const Tensor a = h * 3, b = h * h;
  (a + b).sum().backward();

  EXPECT_EQ(floats(x.grad()), Floats({6 + 2 * 2 * 4}));
}

TEST(Engine, SharedLeafGetsAllUses) {
  const Tensor w = leaf({3});

  (w * 2 + w * w + w).sum().backward();

  EXPECT_EQ(floats(w.grad()), Floats({2 + 6 + 1}));
}

TEST(Engine, TensorTimesItselfCountsTwice) {
  const Tensor x = leaf({5});

  (x * x).backward();

  EXPECT_EQ(floats(x.grad()), Floats({10}));
}

TEST(Engine, GradientsAddUpOverBackwards) {
  const Tensor x = leaf({1, 1});

  (x * 2).sum().backward();
  (x * 3).sum().backward();

  EXPECT_EQ(floats(x.grad()), Floats({5, 5}));
}

TEST(Engine, AccumulationKeepsEarlierHandlesOfTheGradient) {
  const Tensor x = leaf({1});
  x.backward();
  const Tensor first = x.grad();

  x.backward();

  EXPECT_TRUE(first.is_same(x.grad()));
  EXPECT_EQ(floats(first), Floats({2}));
}

TEST(Engine, GradientOfTheCallerIsNeverTakenOver) {
  const Tensor x = leaf({1, 2});
  const Tensor dy = tensor({5.f, 7.f});

  backward({x + 0}, {dy});
  backward({x + 0}, {dy});

  EXPECT_EQ(floats(x.grad()), Floats({10, 14}));
  EXPECT_EQ(floats(dy), Floats({5, 7}));
}

TEST(Engine, LeavesSharingOneGradientGetTheirOwn) {
  const Tensor a = leaf({1}), b = leaf({1});

  (a + b).backward();
  a.grad().zero_();

  EXPECT_EQ(floats(b.grad()), Floats({1}));
}

TEST(Engine, GivenGradientIsUsed) {
  const Tensor x = leaf({1, 2});

  (x * x).backward(tensor({1.f, 10.f}));

  EXPECT_EQ(floats(x.grad()), Floats({2, 40}));
}

TEST(Engine, SeveralOutputsRunTogether) {
  const Tensor x = leaf({1, 2});
  const Tensor a = x * 2, b = a * a;

  backward({a.sum(), b.sum()});

  EXPECT_EQ(floats(x.grad()), Floats({2 + 8, 2 + 16}));
}

TEST(Engine, OutputThatIsALeafGetsItsGradient) {
  const Tensor x = leaf({4});

  x.backward();

  EXPECT_EQ(floats(x.grad()), Floats({1}));
}

TEST(Engine, ExpandedGradientIsCopiedIntoTheLeaf) {
  const Tensor x = leaf({1, 2, 3});

  x.sum().backward();

  EXPECT_TRUE(x.grad().is_contiguous());
  EXPECT_EQ(floats(x.grad()), Floats({1, 1, 1}));
}

TEST(Engine, SecondBackwardWithoutRetainThrows) {
  const Tensor x = leaf({1});
  const Tensor y = x.exp();
  y.backward();

  const std::string message = error_of<InvalidArgument>([&] { y.backward(); });

  EXPECT_NE(message.find("exp at"), std::string::npos) << message;
  EXPECT_NE(message.find("engine_test.cpp"), std::string::npos) << message;
  EXPECT_NE(message.find("retain_graph"), std::string::npos) << message;
  EXPECT_EQ(floats(x.grad()), Floats({std::exp(1.f)}));
}

TEST(Engine, RetainedGraphRunsAgain) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;

  backward({y}, {}, {.retain_graph = true});
  y.backward();

  EXPECT_EQ(floats(x.grad()), Floats({12}));
}

TEST(Engine, OutputOfSeveralElementsNeedsAGradient) {
  const Tensor y = leaf({1, 2}) * 2;

  const std::string message = error_of<InvalidArgument>([&] { y.backward(); });

  EXPECT_NE(message.find("(2,)"), std::string::npos) << message;
  EXPECT_NE(message.find("engine_test.cpp"), std::string::npos) << message;
}

TEST(Engine, GradientOfAnotherShapeOrOfIntegersThrows) {
  const Tensor y = leaf({1, 2}) * 2;

  EXPECT_THROW(y.backward(tensor({1.f, 2.f, 3.f})), InvalidArgument);
  EXPECT_THROW(y.backward(tensor(std::vector<int64_t>{1, 2}, {2})), InvalidArgument);
  EXPECT_THROW(backward({y}, {ones({2}), ones({2})}), InvalidArgument);
}

TEST(Engine, OutputWithoutHistoryThrows) {
  EXPECT_THROW(ones({1}).backward(), InvalidArgument);
  EXPECT_THROW(Tensor().backward(), InvalidArgument);
  EXPECT_THROW(backward({}), InvalidArgument);
}

TEST(Engine, NothingIsRecordedUnderNoGradGuard) {
  const Tensor x = leaf({1});
  Tensor y, z;
  {
    const NoGradGuard no_grad;
    y = x * 2;
    const EnableGradGuard enable_grad;
    z = x * 2;
  }

  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(z.requires_grad());
  EXPECT_TRUE(is_grad_enabled());
}

TEST(Engine, ConstantsGetNoGradient) {
  const Tensor x = leaf({2}), c = tensor({3.f});

  (x * c).backward();

  EXPECT_FALSE(c.grad().defined());
  EXPECT_EQ(floats(x.grad()), Floats({3}));
}

TEST(Grad, ReturnsGradientsAndTouchesNoLeaf) {
  const Tensor x = leaf({2}), w = leaf({3});
  const Tensor h = x * w;
  const Tensor y = h * h;

  const auto gradients = grad({y}, {x, h});

  EXPECT_EQ(floats(gradients[0]), Floats({2 * 6 * 3}));
  EXPECT_EQ(floats(gradients[1]), Floats({12}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
}

TEST(Grad, OutputAsInputGivesItsOwnGradient) {
  const Tensor x = leaf({2});
  const Tensor y = x * 3;

  const auto gradients = grad({y}, {y, x}, {.grad_outputs = {tensor({7.f})}});

  EXPECT_EQ(floats(gradients[0]), Floats({7}));
  EXPECT_EQ(floats(gradients[1]), Floats({21}));
}

TEST(Grad, UnusedInputThrowsUnlessAllowed) {
  const Tensor x = leaf({2}), unused = leaf({1});
  const Tensor y = x * x;

  EXPECT_THROW(grad({y}, {unused}, {.retain_graph = true}), InvalidArgument);
  const auto gradients = grad({y}, {x, unused}, {.allow_unused = true});

  EXPECT_EQ(floats(gradients[0]), Floats({4}));
  EXPECT_FALSE(gradients[1].defined());
}

TEST(Grad, InputThatRequiresNoGradThrows) {
  const Tensor x = leaf({2});

  EXPECT_THROW(grad({x * x}, {ones({1})}), InvalidArgument);
}

TEST(Grad, PartsThatLeadToNoInputAreNotRun) {
  const Tensor x = leaf({2}), w = leaf({3});
  const Tensor other = w.exp();
  const Tensor y = x * x + other;
  other.backward();  // frees what exp saved

  const auto gradients = grad({y}, {x});

  EXPECT_EQ(floats(gradients[0]), Floats({4}));
}

TEST(Grad, SecondDerivative) {
  const Tensor x = leaf({3});
  const Tensor y = x * x * x;

  const Tensor dx = grad({y}, {x}, {.create_graph = true})[0];
  const Tensor ddx = grad({dx}, {x})[0];

  EXPECT_EQ(floats(dx), Floats({27}));
  EXPECT_EQ(floats(ddx), Floats({18}));
}

TEST(Grad, ThirdDerivativeThroughSavedOutputs) {
  const Tensor x = leaf({0.5f});
  const Tensor y = x.exp() * x;  // y''' = (x + 3) e^x

  const Tensor d1 = grad({y}, {x}, {.create_graph = true})[0];
  const Tensor d2 = grad({d1}, {x}, {.create_graph = true})[0];
  const Tensor d3 = grad({d2}, {x})[0];

  EXPECT_NEAR(d3.item<double>(), 3.5 * std::exp(0.5), 1e-5);
}

TEST(Grad, BackwardWithCreateGraphRecordsTheLeafGradient) {
  const Tensor x = leaf({2});
  backward({x * x * x}, {}, {.create_graph = true});
  const Tensor first = x.grad();
  x.set_grad({});

  first.backward();

  EXPECT_EQ(floats(first), Floats({12}));
  EXPECT_EQ(floats(x.grad()), Floats({12}));
}

TEST(Engine, CastReturnsGradientsInTheInputsDtype) {
  const Tensor x = leaf({2});
  const Tensor y = x.to(float64) * 3;

  y.sum().backward();

  EXPECT_EQ(x.grad().dtype(), float32);
  EXPECT_EQ(floats(x.grad()), Floats({3}));
}

TEST(Engine, IntegerResultsTrackNothing) {
  const Tensor x = leaf({2.5f});

  EXPECT_FALSE(x.to(int64).requires_grad());
}

TEST(Engine, DeepChainNeitherRecursesInBackwardNorInDestruction) {
  const Tensor x = leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < 100000; ++i)
      y = y + 1;
    y.backward();
  }

  EXPECT_EQ(floats(x.grad()), Floats({1}));
}

TEST(Engine, FailedBackwardLeavesTheGraphUsable) {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  const int64_t hook = y.register_hook(
      [](const Tensor&) -> Tensor { throw Unsupported("[test] the hook gives up"); });
  EXPECT_THROW(backward({y * 2}), Unsupported);
  y.remove_hook(hook);

  y.backward();

  EXPECT_EQ(floats(x.grad()), Floats({4}));
}

TEST(Engine, DifferentOrderOfUsesGivesTheSameBits) {
  const auto run = [] {
    const Tensor x = leaf({0.1f, 0.7f});
    Tensor total = zeros({2});
    for (int i = 1; i < 20; ++i)
      total = total + (x * (0.1f * static_cast<float>(i))).exp();
    total.sum().backward();
    return floats(x.grad());
  };

  EXPECT_EQ(run(), run());
}

TEST(Engine, StaleGradientOfAnotherShapeThrowsAfterSetData) {
  const Tensor x = leaf({1, 2});
  const Tensor y = (x * 2).sum();
  x.set_data(zeros({3}));

  EXPECT_THROW(y.backward(), InvalidArgument);
}

// What lies behind h is not run, so it is there for the second half.
TEST(Engine, GradByAResultLeavesWhatMadeItAlive) {
  const Tensor x = tensor({2.f}, {.requires_grad = true});
  const Tensor h = x * x;
  const Tensor y = h * h;

  const Tensor dh = grad({y}, {h})[0];
  backward({h}, {dh});

  EXPECT_EQ(dh.item(), 8);
  EXPECT_EQ(x.grad().item(), 32);
  EXPECT_THROW(backward({h}, {dh}), InvalidArgument);
}

TEST(Engine, GradByAResultDoesNotNeedWhatMadeItAlive) {
  const Tensor x = leaf({3});
  const Tensor h = x * x;
  h.backward();

  EXPECT_EQ(floats(grad({h * h}, {h})[0]), Floats({18}));
  EXPECT_THROW(grad({h * h}, {h, x}), InvalidArgument);
}

TEST(Engine, ALeafThatNoLongerRequiresGradGetsNone) {
  const Tensor x = leaf({3}), w = leaf({2});
  const Tensor y = x * w;

  w.requires_grad_(false);
  y.backward();

  EXPECT_FALSE(w.grad().defined());
  EXPECT_EQ(floats(x.grad()), Floats({2}));
}

TEST(Backward, TheMethodTakesOptions) {
  const Tensor x = tensor({1.0, 2.0}, {.dtype = float64, .requires_grad = true});
  const Tensor y = x * x;
  y.sum().backward({.retain_graph = true});
  y.backward(ones({2}, {.dtype = float64}), {.retain_graph = true});
  y.backward(ones({2}, {.dtype = float64}));
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{6, 12}));
  EXPECT_THROW(y.sum().backward(), InvalidArgument);
}

}  // namespace
}  // namespace flow
