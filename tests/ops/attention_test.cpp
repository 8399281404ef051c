#include "ops/linear/attention.h"

#include <cmath>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/random/random.h"
#include "ops/shape/view.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

TEST(Attention, WeighsValuesByScaledScores) {
  const Tensor query = tensor({{1.f, 0.f, 0.f, 0.f}});
  const Tensor key = tensor({{2.f, 0.f, 0.f, 0.f}, {0.f, 0.f, 0.f, 0.f}});
  const Tensor value = tensor({{1.f}, {0.f}});

  // softmax(2 / sqrt(4), 0)
  expect_values(scaled_dot_product_attention(query, key, value), {0.73105858});
  expect_values(scaled_dot_product_attention(query, key, value, {.scale = 0}), {0.5});
}

TEST(Attention, CausalQueriesSeeNoLaterKey) {
  const Tensor zero = zeros({3, 2});
  const Tensor value = tensor({{3.f}, {5.f}, {7.f}});

  expect_values(scaled_dot_product_attention(zero, zero, value, {.is_causal = true}), {3, 4, 5});
  expect_values(
      scaled_dot_product_attention(zero.narrow(0, 0, 2), zero, value, {.is_causal = true}), {3, 4});
}

TEST(Attention, FusedEqualsExplicit) {
  manual_seed(1);
  const Tensor q = randn({2, 3, 70, 8}).requires_grad_();
  const Tensor k = randn({2, 3, 70, 8}).requires_grad_();
  const Tensor v = randn({2, 3, 70, 6}).requires_grad_();
  const Tensor dy = randn({2, 3, 70, 6});
  scaled_dot_product_attention(q, k, v).backward(dy);
  const auto dq = q.grad().to_vector<double>();
  const auto dk = k.grad().to_vector<double>();
  const auto dv = v.grad().to_vector<double>();
  for (const Tensor& x : {q, k, v})
    x.set_grad(Tensor());

  const Tensor fused = scaled_dot_product_attention(q, k, v);
  const Tensor open = scaled_dot_product_attention(q, k, v, {.attn_mask = zeros({70, 70})});
  open.backward(dy);

  expect_values(fused, open.to_vector<double>(), 2e-6);
  expect_values(q.grad(), dq, 1e-5);
  expect_values(k.grad(), dk, 1e-5);
  expect_values(v.grad(), dv, 1e-5);
}

// Heads are views of (B, T, heads x width); results and gradients are stored as they are.
TEST(Attention, HeadsThatAreViewsNeedNoCopies) {
  manual_seed(2);
  for (const DType dtype : {float32, float64, bfloat16}) {
    const auto heads = [](const Tensor& x) { return x.reshape({2, 40, 3, 8}).transpose(1, 2); };
    std::vector<Tensor> views;
    std::vector<Tensor> dense;
    for (int i = 0; i < 3; ++i) {
      views.push_back(heads(cast(randn({2, 40, 24}), dtype)).requires_grad_());
      dense.push_back(views.back().detach().contiguous().requires_grad_());
    }
    const Tensor dy = heads(cast(randn({2, 40, 24}), dtype));

    const auto attend = [&](const std::vector<Tensor>& x) {
      std::vector<Tensor> all = {
          scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true})};
      for (const Tensor& dx : grad({all[0]}, x, {.grad_outputs = {dy}}))
        all.push_back(dx);
      return all;
    };
    const std::vector<Tensor> of_views = attend(views);
    const std::vector<Tensor> of_dense = attend(dense);

    for (size_t i = 0; i < of_views.size(); ++i) {
      EXPECT_TRUE(of_views[i].transpose(1, 2).is_contiguous()) << dtype << ", " << i;
      EXPECT_TRUE(of_dense[i].is_contiguous()) << dtype << ", " << i;
      EXPECT_EQ(of_views[i].to_vector<double>(), of_dense[i].to_vector<double>())
          << dtype << ", " << i;
    }
  }
}

TEST(Attention, MasksByTruthOrByAddition) {
  const Tensor zero = zeros({2, 2});
  const Tensor value = tensor({{3.f}, {5.f}});
  const Tensor only_first = tensor({{true, false}, {true, true}});

  expect_values(scaled_dot_product_attention(zero, zero, value, {.attn_mask = only_first}), {3, 4});
  expect_values(
      scaled_dot_product_attention(zero, zero, value, {.attn_mask = tensor({0.f, std::log(3.f)})}),
      {4.5, 4.5});
}

TEST(Attention, AQueryThatSeesNoKeyGivesZerosAndNoGradient) {
  const Tensor query = ones({2, 2}).requires_grad_();
  const Tensor key = ones({2, 2}).requires_grad_();
  const Tensor value = tensor({{3.f}, {5.f}}).requires_grad_();
  const Tensor mask = tensor({{true, true}, {false, false}});
  const Tensor added = tensor({{0.f, 0.f}, {-INFINITY, -INFINITY}});
  for (const Tensor& attn_mask : {mask, added}) {
    const Tensor y = scaled_dot_product_attention(query, key, value, {.attn_mask = attn_mask});
    expect_values(y, {4, 0});
    for (const Tensor& x : {query, key, value})
      x.set_grad(Tensor());
    y.backward(ones({2, 1}));
    expect_values(query.grad(), {0, 0, 0, 0});
    expect_values(value.grad(), {0.5, 0.5});
  }
  expect_values(scaled_dot_product_attention(ones({2, 2}), ones({0, 2}), ones({0, 1})), {0, 0});
}

TEST(Attention, SeveralQueryHeadsShareAKeyHead) {
  const Tensor query = zeros({4, 1, 2});
  const Tensor key = zeros({2, 2, 2});
  const Tensor value = tensor({3.f, 5.f, 7.f, 11.f}).reshape({2, 2, 1});

  expect_values(scaled_dot_product_attention(query, key, value, {.enable_gqa = true}),
                {4, 4, 9, 9});
  expect_refused(
      [&] {
        scaled_dot_product_attention(query.narrow(0, 0, 3), key, value, {.enable_gqa = true});
      },
      "the query's heads a multiple of the others'; received 3 heads");
}

TEST(Attention, BroadcastsLeadingDims) {
  const Tensor query = zeros({4, 1, 2});
  const Tensor value = tensor({{3.f}, {5.f}});

  const Tensor y = scaled_dot_product_attention(query, zeros({2, 2}), value);

  EXPECT_EQ(y.shape(), (Shape{4, 1, 1}));
  expect_values(y, {4, 4, 4, 4});
}

TEST(Attention, RefusesOperandsThatDoNotMatch) {
  const Tensor x = ones({2, 3});

  expect_refused(
      [&] {
        scaled_dot_product_attention(x, ones({2, 4}), x);
      },
      "query and key have widths 3 and 4");
  expect_refused(
      [&] {
        scaled_dot_product_attention(x, x, ones({5, 3}));
      },
      "one row for each source position");
  expect_refused([&] { scaled_dot_product_attention(ones({3}), x, x); },
                 "takes (..., rows, width)");
  expect_refused(
      [&] {
        scaled_dot_product_attention(x, x, x, {.attn_mask = ones({2, 2}), .is_causal = true});
      },
      "exclude each other");
}

}  // namespace
}  // namespace flow
