#include "ops/conv/conv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/interpreter.h"
#include "eager/runtime.h"
#include "ops/conv/conv_op.h"
#include "ops/conv/pool.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/norm/batch_norm.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/vendor/onednn.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

Doubles doubles(const Tensor& x) {
  return x.to_vector<double>();
}

Tensor uniform(const Shape& shape, DType dtype = DType::kFloat64, uint32_t seed = 7) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(-1, 1);
  Doubles data(static_cast<size_t>(shape.numel()));
  std::generate(data.begin(), data.end(), [&] { return values(random); });
  return tensor(data, shape, {.dtype = dtype});
}

// ---- the definition, as plain loops over contiguous doubles

struct Case {
  std::string name;
  Shape x;       // (N, C, in...)
  Shape weight;  // (O, C / groups, kernel...)
  Ints stride = 1;
  Ints padding = 0;
  Ints dilation = 1;
  int64_t groups = 1;

  ConvOptions options() const {
    return {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups};
  }
};

struct Naive {
  Shape y_shape;
  Doubles y, dx, dw, db;
};

// y, and the gradients of sum(y * dy).
Naive naive_conv(const Case& c, const Doubles& x, const Doubles& weight, const Doubles& bias,
                 const Doubles* dy) {
  const int64_t dims = c.x.size() - 2;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, pad{},
      dilation{1, 1, 1};
  Naive result;
  result.y_shape = {c.x[0], c.weight[0]};
  for (int64_t i = 0; i < dims; ++i) {
    const auto at = static_cast<size_t>(i + 3 - dims);
    const auto pick = [&](const Ints& values) { return values[values.size() == 1 ? 0 : i]; };
    in[at] = c.x[2 + i];
    kernel[at] = c.weight[2 + i];
    stride[at] = pick(c.stride);
    pad[at] = pick(c.padding);
    dilation[at] = pick(c.dilation);
    out[at] = (in[at] + 2 * pad[at] - dilation[at] * (kernel[at] - 1) - 1) / stride[at] + 1;
    result.y_shape.push_back(out[at]);
  }
  const int64_t in_size = in[0] * in[1] * in[2];
  const int64_t out_size = out[0] * out[1] * out[2];
  const int64_t taps = kernel[0] * kernel[1] * kernel[2];
  const int64_t in_group = c.weight[1];
  const int64_t out_group = c.weight[0] / c.groups;
  result.y.resize(static_cast<size_t>(result.y_shape.numel()));
  result.dx.resize(x.size());
  result.dw.resize(weight.size());
  result.db.resize(static_cast<size_t>(c.weight[0]));
  for (int64_t n = 0; n < c.x[0]; ++n) {
    for (int64_t o = 0; o < c.weight[0]; ++o) {
      for (int64_t p = 0; p < out_size; ++p) {
        const std::array<int64_t, 3> at{p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
        const auto y_at = static_cast<size_t>((n * c.weight[0] + o) * out_size + p);
        result.y[y_at] = bias.empty() ? 0 : bias[static_cast<size_t>(o)];
        if (dy != nullptr) result.db[static_cast<size_t>(o)] += (*dy)[y_at];
        for (int64_t ic = 0; ic < in_group; ++ic) {
          for (int64_t t = 0; t < taps; ++t) {
            const std::array<int64_t, 3> tap{t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1],
                                             t % kernel[2]};
            int64_t position = 0;
            bool inside = true;
            for (size_t d = 0; d < 3; ++d) {
              const int64_t i = at[d] * stride[d] - pad[d] + tap[d] * dilation[d];
              inside = inside && i >= 0 && i < in[d];
              position = position * in[d] + i;
            }
            if (!inside) continue;
            const int64_t channel = o / out_group * in_group + ic;
            const auto x_at = static_cast<size_t>((n * c.x[1] + channel) * in_size + position);
            const auto w_at = static_cast<size_t>((o * in_group + ic) * taps + t);
            result.y[y_at] += x[x_at] * weight[w_at];
            if (dy == nullptr) continue;
            result.dx[x_at] += (*dy)[y_at] * weight[w_at];
            result.dw[w_at] += (*dy)[y_at] * x[x_at];
          }
        }
      }
    }
  }
  return result;
}

