// The autograd methods of Tensor.
#include "core/tensor.h"

#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "ops/conv/conv.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

TEST(TensorAutograd, RequiresGradNeedsAFloatingLeaf) {
  const Tensor x = zeros({2}).requires_grad_();
  const Tensor y = x * 2;

  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_THROW(zeros({2}, {.dtype = int64}).requires_grad_(), InvalidArgument);
  EXPECT_THROW(y.requires_grad_(false), InvalidArgument);
  EXPECT_FALSE(x.requires_grad_(false).requires_grad());
}

TEST(TensorAutograd, OptionsMakeLeaves) {
  const Tensor x = ones({2}, {.requires_grad = true});

  (x * 3).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({3, 3}));
}

TEST(TensorAutograd, SetGradChecksItsArgument) {
  const Tensor x = zeros({2}).requires_grad_();

  EXPECT_THROW(x.set_grad(zeros({3})), InvalidArgument);
  EXPECT_THROW(x.set_grad(zeros({2}, {.dtype = float64})), InvalidArgument);
  EXPECT_THROW(x.set_grad(x), InvalidArgument);
  x.set_grad(ones({2}));
  EXPECT_EQ(x.grad().to_vector<float>(), Floats({1, 1}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(TensorAutograd, DetachSharesMemoryWithoutHistory) {
  const Tensor x = ones({2}).requires_grad_();
  const Tensor d = (x * 2).detach();

  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(d.is_leaf());

  const Tensor base = zeros({2});
  base.detach().add_(1);
  EXPECT_EQ(base.to_vector<float>(), Floats({1, 1}));
}

TEST(TensorAutograd, DetachSharesTheMemoryOfBlockedResults) {
  const Tensor y = conv2d(ones({1, 16, 4, 4}), ones({16, 16, 3, 3}));

  const Tensor z = y.detach();
  y.zero_();

  EXPECT_EQ(z.sum().item(), 0);

  const Tensor data = conv2d(ones({1, 16, 4, 4}), ones({16, 16, 3, 3}));
  const Tensor holder = ones({1});
  holder.set_data(data);
  data.zero_();

  EXPECT_EQ(holder.sum().item(), 0);
}

TEST(TensorAutograd, SetDataKeepsHandleAndGradient) {
  const Tensor x = ones({2}).requires_grad_();
  const std::vector<Tensor> handles = {x};
  x.set_grad(ones({2}));

  x.set_data(zeros({3}));

  EXPECT_EQ(handles[0].shape(), Shape({3}));
  EXPECT_TRUE(handles[0].requires_grad());
  EXPECT_EQ(x.grad().shape(), Shape({2}));
  EXPECT_THROW(x.set_data(zeros({2}, {.dtype = int64})), InvalidArgument);
  EXPECT_THROW((x * 2).set_data(zeros({3})), InvalidArgument);
}

TEST(TensorAutograd, SetDataAfterForwardUsesTheValuesOfForward) {
  const Tensor x = tensor({2.f}).requires_grad_();
  const Tensor y = x * x;

  x.set_data(tensor({50.f}));
  y.backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({4}));
}

TEST(TensorAutograd, RetainGradKeepsTheGradientOfAResult) {
  const Tensor x = tensor({2.f}).requires_grad_();
  const Tensor h = x * 3;
  h.retain_grad();
  const Tensor y = h * h;
  EXPECT_FALSE(h.grad().defined());

  backward({y}, {}, {.retain_graph = true});
  EXPECT_EQ(h.grad().to_vector<float>(), Floats({12}));
  y.backward();

  EXPECT_EQ(h.grad().to_vector<float>(), Floats({24}));
  EXPECT_THROW(zeros({1}).retain_grad(), InvalidArgument);
}

TEST(TensorAutograd, RetainGradOutlivedByTheGraph) {
  const Tensor x = tensor({2.f}).requires_grad_();
  Tensor y;
  {
    const Tensor h = x * 3;
    h.retain_grad();
    y = h * h;
  }

  y.backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({36}));
}

TEST(TensorAutograd, LeafThatDiedIsSkipped) {
  Tensor y;
  {
    const Tensor x = tensor({2.f}).requires_grad_();
    y = x * x;
  }

  EXPECT_NO_THROW(y.backward());
}

}  // namespace
}  // namespace flow
