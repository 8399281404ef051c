// What in-place ops and views mean for gradients.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "autograd/recorder.h"
#include "autograd/shape_in_place.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

Tensor leaf(const std::vector<float>& values) {
  return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_();
}

TEST(InPlace, LeafThatRequiresGradIsRefused) {
  const Tensor x = leaf({1, 2});

  const std::string message = error_of([&] { x.add_(1); });
  EXPECT_NE(message.find("leaf"), std::string::npos) << message;
  EXPECT_NE(message.find("in_place_test.cpp"), std::string::npos) << message;
  EXPECT_THROW(x.narrow(0, 0, 1).add_(1), InvalidArgument);
  EXPECT_EQ(x.to_vector<float>(), Floats({1, 2}));

  const NoGradGuard no_grad;
  x.add_(1);
  EXPECT_EQ(x.to_vector<float>(), Floats({2, 3}));
}

TEST(InPlace, ChainsOnTheOldHistory) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3;

  h.add_(1);
  h.mul_(4);
  h.backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({12}));
}

TEST(InPlace, ConstantBecomesAResult) {
  const Tensor x = leaf({2});
  const Tensor total = zeros({1});

  total.add_(x * 5);
  total.add_(x);

  EXPECT_FALSE(total.is_leaf());
  total.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({6}));
}

TEST(InPlace, OverwrittenSavedInputThrowsInBackward) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3;
  const Tensor y = h * h;
  h.add_(1);

  const std::string message = error_of([&] { y.backward(); });

  EXPECT_NE(message.find("[mul]"), std::string::npos) << message;
  EXPECT_NE(message.find("in_place_test.cpp"), std::string::npos) << message;
  EXPECT_NE(message.find("clone()"), std::string::npos) << message;
  EXPECT_FALSE(x.grad().defined());
}

TEST(InPlace, OverwrittenSavedOutputThrowsInBackward) {
  const Tensor x = leaf({2});
  const Tensor y = x.exp();
  y.add_(1);

  EXPECT_NE(error_of([&] { y.backward(); }).find("[exp]"), std::string::npos);
}

TEST(InPlace, WriteThroughADetachedHandleIsNoticed) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3;
  const Tensor y = h * h;
  h.detach().add_(1);

  EXPECT_THROW(y.backward(), InvalidArgument);
}

TEST(InPlace, OptimizerStepBetweenForwardAndBackwardIsNoticed) {
  const Tensor w = leaf({2}), x = leaf({3});
  const Tensor y = w * x;
  {
    const NoGradGuard no_grad;
    w.sub_(1);
  }

  EXPECT_THROW(y.backward(), InvalidArgument);
}

TEST(InPlace, OpKeepsTheValueItOverwritesWhereItsGradientReadsIt) {
  const Tensor x = leaf({2}), w = leaf({3});
  const Tensor h = x * 1;
  h.mul_(w);

  h.backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({3}));
  EXPECT_EQ(w.grad().to_vector<float>(), Floats({2}));
}

TEST(InPlace, OldValueThatIsNotNeededMayBeOverwritten) {
  const Tensor x = leaf({2});
  const Tensor h = x * 1;
  h.mul_(tensor({5.f}));

  h.backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({5}));
}

TEST(InPlace, FillCutsTheHistory) {
  const Tensor x = leaf({2, 3});
  const Tensor h = x * 2;
  h.fill_(7);
  const Tensor y = (h + x).sum();

  y.backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({1, 1}));
}

TEST(InPlace, RetainedGradientFollowsTheTensor) {
  const Tensor x = leaf({2});
  const Tensor h = x * 3;
  h.retain_grad();
  h.mul_(2);

  (h * 5).backward();

  EXPECT_EQ(h.grad().to_vector<float>(), Floats({5}));
}

TEST(Views, GradientsFlowThroughViews) {
  const Tensor x = leaf({1, 2, 3, 4});

  const Tensor v = x.reshape({2, 2}).transpose(0, 1).narrow(0, 1, 1);
  (v * v).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 4, 0, 8}));
}

TEST(Views, WriteToAViewReachesTheBase) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor base = x * 1;

  base.narrow(0, 1, 1).mul_(10);
  (base * tensor({1.f, 2.f, 3.f})).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({1, 20, 3}));
}