Tensor call(const Case& c, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  switch (c.x.size()) {
    case 3:
      return conv1d(x, weight, bias, c.options());
    case 4:
      return conv2d(x, weight, bias, c.options());
    default:
      return conv3d(x, weight, bias, c.options());
  }
}

std::vector<Case> cases() {
  return {
      {"plain", {2, 3, 6, 7}, {4, 3, 3, 2}},
      {"one_by_one", {2, 5, 4, 3}, {6, 5, 1, 1}},
      {"padded", {1, 2, 5, 5}, {3, 2, 3, 3}, 1, 1},
      {"strided", {2, 3, 9, 8}, {5, 3, 3, 3}, {2, 3}, {1, 0}},
      {"rows_left_over", {2, 3, 8, 8}, {2, 3, 2, 3}, 3},
      {"dilated", {1, 2, 9, 10}, {3, 2, 3, 2}, 1, {2, 1}, {2, 3}},
      {"all_at_once", {2, 4, 11, 9}, {6, 2, 3, 4}, {2, 1}, {3, 2}, {2, 1}, 2},
      {"depthwise", {2, 6, 7, 7}, {6, 1, 3, 3}, 2, 1, 1, 6},
      {"multiplier", {1, 3, 5, 6}, {6, 1, 3, 3}, 1, 1, 1, 3},
      {"wide_channels", {3, 17, 6, 5}, {19, 17, 3, 3}, 1, 1},
      {"groups_of_sixteen", {2, 32, 5, 5}, {32, 16, 3, 3}, 1, 1, 1, 2},
      {"wider_than_kernel", {1, 1, 1, 3}, {1, 1, 3, 3}, 1, 2},
      {"one_dim", {2, 3, 11}, {4, 3, 3}, 2, 1, 2},
      {"three_dims", {1, 2, 4, 5, 3}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 0, 1}},
      {"three_dims_grouped", {2, 4, 3, 4, 4}, {4, 2, 2, 2, 3}, 1, 1, 1, 2},
      {"many_samples", {19, 3, 12, 12}, {16, 3, 5, 5}, 1, 2},
  };
}

double tolerance(DType dtype) {
  if (dtype == float64) return 1e-12;
  if (dtype == float32) return 2e-5;
  return dtype == float16 ? 2e-2 : 1e-1;
}

// Differences relative to the largest element.
void expect_close(const Tensor& actual, const Doubles& expected, double limit,
                  const std::string& what) {
  const Doubles values = doubles(actual);
  ASSERT_EQ(values.size(), expected.size()) << what;
  double largest = 1;
  for (const double v : expected)
    largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], limit * largest) << what << " at " << i;
}

void check_case(const Case& c, DType dtype) {
  SCOPED_TRACE(c.name + " " + std::string(dtype_name(dtype)));
  const Tensor x = uniform(c.x, dtype, 1).requires_grad_();
  const Tensor weight = uniform(c.weight, dtype, 2).requires_grad_();
  const Tensor bias = uniform({c.weight[0]}, dtype, 3).requires_grad_();

  const Tensor y = call(c, x, weight, bias);
  const Tensor dy = uniform(y.shape(), dtype, 4);
  const auto grads = grad({y}, {x, weight, bias}, {.grad_outputs = {dy}});

  const Doubles dy_values = doubles(dy);
  const Naive naive = naive_conv(c, doubles(x), doubles(weight), doubles(bias), &dy_values);
  const double limit = tolerance(dtype);
  EXPECT_EQ(y.shape(), naive.y_shape);
  expect_close(y, naive.y, limit, "y");
  expect_close(grads[0], naive.dx, limit, "dx");
  expect_close(grads[1], naive.dw, limit, "dw");
  expect_close(grads[2], naive.db, limit, "db");
}

