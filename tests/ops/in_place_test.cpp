#include "ops/elementwise/in_place.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/unary_rows.h"
#include "ops/elementwise/where.h"
#include "ops/index/index.h"
#include "ops/reduce/reduce.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

struct UnaryForm {
  std::string name;
  Tensor (*function)(const TensorArg& x);
  const Tensor& (*form)(const TensorArg& x);
};

template <class... Row>
std::vector<UnaryForm> forms_in_place(ops::Rows<Row...> /*rows*/) {
  std::vector<UnaryForm> forms;
  for (const ops::UnaryFacts& facts : {Row::kFacts...}) {
    if (facts.in_place == nullptr) continue;
    forms.push_back({facts.name + std::string("_"), facts.call, facts.in_place});
  }
  return forms;
}

TEST(InPlaceForms, UnaryFormsEqualTheirFunctions) {
  const Tensor x = tensor({0.25, 1.5, 2.75});
  for (const auto& [name, function, form] : forms_in_place(ops::UnaryRows())) {
    const Tensor y = x.clone();
    EXPECT_TRUE(form(y).is_same(y)) << name;
    EXPECT_EQ(y.to_vector<float>(), function(x).to_vector<float>()) << name;
  }
}

TEST(InPlaceForms, FormsReturnTheirHandle) {
  const Tensor x = tensor({4.0, 9.0});
  EXPECT_TRUE(abs_(neg_(sqrt_(x))).is_same(x));
  EXPECT_EQ(x.to_vector<float>(), Floats({2, 3}));
  EXPECT_EQ(pow_(x, 2).to_vector<float>(), Floats({4, 9}));
  EXPECT_EQ(clamp_max_(clamp_min_(x, 5), 8).to_vector<float>(), Floats({5, 8}));
  EXPECT_EQ(pow_(x, tensor({1.0, 0.0})).to_vector<float>(), Floats({5, 1}));
}

TEST(InPlaceForms, SubtractionTakesAlphaAndDivisionARounding) {
  const Tensor x = tensor({7.0, -7.0});
  EXPECT_EQ(sub_(x, tensor({1.0, 2.0}), {.alpha = 2}).to_vector<float>(), Floats({5, -11}));
  EXPECT_EQ(div_(x, tensor({2.0, 2.0}), {.rounding_mode = "floor"}).to_vector<float>(),
            Floats({2, -6}));
  EXPECT_EQ(div_(x, 4).to_vector<float>(), Floats({0.5, -1.5}));
  const Tensor n = tensor({7, -7});
  EXPECT_EQ(div_(n, 2, {.rounding_mode = "trunc"}).to_vector<int64_t>(),
            (std::vector<int64_t>{3, -3}));
  EXPECT_THROW(div_(n, 2), InvalidArgument);
  EXPECT_THROW(div_(n, 2, {.rounding_mode = "up"}), InvalidArgument);
  EXPECT_THROW(sub_(n, n, {.alpha = 0.5}), InvalidArgument);
  EXPECT_THROW(n.add_(n, {.alpha = 0.5}), InvalidArgument);
  EXPECT_THROW(pow_(n, -1), InvalidArgument);
  EXPECT_THROW(exp_(n), InvalidArgument);
}

TEST(InPlaceForms, RemaindersAndTrianglesAreWritten) {
  const Tensor x = tensor({-7.0, 7.0});
  EXPECT_EQ(fmod_(x, 4).to_vector<float>(), Floats({-3, 3}));
  EXPECT_EQ(remainder_(x, 2).to_vector<float>(), Floats({1, 1}));
  EXPECT_EQ(floor_divide_(x, tensor({-2.0, 0.5})).to_vector<float>(), Floats({-1, 2}));
  EXPECT_EQ(tril_(ones({2, 2})).to_vector<float>(), Floats({1, 0, 1, 1}));
  EXPECT_EQ(triu_(ones({2, 2}), 1).to_vector<float>(), Floats({0, 1, 0, 0}));
}

