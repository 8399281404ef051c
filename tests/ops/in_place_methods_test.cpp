// In-place methods that compute the function without underscore and write its result.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/in_place.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/index/scatter_reduce.h"
#include "ops/index/selection.h"
#include "ops/linear/matmul.h"
#include "ops/linear/vector_algebra.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

struct Form {
  std::string name;
  std::function<Tensor(const Tensor&)> function;
  std::function<const Tensor&(const Tensor&)> form;
};

#define FLOW_FORM(name, ...)                                                     \
  Form {                                                                         \
#name, [](const Tensor& x) { return x.name(__VA_ARGS__); },                    \
        [](const Tensor& x) -> const Tensor& { return x.name##_(__VA_ARGS__); } \
  }

std::vector<Form> forms_of_floats() {
  static const Tensor other = tensor({{0.5, 2.0, 0.25}, {1.5, 0.75, 3.0}});
  static const Tensor square = tensor({{0.5, 1.0, 2.0}, {1.0, 0.25, 1.0}, {0.5, 0.5, 0.5}});
  static const Tensor index = tensor({2, 0}, {.dtype = DType::kInt64});
  static const Tensor pairs = tensor({{1, 0, 1}, {0, 0, 1}}, {.dtype = DType::kInt64});
  static const Tensor mask = tensor({{true, false, true}, {false, true, false}});
  return {
      FLOW_FORM(acos),
      FLOW_FORM(asin),
      FLOW_FORM(atan),
      FLOW_FORM(asinh),
      FLOW_FORM(atanh),
      FLOW_FORM(sinh),
      FLOW_FORM(cosh),
      FLOW_FORM(sinc),
      FLOW_FORM(deg2rad),
      FLOW_FORM(rad2deg),
      FLOW_FORM(lgamma),
      FLOW_FORM(digamma),
      FLOW_FORM(erfinv),
      FLOW_FORM(logit),
      FLOW_FORM(nan_to_num),
      FLOW_FORM(atan2, other),
      FLOW_FORM(hypot, other),
      FLOW_FORM(xlogy, other),
      FLOW_FORM(xlogy, 3.0),
      FLOW_FORM(copysign, -other),
      FLOW_FORM(copysign, -1.0),
      FLOW_FORM(cumsum, 1),
      FLOW_FORM(cumprod, 0),
      FLOW_FORM(index_fill, 1, index, 7.0),
      FLOW_FORM(index_copy, 1, index, tensor({{1.0, 2.0}, {3.0, 4.0}})),
      FLOW_FORM(masked_scatter, mask, other),
      FLOW_FORM(scatter_reduce, 0, pairs, other, "amax"),
      {"polygamma", [](const Tensor& x) { return polygamma(1, x); },
       [](const Tensor& x) -> const Tensor& { return x.polygamma_(1); }},
      {"heaviside", [](const Tensor& x) { return heaviside(x, other); },
       [](const Tensor& x) -> const Tensor& { return x.heaviside_(other); }},
      {"renorm", [](const Tensor& x) { return renorm(x, 2, 0, 0.5); },
       [](const Tensor& x) -> const Tensor& { return x.renorm_(2, 0, 0.5); }},
      {"addmm", [](const Tensor& x) { return addmm(x, other, square, {.beta = 0.5, .alpha = 2}); },
       [](const Tensor& x) -> const Tensor& {
         return x.addmm_(other, square, {.beta = 0.5, .alpha = 2});
       }},
      {"celu", [](const Tensor& x) { return celu(x, {.alpha = 2}); },
       [](const Tensor& x) -> const Tensor& { return celu_(x, {.alpha = 2}); }},
      {"elu", [](const Tensor& x) { return elu(x); },
       [](const Tensor& x) -> const Tensor& { return elu_(x); }},
      {"selu", [](const Tensor& x) { return selu(x); },
       [](const Tensor& x) -> const Tensor& { return selu_(x); }},
      {"hardtanh", [](const Tensor& x) { return hardtanh(x); },
       [](const Tensor& x) -> const Tensor& { return hardtanh_(x); }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); },
       [](const Tensor& x) -> const Tensor& { return leaky_relu_(x); }},
      {"rrelu", [](const Tensor& x) { return rrelu(x); },
       [](const Tensor& x) -> const Tensor& { return rrelu_(x); }},
      {"threshold", [](const Tensor& x) { return threshold(x, 0.3, -1); },
       [](const Tensor& x) -> const Tensor& { return threshold_(x, 0.3, -1); }},
  };
}

TEST(InPlaceMethods, ResultAndGradientAreThoseOfTheFunction) {
  for (const Form& form : forms_of_floats()) {
    SCOPED_TRACE(form.name);
    const Tensor a = tensor({{0.125, 0.25, 0.5}, {0.375, 0.625, 0.75}}).requires_grad_();
    const Tensor b = a.detach().clone().requires_grad_();
    const Tensor expected = form.function(a * 1);
    const Tensor x = b * 1;
    EXPECT_TRUE(form.form(x).is_same(x));
    EXPECT_EQ(x.to_vector<float>(), expected.to_vector<float>());
    if (!expected.requires_grad()) continue;
    (expected * expected).sum().backward();
    (x * x).sum().backward();
    EXPECT_EQ(b.grad().to_vector<float>(), a.grad().to_vector<float>());
  }
}