TEST(Conv, BestKernelsComputeTheDefinition) {
  for (const Case& c : cases()) {
    for (const DType dtype : {float64, float32, float16, bfloat16})
      check_case(c, dtype);
  }
}

TEST(Conv, ReferenceComputesTheDefinition) {
  for (const Case& c : cases()) {
    const Tensor x = uniform(c.x, float32, 1);
    const Tensor weight = uniform(c.weight, float32, 2);
    const Tensor bias = uniform({c.weight[0]}, float32, 3);
    const Naive naive = naive_conv(c, doubles(x), doubles(weight), doubles(bias), nullptr);
    const eager::KernelGuard guard("reference");

    const Tensor y = call(c, x, weight, bias);

    expect_close(y, naive.y, 1e-6, c.name);
  }
}

std::vector<Tensor> output_and_gradients(const Case& c, const Tensor& dy) {
  const Tensor x = uniform(c.x, float32, 1).requires_grad_();
  const Tensor weight = uniform(c.weight, float32, 2).requires_grad_();
  const Tensor bias = uniform({c.weight[0]}, float32, 3).requires_grad_();
  const Tensor y = call(c, x, weight, bias);
  std::vector<Tensor> results = grad({y}, {x, weight, bias}, {.grad_outputs = {dy}});
  results.push_back(y);
  return results;
}

TEST(Conv, KernelsAgree) {
  for (const Case& c : cases()) {
    const Shape y = call(c, zeros(c.x), zeros(c.weight), Tensor()).shape();
    const Tensor dy = uniform(y, float32, 4);
    std::vector<Tensor> expected;
    for (const char* kernel : {"reference", "gemm", "onednn"}) {
      if (std::string(kernel) == "onednn" && !ops::has_onednn()) continue;
      const eager::KernelGuard guard(kernel);
      const std::vector<Tensor> results = output_and_gradients(c, dy);
      if (expected.empty()) expected = results;
      for (size_t i = 0; i < results.size(); ++i)
        expect_close(results[i], doubles(expected[i]), 1e-5, c.name + " " + kernel);
    }
  }
}

// ---- literal values

TEST(Conv, MultipliesAndSumsUnderTheWindow) {
  const Tensor x = tensor({{{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}, {7.f, 8.f, 9.f}}}});
  const Tensor weight = tensor({{{{1.f, 0.f}, {0.f, -1.f}}}});

  EXPECT_EQ(doubles(conv2d(x, weight)), (Doubles{-4, -4, -4, -4}));
  EXPECT_EQ(doubles(conv2d(x, weight, tensor({10.f}))), (Doubles{6, 6, 6, 6}));
  EXPECT_EQ(doubles(conv2d(x, weight, {.stride = 2, .padding = 1})), (Doubles{-1, -3, -7, -4}));
}

TEST(Conv, SamePaddingPutsTheOddZeroAtTheEnd) {
  const Tensor x = tensor({{{1.f, 2.f, 3.f, 4.f}}});
  const Tensor pair = tensor({{{1.f, 1.f}}});

  EXPECT_EQ(doubles(conv1d(x, pair, {.padding = "same"})), (Doubles{3, 5, 7, 4}));
  EXPECT_EQ(doubles(conv1d(x, pair, {.padding = "valid"})), (Doubles{3, 5, 7}));
}

TEST(Conv, SamePaddingWithStrideGivesTheCeilingOfTheQuotient) {
  const Tensor x = tensor({{{1.f, 2.f, 3.f, 4.f, 5.f}}});
  const Tensor triple = tensor({{{1.f, 1.f, 1.f}}});

  EXPECT_EQ(doubles(conv1d(x, triple, {.stride = 2, .padding = "SAME"})), (Doubles{3, 9, 9}));
  EXPECT_EQ(doubles(conv1d(x, triple, {.stride = 3, .padding = "same"})), (Doubles{6, 9}));
}