TEST(InPlaceForms, TernaryFormsEqualTheirFunctions) {
  const Tensor x = tensor({1.0, 2.0}), a = tensor({3.0, 4.0}), b = tensor({2.0, 8.0});
  EXPECT_EQ(addcmul_(x.clone(), a, b).to_vector<float>(), Floats({7, 34}));
  EXPECT_EQ(addcmul_(x.clone(), a, b, {.value = -1}).to_vector<float>(), Floats({-5, -30}));
  EXPECT_EQ(addcdiv_(x.clone(), a, b, {.value = 2}).to_vector<float>(), Floats({4, 3}));
  EXPECT_EQ(lerp_(x.clone(), a, 0.5).to_vector<float>(), Floats({2, 3}));
  EXPECT_EQ(lerp_(x.clone(), a, tensor({0.0, 1.0})).to_vector<float>(), Floats({1, 4}));
  EXPECT_THROW(addcdiv_(x, tensor({1, 2}), tensor({1, 2})), InvalidArgument);
}

TEST(InPlaceForms, GradientsAreThoseOfTheFunctions) {
  const Tensor x = tensor({0.5, 1.0}).requires_grad_();
  const Tensor h = x * 2;
  exp_(addcmul_(h, x, x, {.value = 3}));
  h.sum().backward();
  // d/dx exp(2 x + 3 x²) = (2 + 6 x) exp(2 x + 3 x²)
  EXPECT_FLOAT_EQ(x.grad().to_vector<float>()[0], 5 * std::exp(1.75F));
  EXPECT_FLOAT_EQ(x.grad().to_vector<float>()[1], 8 * std::exp(5.F));
}

TEST(InPlaceForms, GradientsMayReadTheValueWrittenOver) {
  const Tensor x = tensor({0.5, 1.0}).requires_grad_();
  const Tensor h = x * 2;
  pow_(clamp_max_(sin_(h), 0.9), 2);
  h.sum().backward();
  // d/dx sin(2 x)² = 4 sin(2 x) cos(2 x) where sin(2 x) < 0.9
  EXPECT_FLOAT_EQ(x.grad().to_vector<float>()[0], 4 * std::sin(1.F) * std::cos(1.F));
  EXPECT_EQ(x.grad().to_vector<float>()[1], 0);
}

TEST(InPlace, OperatorsWriteThroughViews) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  x[0] += x[1];
  x[1] *= 10;
  x.select(1, 0) -= 1;
  x[0][1] /= tensor(2.0);
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{3, 3, 29, 40}));
}

TEST(InPlace, OperatorsRefuseATemporaryThatNobodySees) {
  const Tensor x = ones({3});
  EXPECT_THROW(x.index({x > 0}) += 1, InvalidArgument);
  EXPECT_THROW(x* 2 -= x, InvalidArgument);
  EXPECT_THROW(x.clone() *= x, InvalidArgument);
  EXPECT_THROW(x.clone() /= 2, InvalidArgument);
  EXPECT_THROW((x + 1)[0] = 3, InvalidArgument);
  EXPECT_THROW((x + 1)[0] += 3, InvalidArgument);
  const Tensor h = (x.clone().requires_grad_() * 2).unsqueeze(0);
  EXPECT_THROW((h + 1)[0] = 3, InvalidArgument);
  EXPECT_THROW((h + 1)[0][1] = 3, InvalidArgument);
  EXPECT_EQ(h.flatten().to_vector<double>(), std::vector<double>(3, 2));
  EXPECT_EQ(x.to_vector<double>(), std::vector<double>(3, 1));
}

TEST(InPlace, TemporaryHandlesShowTheMemoryOfVariables) {
  const Tensor x = zeros({2, 2});
  const auto self = [&] { return x; };
  self()[0] = 1;
  x.transpose(0, 1)[1] += 2;
  x.detach()[1][0] = 5;
  x.view({4})[3] *= 2;
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 3, 5, 4}));
  const Tensor leaf = ones({2}).requires_grad_();
  const Tensor h = leaf * 2;
  const auto recorded = [&] { return h; };
  recorded()[0] = 3;
  h.unsqueeze(0)[0][1] = leaf[0] * 5;
  EXPECT_EQ(h.to_vector<double>(), (std::vector<double>{3, 5}));
  h.sum().backward();
  EXPECT_EQ(leaf.grad().to_vector<double>(), (std::vector<double>{5, 0}));
}

}  // namespace
}  // namespace flow