TEST(Views, WriteIntoAConstantRecordsTheSource) {
  const Tensor x = leaf({2}), y = leaf({3});
  const Tensor out = zeros({2});

  out.select(0, 0).copy_(x.select(0, 0));
  out.select(0, 1).copy_(y.select(0, 0) * 2);
  (out * out).sum().backward();

  EXPECT_TRUE(out.requires_grad());
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({4}));
  EXPECT_EQ(y.grad().to_vector<float>(), Floats({2 * 6 * 2}));
}

TEST(Views, ViewTakenBeforeTheWriteSeesIt) {
  const Tensor x = leaf({1, 2});
  const Tensor base = x * 1;
  const Tensor view = base.narrow(0, 0, 1);

  base.mul_(3);
  (view * 5).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({15, 0}));
}

TEST(Views, ViewOfAConstantSeesARecordedWrite) {
  const Tensor x = leaf({1, 2});
  const Tensor base = zeros({2});
  const Tensor view = base.narrow(0, 1, 1);
  EXPECT_FALSE(view.requires_grad());

  base.copy_(x);

  EXPECT_TRUE(view.requires_grad());
  EXPECT_FALSE(view.is_leaf());
  (view * 5).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 5}));
}

// As in PyTorch: only what is read from the leaf itself, or from later views, has gradients.
TEST(Views, ViewMadeBeforeItsBaseRequiresGradIsAConstant) {
  const Tensor x = tensor({1.0F, 2.0F, 3.0F});
  const Tensor early = x.narrow(0, 0, 2);
  x.requires_grad_();

  EXPECT_FALSE(early.requires_grad());
  EXPECT_FALSE((early * 2).requires_grad());
  EXPECT_TRUE(x.narrow(0, 0, 2).requires_grad());
  (early * x.narrow(0, 1, 2)).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 1, 2}));
}

TEST(Views, WriteToOneViewChangesAnother) {
  const Tensor x = leaf({1, 2});
  const Tensor base = x * 1;
  const Tensor a = base.narrow(0, 0, 1), b = base.narrow(0, 0, 2);

  a.mul_(7);
  b.sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({7, 1}));
}

TEST(Views, ViewOfAViewWritesToTheSameBase) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor base = x * 1;

  base.reshape({2, 2}).select(0, 1).narrow(0, 1, 1).mul_(100);
  base.sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({1, 1, 1, 100}));
}

TEST(Views, WrittenViewIsUsedOnWithItsOwnHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor base = x * 1;
  const Tensor view = base.narrow(0, 1, 1);
  view.add_(x.narrow(0, 0, 1));

  (view * 3).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({3, 3}));
}

TEST(Views, ViewOfAStridedBaseIsWritten) {
  const Tensor x = leaf({1, 2, 3, 4, 5, 6});
  const Tensor base = (x * 1).reshape({2, 3}).clone().transpose(0, 1);
  const Tensor detached = base.detach();
  const Tensor strided = detached.narrow(1, 0, 1);
  strided.copy_(x.narrow(0, 0, 3).reshape({3, 1}));

  (detached * 2).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({2, 2, 2, 0, 0, 0}));
}

TEST(Views, ZeroedPartHasNoGradient) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor base = x * 2;
  base.narrow(0, 0, 2).zero_();

  base.sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 0, 2}));
}

TEST(Views, ViewMadeUnderNoGradRefusesRecordedWrites) {
  const Tensor x = leaf({1, 2});
  const Tensor base = zeros({2});
  Tensor view;
  {
    const NoGradGuard no_grad;
    view = base.narrow(0, 0, 1);
  }

  EXPECT_NE(error_of([&] { view.add_(x.narrow(0, 0, 1)); }).find("NoGradGuard"), std::string::npos);
  view.add_(1);
  EXPECT_EQ(base.to_vector<float>(), Floats({1, 0}));
}

TEST(Views, ViewMadeUnderNoGradOfARecordedTensorRefusesWrites) {
  const Tensor x = leaf({1, 2});
  const Tensor h = x * 1;
  Tensor view, view_of_view, view_of_leaf;
  {
    const NoGradGuard no_grad;
    view = h.narrow(0, 0, 1);
    view_of_leaf = x.narrow(0, 0, 1);
    view.mul_(2);
  }
  view_of_view = view.reshape({1, 1});

  for (const Tensor& written : {view, view_of_view, view_of_leaf}) {
    EXPECT_NE(error_of([&] { written.zero_(); }).find("NoGradGuard"), std::string::npos);
  }
  EXPECT_EQ(h.to_vector<float>(), Floats({2, 2}));
}