TEST(Conv, GroupsDoNotMixChannels) {
  const Tensor x = tensor({{{1.f, 2.f}, {10.f, 20.f}}});
  const Tensor weight = tensor({{{3.f}}, {{5.f}}});

  EXPECT_EQ(doubles(conv1d(x, weight, {.groups = 2})), (Doubles{3, 6, 50, 100}));
}

TEST(Conv, SampleWithoutBatchDim) {
  const Tensor x = uniform({3, 5, 5}, float32);
  const Tensor weight = uniform({2, 3, 3, 3}, float32);

  const Tensor y = conv2d(x, weight);

  EXPECT_EQ(y.shape(), (Shape{2, 3, 3}));
  EXPECT_EQ(doubles(y), doubles(conv2d(x.unsqueeze(0), weight)));
}

TEST(Conv, EmptyBatchGivesEmptyOutputAndZeroWeightGradient) {
  const Tensor x = zeros({0, 3, 5, 5}).requires_grad_();
  const Tensor weight = uniform({2, 3, 3, 3}, float32).requires_grad_();
  const Tensor bias = zeros({2}).requires_grad_();

  const Tensor y = conv2d(x, weight, bias);
  const auto grads = grad({y}, {x, weight, bias}, {.grad_outputs = {zeros(y.shape())}});

  EXPECT_EQ(y.shape(), (Shape{0, 2, 3, 3}));
  EXPECT_EQ(grads[0].shape(), x.shape());
  EXPECT_EQ(doubles(grads[1]), Doubles(54, 0));
  EXPECT_EQ(doubles(grads[2]), Doubles(2, 0));
}

TEST(Conv, StridedOperandsAreReadWhereTheyLie) {
  const Tensor x = uniform({2, 6, 5, 3}, float32).permute({0, 3, 1, 2});
  const Tensor weight = uniform({3, 3, 3, 4}, float32, 2).permute({3, 0, 1, 2});
  const Tensor bias = tensor({2.f}).expand({4});

  const Tensor y = conv2d(x, weight, bias, {.padding = 1});

  expect_close(
      y, doubles(conv2d(x.contiguous(), weight.contiguous(), bias.contiguous(), {.padding = 1})),
      1e-6, "y");
}

// ---- gradients

TEST(Conv, GradientOfASumWithoutBias) {
  const Tensor x = ones({1, 1, 3, 3}).requires_grad_();
  const Tensor weight = full({1, 1, 2, 2}, 2.0).requires_grad_();

  conv2d(x, weight).sum().backward();

  EXPECT_EQ(doubles(x.grad()), (Doubles{2, 4, 2, 4, 8, 4, 2, 4, 2}));
  EXPECT_EQ(doubles(weight.grad()), (Doubles{4, 4, 4, 4}));
}

TEST(Conv, GradientOfTheBiasAlone) {
  const Tensor bias = zeros({2}).requires_grad_();

  conv2d(ones({3, 1, 4, 4}), ones({2, 1, 2, 2}), bias).sum().backward();

  EXPECT_EQ(doubles(bias.grad()), (Doubles{27, 27}));
}

TEST(Conv, GradientsAndTheirGradientsAgreeWithDifferences) {
  const std::vector<Case> checked{
      {"plain", {2, 2, 4, 3}, {2, 2, 2, 2}},
      {"awkward", {1, 4, 5, 4}, {4, 2, 2, 3}, {2, 1}, {1, 2}, {2, 1}, 2},
      {"left_over", {1, 1, 6}, {2, 1, 2}, 4},
      {"three_dims", {1, 1, 3, 3, 2}, {2, 1, 2, 2, 1}, 1, {1, 0, 0}},
  };
  for (const Case& c : checked) {
    SCOPED_TRACE(c.name);
    const std::vector<Tensor> inputs{uniform(c.x, float64, 1).requires_grad_(),
                                     uniform(c.weight, float64, 2).requires_grad_(),
                                     uniform({c.weight[0]}, float64, 3).requires_grad_()};
    const auto fn = [&](const std::vector<Tensor>& in) { return call(c, in[0], in[1], in[2]); };

    EXPECT_TRUE(gradcheck(fn, inputs));
    EXPECT_TRUE(gradgradcheck(fn, inputs));
  }
}