TEST(InPlaceMethods, ComparisonsWriteTheDtypeOfTheTensor) {
  const Tensor y = tensor({2.0, 2.0, 2.0});
  const auto compared = [&](const Tensor& (Tensor::*form)(const TensorArg&) const) {
    const Tensor x = tensor({1.0, 2.0, 3.0});
    (x.*form)(y);
    EXPECT_EQ(x.dtype(), DType::kFloat32);
    return x.to_vector<float>();
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(compared(&Tensor::eq_), Floats({0, 1, 0}));
  EXPECT_EQ(compared(&Tensor::ne_), Floats({1, 0, 1}));
  EXPECT_EQ(compared(&Tensor::lt_), Floats({1, 0, 0}));
  EXPECT_EQ(compared(&Tensor::le_), Floats({1, 1, 0}));
  EXPECT_EQ(compared(&Tensor::gt_), Floats({0, 0, 1}));
  EXPECT_EQ(compared(&Tensor::ge_), Floats({0, 1, 1}));
  EXPECT_EQ(tensor({1.0, 2.0}).ge_(2).to_vector<float>(), Floats({0, 1}));
  EXPECT_EQ(tensor({0.0, 2.0}).logical_not_().to_vector<float>(), Floats({1, 0}));
  EXPECT_EQ(tensor({0.0, 2.0}).logical_or_(tensor({0.0, 0.0})).to_vector<float>(), Floats({0, 1}));
}

TEST(InPlaceMethods, BitsOfIntegers) {
  using Ints = std::vector<int64_t>;
  Tensor x = tensor({12, 10});
  x &= tensor({10, 6});
  EXPECT_EQ(x.to_vector<int64_t>(), Ints({8, 2}));
  x |= tensor({1, 4});
  EXPECT_EQ(x.to_vector<int64_t>(), Ints({9, 6}));
  x ^= tensor({1, 1});
  EXPECT_EQ(x.to_vector<int64_t>(), Ints({8, 7}));
  EXPECT_EQ(x.bitwise_left_shift_(2).to_vector<int64_t>(), Ints({32, 28}));
  EXPECT_EQ(x.bitwise_right_shift_(tensor({1, 2})).to_vector<int64_t>(), Ints({16, 7}));
  EXPECT_EQ(x.bitwise_not_().to_vector<int64_t>(), Ints({-17, -8}));
}

TEST(InPlaceMethods, PutWritesFlatPositions) {
  const Tensor x = zeros({2, 3});
  x.put_(tensor({1, 5, 1}), tensor({2.0, 3.0, 4.0}), {.accumulate = true});
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>({0, 6, 0, 0, 0, 3}));
  EXPECT_THROW(x.put_(tensor({1, 2}), tensor({1.0})), InvalidArgument);
}

TEST(InPlaceMethods, DrawsHaveTheMomentsOfTheirDistribution) {
  manual_seed(5);
  const Tensor x = empty({20000}, {.dtype = DType::kFloat64});
  EXPECT_NEAR(x.exponential_(2).mean().item<double>(), 0.5, 0.02);
  EXPECT_NEAR(x.geometric_(0.25).mean().item<double>(), 4, 0.1);
  EXPECT_GE(x.min().item<double>(), 1);
  EXPECT_NEAR(x.log_normal_(0.5, 0.25).log().mean().item<double>(), 0.5, 0.01);
  EXPECT_NEAR(x.log().std().item<double>(), 0.25, 0.01);
  EXPECT_NEAR(x.cauchy_(3, 2).median().item<double>(), 3, 0.1);
  EXPECT_NEAR((x - 3).abs().median().item<double>(), 2, 0.1);
  EXPECT_THROW(x.geometric_(0), InvalidArgument);
  EXPECT_THROW(x.exponential_(-1), InvalidArgument);
  EXPECT_THROW(tensor({1, 2}).exponential_(), InvalidArgument);
}

TEST(InPlaceMethods, DrawsOf16BitsHaveTheirTails) {
  for (const DType dtype : {bfloat16, float16}) {
    manual_seed(6);
    const Tensor x = empty({1000000}, {.dtype = dtype});

    EXPECT_NEAR(x.exponential_(1).to(float32).mean().item(), 1, 0.01) << dtype;
    EXPECT_EQ((x == 0).sum().item<int64_t>(), 0) << dtype;
    EXPECT_GT(x.max().item(), 9) << dtype;
    EXPECT_NEAR(x.geometric_(0.01).to(float32).mean().item(), 100, 1) << dtype;
    EXPECT_GT(x.max().item(), 900) << dtype;
    EXPECT_NEAR(x.log_normal_(0.5, 0.25).to(float32).log().mean().item(), 0.5, 0.01) << dtype;
    EXPECT_GT(x.cauchy_(0, 1).max().item(), 10000) << dtype;
    EXPECT_NEAR(x.to(float32).abs().median().item(), 1, 0.02) << dtype;
  }
}

TEST(InPlaceMethods, WhatDoesNotFitIsRefusedUnderTheNameOfTheForm) {
  const Tensor ints = tensor({1, 2});
  EXPECT_NE(error_of([&] { ints.acos_(); }).find("[acos_] a float32 result does not fit"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              tensor({1.0}).eq_(tensor({1.0, 2.0}));
            }).find("[eq_]"),
            std::string::npos);
  EXPECT_EQ(ints.to_vector<int64_t>(), std::vector<int64_t>({1, 2}));
  EXPECT_NE(error_of([&] { tensor({1.0}).requires_grad_().cosh_(); }).find("leaf"),
            std::string::npos);
}

#undef FLOW_FORM

// As addcmul does, the form in place computes in the promoted dtype.
TEST(InPlaceMethods, OperandsOfThreeKeepTheirDtype) {
  const auto half = [] { return tensor({1000.F}).to(float16); };
  const Tensor large = tensor({1e6F}), small = tensor({1e-4F});
  Tensor x = half();
  x.addcmul_(large, small);
  EXPECT_EQ(x.dtype(), float16);
  EXPECT_EQ(x.item(), 1100);
  Tensor y = half();
  y.addcdiv_(large, large);
  EXPECT_EQ(y.item(), 1001);
}

}  // namespace
}  // namespace flow