TEST(Views, WritesThroughViewsHaveHigherDerivatives) {
  const Tensor x = tensor(std::vector<double>{0.3, -0.4, 0.5, 0.9}, {4}, {.requires_grad = true});
  const auto fn = [](const std::vector<Tensor>& in) {
    const Tensor base = in[0] * in[0];
    base.narrow(0, 1, 2).sub_(in[0].narrow(0, 0, 2).exp());
    base.reshape({2, 2}).select(1, 0).mul_(2);
    relu_(base.narrow(0, 0, 2));
    return base * in[0];
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

TEST(InPlace, GraphOfAMutatedInputIsFreed) {
  auto alive = std::make_shared<int>();
  const std::weak_ptr<int> graph = alive;
  {
    // A node that saved h, and h written with a value that depends on that node: no cycle.
    const Tensor x = leaf({2});
    const Tensor h = x * 2;
    const Tensor y = h.exp();
    y.register_hook([alive](const Tensor&) { return Tensor(); });
    h.add_(y * h);
  }
  alive.reset();

  EXPECT_TRUE(graph.expired());
}

TEST(InPlaceShape, TheHandleTakesTheNewShape) {
  const Tensor x = arange(6).reshape({2, 1, 3});
  const Tensor same = x;
  EXPECT_TRUE(squeeze_(x, 1).is_same(x));
  EXPECT_EQ(same.shape(), Shape({2, 3}));
  EXPECT_EQ(t_(x).shape(), Shape({3, 2}));
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(transpose_(unsqueeze_(x, 0), 0, 2).shape(), Shape({2, 3, 1}));
  EXPECT_EQ(squeeze_(x).shape(), Shape({2, 3}));
}

TEST(InPlaceShape, GradientsPassTheChange) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor h = x * 2;
  unsqueeze_(h, 0).mul_(tensor({{1.0}, {10.0}}).sum({0}, {.keepdim = true}));
  t_(h);
  (h * tensor({{1.0}, {2.0}, {3.0}})).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({22, 44, 66}));
}

TEST(InPlaceShape, AViewStaysAViewOfItsBase) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor h = x * 1;
  const Tensor v = h.narrow(0, 0, 2);
  unsqueeze_(v, 0);
  v.mul_(5);
  EXPECT_EQ(h.to_vector<float>(), Floats({5, 10, 3, 4}));
  h.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({5, 5, 1, 1}));
}

TEST(InPlaceShape, LeavesAreRefusedWhereGradientsAreRecorded) {
  const Tensor x = leaf({1, 2});
  EXPECT_NE(error_of([&] { unsqueeze_(x, 0); }).find("leaf"), std::string::npos);
  EXPECT_THROW(squeeze_(x.narrow(0, 0, 1), 0), InvalidArgument);
  EXPECT_EQ(x.shape(), Shape({2}));

  const NoGradGuard no_grad;
  unsqueeze_(x, 0);
  EXPECT_EQ(x.shape(), Shape({1, 2}));
}

TEST(InPlaceShape, RecordedTensorsAreRefusedWhereNothingIsRecorded) {
  const Tensor h = leaf({1, 2}) * 2;
  const NoGradGuard no_grad;
  EXPECT_THROW(unsqueeze_(h, 0), InvalidArgument);
}

TEST(InPlaceShape, OldViewsOfAChangedBaseAreRefusedInBackward) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor h = (x * 1).reshape({2, 2}).clone();
  const Tensor row = h.select(0, 0);
  unsqueeze_(h, 0);
  h.mul_(2);
  EXPECT_NE(error_of([&] { row.sum().backward(); }).find("changed its shape in place"),
            std::string::npos);
}

// The shapes and strides of these views are those that the changed base would give.
TEST(InPlaceShape, OldViewsOfATransposedBaseAreRefusedInBackward) {
  const Tensor x = leaf({1, 2, 3, 4});
  const std::vector<std::function<Tensor(const Tensor&)>> views{
      [](const Tensor& h) { return h.select(0, 1).select(0, 0); },
      [](const Tensor& h) { return h.reshape({4}); }};
  for (const auto& view_of : views) {
    const Tensor h = (x * 1).reshape({2, 2}).clone();
    const Tensor view = view_of(h);
    h.t_();
    EXPECT_NE(error_of([&] { view.sum().backward(); }).find("changed its shape in place"),
              std::string::npos);
    EXPECT_NE(error_of([&] { view.mul_(10); }).find("changed its shape in place"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace flow