// ---- transposed

TEST(ConvTranspose, SpreadsEachInputOverTheKernel) {
  const Tensor x = tensor({{{{1.f, 2.f}, {3.f, 4.f}}}});
  const Tensor weight = tensor({{{{1.f, 1.f}, {1.f, 10.f}}}});

  EXPECT_EQ(doubles(conv_transpose2d(x, weight, {.stride = 2})),
            (Doubles{1, 1, 2, 2, 1, 10, 2, 20, 3, 3, 4, 4, 3, 30, 4, 40}));
  EXPECT_EQ(doubles(conv_transpose2d(x, weight, tensor({0.5f}))),
            (Doubles{1.5, 3.5, 2.5, 4.5, 19.5, 24.5, 3.5, 34.5, 40.5}));
}

TEST(ConvTranspose, SizesFollowTheFormula) {
  const Tensor x = uniform({2, 4, 5, 6}, float32);
  const Tensor weight = uniform({4, 3, 3, 3}, float32);
  const auto shape = [&](const ConvTransposeOptions& options) {
    return conv_transpose2d(x, weight, options).shape();
  };

  EXPECT_EQ(shape({}), (Shape{2, 3, 7, 8}));
  EXPECT_EQ(shape({.stride = 2, .padding = 1, .output_padding = 1}), (Shape{2, 3, 10, 12}));
  EXPECT_EQ(shape({.groups = 2}), (Shape{2, 6, 7, 8}));
  EXPECT_EQ(shape({.output_padding = 2, .dilation = 3}), (Shape{2, 3, 13, 14}));
}

TEST(ConvTranspose, GradientsAndTheirGradientsAgreeWithDifferences) {
  const std::vector<Tensor> inputs{uniform({2, 4, 3, 2}, float64, 1).requires_grad_(),
                                   uniform({4, 1, 2, 3}, float64, 2).requires_grad_(),
                                   uniform({2}, float64, 3).requires_grad_()};
  const auto strided = [](const std::vector<Tensor>& in) {
    return conv_transpose2d(in[0], in[1], in[2],
                            {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
  };
  const auto dilated = [](const std::vector<Tensor>& in) {
    return conv_transpose2d(in[0], in[1], in[2],
                            {.output_padding = {1, 2}, .groups = 2, .dilation = 3});
  };

  EXPECT_TRUE(gradcheck(strided, inputs));
  EXPECT_TRUE(gradgradcheck(strided, inputs));
  EXPECT_TRUE(gradcheck(dilated, inputs));
  EXPECT_TRUE(gradgradcheck(dilated, inputs));
}

// ---- blocked layouts

struct Chain {
  Tensor convolved, h, pooled, y;

  std::vector<Tensor> gradients(const std::vector<Tensor>& of) const {
    return grad({(y * y).sum()}, of);
  }
};

TEST(Conv, ChainsStayBlockedForwardAndBackward) {
  if (!ops::has_onednn()) GTEST_SKIP() << ops::onednn_description();
  const Tensor x = uniform({37, 1, 14, 14}, float32, 1);
  const Tensor first = uniform({20, 1, 5, 5}, float32, 2).requires_grad_();
  const Tensor second = uniform({10, 20, 3, 3}, float32, 3).requires_grad_();
  const auto run = [&] {
    const Tensor convolved = conv2d(x, first, {.padding = 2});
    const Tensor h = relu(convolved);
    const Tensor pooled = max_pool2d(h, 2);
    return Chain{convolved, h, pooled, conv2d(pooled, second, {.stride = 2})};
  };
  const auto is_blocked = [](const Tensor& t) { return t.meta().blocked != nullptr; };

  const Chain chain = run();
  const bool goes_blocked = is_blocked(chain.h) && is_blocked(chain.pooled) && is_blocked(chain.y);
  const auto grads = chain.gradients({first, second, chain.pooled, chain.h, chain.convolved});
  const bool comes_back_blocked =
      is_blocked(grads[2]) && is_blocked(grads[3]) && is_blocked(grads[4]);
  const eager::KernelGuard guard("reference");
  const Chain plain = run();

  EXPECT_TRUE(goes_blocked);
  EXPECT_TRUE(comes_back_blocked);
  expect_close(chain.h, doubles(plain.h), 1e-5, "h");
  expect_close(chain.y, doubles(plain.y), 1e-5, "y");
  const auto plain_grads = plain.gradients({first, second});
  expect_close(grads[0], doubles(plain_grads[0]), 1e-4, "gradient of the first layer");
  expect_close(grads[1], doubles(plain_grads[1]), 1e-4, "gradient of the second layer");
}

// Convolution, batch norm, a depthwise convolution and batch norm, as in MobileNet; 20 channels
// leave padding in blocks of 8 or 16.
struct Separable {
  Tensor normed, y;

  std::vector<Tensor> gradients(const std::vector<Tensor>& of) const {
    return grad({(y * y * y).sum()}, of);
  }
};

void expect_separable_stays_blocked(const ConvOptions& depthwise) {
  const Tensor x = uniform({3, 4, 9, 7}, float32, 1);
  const Tensor first = uniform({20, 4, 1, 1}, float32, 2).requires_grad_();
  const Tensor taps = uniform({20, 1, 3, 3}, float32, 3).requires_grad_();
  const Tensor weight = uniform({20}, float32, 4).requires_grad_();
  const Tensor bias = uniform({20}, float32, 5).requires_grad_();
  const auto run = [&] {
    const BatchNormOptions options{.weight = weight, .bias = bias, .training = true};
    const Tensor normed = batch_norm(conv2d(x, first), Tensor(), Tensor(), options);
    return Separable{normed,
                     batch_norm(conv2d(normed, taps, depthwise), Tensor(), Tensor(), options)};
  };
  const auto is_blocked = [](const Tensor& t) { return t.meta().blocked != nullptr; };

  const Separable chain = run();
  const bool goes_blocked = is_blocked(chain.normed) && is_blocked(chain.y);
  const auto grads = chain.gradients({first, taps, weight, bias, chain.normed});
  const bool comes_back_blocked = is_blocked(grads[4]);
  const eager::KernelGuard guard("reference");
  const Separable plain = run();
  const auto plain_grads = plain.gradients({first, taps, weight, bias});

  EXPECT_TRUE(goes_blocked);
  EXPECT_TRUE(comes_back_blocked);
  expect_close(chain.normed, doubles(plain.normed), 1e-5, "normalised");
  expect_close(chain.y, doubles(plain.y), 1e-5, "y");
  for (size_t i = 0; i < plain_grads.size(); ++i)
    expect_close(grads[i], doubles(plain_grads[i]), 1e-4, "gradient " + std::to_string(i));
}

TEST(Conv, DepthwiseLayersAndBatchNormStayBlocked) {
  if (!ops::has_onednn()) GTEST_SKIP() << ops::onednn_description();
  expect_separable_stays_blocked({.padding = 1, .groups = 20});
  expect_separable_stays_blocked({.stride = 2, .padding = 1, .groups = 20});
}

// ---- layouts over ranks

std::vector<SbpSignature> signatures(const Case& c, int64_t num_ranks) {
  const MetaPtr x = local_meta(c.x, float32, DeviceType::kCpu);
  const MetaPtr weight = local_meta(c.weight, float32, DeviceType::kCpu);
  const std::vector<MetaPtr> inputs{x, weight, nullptr};
  ops::ConvAttrs attrs;
  const auto spatial = static_cast<size_t>(c.x.size() - 2);
  for (size_t i = 0; i < spatial; ++i)
    attrs.stride[i] = c.stride[c.stride.size() == 1 ? 0 : static_cast<int64_t>(i)];
  attrs.groups = c.groups;
  InferContext infer(ops::kConv, inputs, &attrs);
  ops::kConv.infer(infer);
  SbpContext ctx(ops::kConv, inputs, &attrs, infer.outputs(), num_ranks);
  ops::kConv.sbp(ctx);
  return ctx.signatures();
}

bool contains(const std::vector<SbpSignature>& list, const SbpSignature& wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

const SbpSignature kChannels{{sbp::split(1), sbp::split(0), sbp::broadcast}, {sbp::split(1)}};
const SbpSignature kRows{{sbp::split(2), sbp::broadcast, sbp::broadcast}, {sbp::split(2)}};

TEST(ConvSbp, GroupsSplitWhereRanksGetWholeGroups) {
  const Case grouped{"", {2, 8, 5, 5}, {12, 2, 3, 3}, 1, 0, 1, 4};
  const Case depthwise{"", {2, 5, 5, 5}, {5, 1, 3, 3}, 1, 0, 1, 5};

  EXPECT_TRUE(contains(signatures(grouped, 2), kChannels));
  EXPECT_FALSE(contains(signatures(grouped, 3), kChannels));
  EXPECT_TRUE(contains(signatures(depthwise, 3), kChannels));
}

TEST(ConvSbp, RowsSplitBetweenWindowsOnly) {
  const Case patches{"", {2, 3, 12, 5}, {4, 3, 3, 3}, 3};
  const Case pixels{"", {2, 3, 5, 5}, {4, 3, 1, 1}};
  const Case overlapping{"", {2, 3, 12, 5}, {4, 3, 3, 3}};

  EXPECT_TRUE(contains(signatures(patches, 2), kRows));
  EXPECT_FALSE(contains(signatures(patches, 3), kRows));
  EXPECT_TRUE(contains(signatures(pixels, 3), kRows));
  EXPECT_FALSE(contains(signatures(overlapping, 2), kRows));
}

// ---- errors

// Two channels on three ranks: the last holds none.
TEST(ConvSbp, ARankMayHoldNoneOfTheGroups) {
  for (const DType dtype : {float32, float64}) {
    run_ranks(3, [&] {
      const Placement all("cpu", {0, 1, 2});
      const TensorOptions cut{.placement = all, .sbp = sbp::split(1)};
      const Tensor x = ones({1, 2, 5}, cut).to(dtype).requires_grad_();
      const Tensor weight =
          ones({2, 1, 3}, {.placement = all, .sbp = sbp::split(0)}).to(dtype).requires_grad_();

      const Tensor y = conv1d(x, weight, {.groups = 2});
      backward({y}, {ones({1, 2, 3}, cut).to(dtype)});

      EXPECT_EQ(y.sbp(), sbp::split(1));
      EXPECT_EQ(doubles(y), Doubles(6, 3));
      EXPECT_EQ(doubles(x.grad()), (Doubles{1, 2, 3, 2, 1, 1, 2, 3, 2, 1}));
      EXPECT_EQ(doubles(weight.grad()), Doubles(6, 3));
    });
  }
}

TEST(ConvErrors, SayWhatWasReceived) {
  const Tensor x = zeros({2, 3, 5, 5});
  const Tensor weight = zeros({4, 3, 3, 3});
  const auto error = [](auto&& f) { return error_of<InvalidArgument>(f); };

  EXPECT_NE(error([&] {
              conv2d(zeros({5, 5}), weight);
            }).find("[conv2d] takes x of 4 dims"),
            std::string::npos);
  EXPECT_NE(error([&] {
              conv2d(zeros({2, 4, 5, 5}), weight);
            }).find("x has 4 channels"),
            std::string::npos);
  EXPECT_NE(error([&] {
              conv2d(x, zeros({4, 3, 7, 3}));
            }).find("the kernel does not fit"),
            std::string::npos);
  EXPECT_NE(error([&] { conv2d(x, weight, zeros({3})); }).find("bias must have one element"),
            std::string::npos);
  EXPECT_NE(error([&] { conv2d(x, weight, {.stride = 0}); }).find("stride is out of range"),
            std::string::npos);
  EXPECT_NE(error([&] {
              conv2d(x, weight, {.padding = {1, 1, 1}});
            }).find("3 numbers"),
            std::string::npos);
  EXPECT_NE(error([&] { conv2d(x, weight, {.padding = "sma"}); }).find("unknown word \"sma\""),
            std::string::npos);
  EXPECT_NE(error([&] { conv2d(x, weight, {.groups = 0}); }).find("groups must be at least 1"),
            std::string::npos);
  EXPECT_NE(error([&] { conv2d(x, cast(weight, float64)); }).find("different dtypes"),
            std::string::npos);
  EXPECT_NE(error([&] { conv2d(cast(x, bool_), cast(weight, bool_)); }).find("floating"),
            std::string::npos);
  EXPECT_NE(error([&] { conv_transpose2d(x, weight); }).find("[conv_transpose2d]"),
            std::string::npos);
  EXPECT_NE(error([&] {
              conv_transpose2d(x, zeros({3, 2, 3, 3}), {.output_padding = 1});
            }).find("output_padding must be smaller"),
            std::string::npos);
}

// Values of PyTorch 2.
TEST(ConvTranspose, LinesAndVolumes) {
  const auto counting = [](const Shape& shape) {
    return reshape(arange(1, shape.numel() + 1, {.dtype = float32}), shape);
  };
  const Tensor x = counting({1, 2, 3});
  const Tensor weight = counting({2, 2, 3});

  EXPECT_EQ(conv_transpose1d(x, weight, tensor({1.f, -1.f}),
                             {.stride = 2, .padding = 1, .output_padding = 1})
                .to_vector<float>(),
            std::vector<float>({35, 77, 45, 97, 55, 64, 48, 111, 64, 143, 80, 89}));
  EXPECT_EQ(
      conv_transpose1d(x, weight.narrow(1, 0, 1), {.groups = 2, .dilation = 2}).to_vector<float>(),
      std::vector<float>({1, 2, 5, 4, 9, 6, 9, 28, 35, 74, 40, 84, 45, 54}));
  const Tensor box = counting({1, 1, 1, 2, 2});
  EXPECT_EQ(conv_transpose3d(box, counting({1, 1, 2, 2, 2}), tensor({0.5f})).to_vector<float>(),
            std::vector<float>({1.5, 4.5, 4.5, 6.5, 20.5, 16.5, 9.5, 24.5, 16.5, 5.5, 16.5, 12.5,
                                22.5, 60.5, 40.5, 21.5, 52.5, 32.5}));
  EXPECT_EQ(
      conv_transpose3d(box, counting({1, 1, 2, 2, 2}), {.stride = {1, 2, 1}, .padding = {0, 1, 0}})
          .to_vector<float>(),
      std::vector<float>({3, 10, 8, 3, 10, 8, 7, 22, 16, 15, 38, 24}));
  EXPECT_THROW(conv_transpose1d(box, weight), InvalidArgument);
}

// The second rank would have an element and no window.
TEST(Conv, SplitsNoDimThatHasFewerWindowsThanRanks) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const auto placed = [&](const Tensor& x, Sbp sbp) { return x.to_global(both, sbp); };
    const Tensor weight = placed(ones({1, 1, 1}), sbp::broadcast);

    const Tensor one = placed(ones({1, 1, 1}), sbp::broadcast).to_global(both, sbp::split(2));
    const Tensor wide = conv_transpose1d(one, weight, {.stride = 3, .output_padding = 1});
    EXPECT_EQ(doubles(wide.full()), Doubles({1, 0}));
    const Tensor two = placed(ones({1, 1, 2}), sbp::broadcast).to_global(both, sbp::split(2));
    EXPECT_EQ(doubles(conv1d(two, weight, {.stride = 3}).full()), Doubles({1}));
  });
}

}  // namespace
}  // namespace flow
