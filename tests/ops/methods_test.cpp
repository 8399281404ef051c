#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/cuda.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/shrink.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/fft/stft.h"
#include "ops/index/count.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/scatter_reduce.h"
#include "ops/index/selection.h"
#include "ops/index/sort.h"
#include "ops/linalg/cholesky.h"
#include "ops/linalg/lu.h"
#include "ops/linalg/matrix_exp.h"
#include "ops/linalg/matrix_functions.h"
#include "ops/linalg/qr.h"
#include "ops/linalg/svd.h"
#include "ops/linear/matmul.h"
#include "ops/linear/vector_algebra.h"
#include "ops/norm/softmax.h"
#include "ops/random/multinomial.h"
#include "ops/random/random.h"
#include "ops/reduce/order_statistics.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/arrange.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

TEST(TensorMethods, ViewsShareMemory) {
  const Tensor x = zeros({2, 3});

  x.swapaxes(0, 1).slice(0, 1, 3).fill_(2);
  x.unbind(1)[0].fill_(1);
  x.diagonal().fill_(5);

  EXPECT_EQ(x.to_vector<float>(), (Floats{5, 2, 2, 1, 5, 2}));
  EXPECT_EQ(x.unflatten(1, {3, 1}).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(x.movedim(0, 1).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.split({1, 2}, 1)[1].shape(), (Shape{2, 2}));
  EXPECT_EQ(x.chunk(2, 1)[0].shape(), (Shape{2, 2}));
}

TEST(TensorMethods, TransposesAndDevicesHaveShortNames) {
  const Tensor x = tensor({{1.F, 2.F, 3.F}});

  EXPECT_EQ(x.T().shape(), (Shape{3, 1}));
  EXPECT_EQ(x[0].T().shape(), (Shape{3}));
  EXPECT_EQ(x.unsqueeze(0).mT().shape(), (Shape{1, 3, 1}));
  EXPECT_TRUE(x.cpu().is_same(x));
  EXPECT_THROW(x.unsqueeze(0).T(), InvalidArgument);
  EXPECT_THROW(x[0].mT(), InvalidArgument);
  if (!cuda::is_built()) {
    EXPECT_THROW(x.cuda(), Unsupported);
  }
}

TEST(TensorMethods, BoundsAreTwoNumbersToo) {
  const Tensor x = tensor({-1.F, 0.5F, 2.F});

  EXPECT_EQ(x.clamp(0, 1).to_vector<float>(), (Floats{0, 0.5F, 1}));
  EXPECT_EQ(clamp(x, 0, 1).to_vector<float>(), (Floats{0, 0.5F, 1}));
  EXPECT_EQ(x.clamp_min(0).to_vector<float>(), (Floats{0, 0.5F, 2}));
  EXPECT_EQ(x.clamp_max(1).to_vector<float>(), (Floats{-1, 0.5F, 1}));
  const Tensor bounds = tensor({0.F, 1.F, 1.F});
  EXPECT_EQ(x.clamp_min(bounds).to_vector<float>(), (Floats{0, 1, 2}));
  EXPECT_EQ(x.clamp_max(bounds).to_vector<float>(), (Floats{-1, 0.5F, 1}));
  EXPECT_EQ(x.clamp_(0, 1).to_vector<float>(), (Floats{0, 0.5F, 1}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 0.5F, 1}));
  EXPECT_THROW(x.to(int64).clamp_(0, 1.5), InvalidArgument);
}

TEST(TensorMethods, UnfoldGivesWindowsAlongANewLastDim) {
  const Tensor x = tensor({1.F, 2.F, 3.F, 4.F, 5.F});

  EXPECT_EQ(x.unfold(0, 3, 2).shape(), (Shape{2, 3}));
  EXPECT_EQ(x.unfold(0, 3, 2).to_vector<float>(), (Floats{1, 2, 3, 3, 4, 5}));
  EXPECT_EQ(zeros({4, 5}).unfold(0, 2, 1).shape(), (Shape{3, 5, 2}));
  EXPECT_THROW(x.unfold(0, 6, 1), InvalidArgument);
  EXPECT_THROW(x.unfold(0, 2, 0), InvalidArgument);
}

TEST(TensorMethods, NumbersAreOperandsToo) {
  const Tensor x = tensor({4.F, -2.F});

  EXPECT_EQ(x.add(1).to_vector<float>(), (Floats{5, -1}));
  EXPECT_EQ(x.sub(1, {.alpha = 2}).to_vector<float>(), (Floats{2, -4}));
  EXPECT_EQ(x.div(3, {.rounding_mode = "floor"}).to_vector<float>(), (Floats{1, -1}));
  EXPECT_EQ(x.clamp({.min = 0}).to_vector<float>(), (Floats{4, 0}));
  EXPECT_EQ(x.gt(0).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(x.where(x.gt(0), 7).to_vector<float>(), (Floats{4, 7}));
  EXPECT_EQ(x.masked_fill(x.lt(0), 9).to_vector<float>(), (Floats{4, 9}));
}

TEST(TensorMethods, ReductionsTakeDimsAndOptions) {
  const Tensor x = tensor({{1.F, 5.F, 2.F}, {4.F, 3.F, 6.F}});

  EXPECT_EQ(x.max(1).indices.to_vector<int64_t>(), (Longs{1, 2}));
  EXPECT_EQ(x.amax(0, {.keepdim = true}).shape(), (Shape{1, 3}));
  EXPECT_EQ(x.std({0, 1}, {.unbiased = false}).shape(), Shape());
  EXPECT_EQ(x.norm({.p = 1, .dim = 1}).to_vector<float>(), (Floats{8, 13}));
  EXPECT_EQ(x.topk(2).values.to_vector<float>(), (Floats{5, 2, 6, 4}));
  EXPECT_EQ(x.sort({.dim = 0, .descending = true}).values.to_vector<float>(),
            (Floats{4, 5, 6, 1, 3, 2}));
  EXPECT_EQ(x.trace().item(), 4);
  EXPECT_EQ(x.diff().to_vector<float>(), (Floats{4, -3, -1, 3}));
  EXPECT_EQ(x.diff({.n = 1, .dim = 0}).to_vector<float>(), (Floats{3, -2, 4}));
}

TEST(TensorMethods, NanIsLeftOut) {
  const Tensor x = tensor({{1.F, NAN, 2.F}, {NAN, NAN, NAN}});

  EXPECT_EQ(x.nansum(1).to_vector<float>(), (Floats{3, 0}));
  EXPECT_EQ(x.nanmean().item(), 1.5);
  EXPECT_TRUE(std::isnan(x.nanmean(1).to_vector<float>()[1]));
  EXPECT_EQ(tensor({0.F, NAN, 3.F}).count_nonzero().item<int64_t>(), 2);
  EXPECT_THROW(tensor({1, 2}).nanmean(), InvalidArgument);
}

TEST(TensorMethods, InPlaceFormsReturnTheTensor) {
  const Tensor x = tensor({-1.F, 4.F});

  EXPECT_TRUE(x.relu_().is_same(x));
  EXPECT_EQ(x.sqrt_().to_vector<float>(), (Floats{0, 2}));
  EXPECT_EQ(x.clamp_({.max = 1}).to_vector<float>(), (Floats{0, 1}));
  EXPECT_EQ(x.masked_fill_(x.eq(0), 3).to_vector<float>(), (Floats{3, 1}));
  EXPECT_EQ(x.index_put_({0}, 8).to_vector<float>(), (Floats{8, 1}));
  EXPECT_EQ(x.index_add_(0, tensor({1, 1}), tensor({1.F, 2.F})).to_vector<float>(), (Floats{8, 4}));
  EXPECT_EQ(x.scatter_(0, tensor({1}), 0).to_vector<float>(), (Floats{8, 0}));
  EXPECT_EQ(x.unsqueeze_(0).shape(), (Shape{1, 2}));
  EXPECT_EQ(x.bernoulli_(1).to_vector<float>(), (Floats{1, 1}));
  EXPECT_THROW(x.bernoulli_(1.5), InvalidArgument);
}

TEST(TensorMethods, EqualComparesShapesAndElements) {
  const Tensor x = tensor({1.F, 2.F});

  EXPECT_TRUE(x.equal(tensor({1.F, 2.F})));
  EXPECT_FALSE(x.equal(tensor({1.F, 3.F})));
  EXPECT_FALSE(x.equal(tensor({{1.F, 2.F}})));
  EXPECT_FALSE(tensor({NAN}).equal(tensor({NAN})));
}

static_assert(sizeof(Tensor) == sizeof(void*));

// One call as a method and as the function of its name.
struct CallPair {
  const char* name;
  Tensor method, function;
};

void expect_equal(const std::vector<CallPair>& pairs) {
  for (const CallPair& pair : pairs) {
    EXPECT_EQ(pair.method.dtype(), pair.function.dtype()) << pair.name;
    EXPECT_TRUE(pair.method.equal(pair.function)) << pair.name;
  }
}

TEST(TensorMethods, PointwiseMethodsAreTheFunctionsOfTheirName) {
  const Tensor x = tensor({{0.5F, -1.5F, 2.F}, {3.F, -0.25F, 1.F}});
  const Tensor y = tensor({{2.F, 3.F, -1.F}, {0.5F, 4.F, 2.F}});

  expect_equal(
      {{"add", x.add(y, {.alpha = 2}), add(x, y, {.alpha = 2})},
       {"sub", x.sub(2, {.alpha = 3}), sub(x, 2, {.alpha = 3})},
       {"div", x.div(y, {.rounding_mode = "trunc"}), div(x, y, {.rounding_mode = "trunc"})},
       {"addcmul", x.addcmul(y, y), addcmul(x, y, y)},
       {"addcmul", x.addcmul(y, y, {.value = 3}), addcmul(x, y, y, {.value = 3})},
       {"addcdiv", x.addcdiv(y, y, {.value = 3}), addcdiv(x, y, y, {.value = 3})},
       {"lerp", x.lerp(y, 0.5), lerp(x, y, 0.5)},
       {"logaddexp2", x.logaddexp2(y), logaddexp2(x, y)},
       {"copysign", x.copysign(y), copysign(x, y)},
       {"copysign", x.copysign(-1), copysign(x, -1)},
       {"heaviside", x.heaviside(y), heaviside(x, y)},
       {"fmax", x.fmax(y), fmax(x, y)},
       {"fmin", x.fmin(y), fmin(x, y)},
       {"deg2rad", x.deg2rad(), deg2rad(x)},
       {"rad2deg", x.rad2deg(), rad2deg(x)},
       {"logit", x.sigmoid().logit(), logit(sigmoid(x))},
       {"logit", x.logit({.eps = 0.1}), logit(x, {.eps = 0.1})},
       {"prelu", x.prelu(tensor({0.5F})), prelu(x, tensor({0.5F}))},
       {"hardshrink", x.hardshrink(), hardshrink(x)},
       {"hardshrink", x.hardshrink({.lambd = 2}), hardshrink(x, {.lambd = 2})},
       {"round", x.round({.decimals = 1}), round(x, {.decimals = 1})},
       {"isclose", x.isclose(y), isclose(x, y)},
       {"isclose", x.isclose(y, {.atol = 3}), isclose(x, y, {.atol = 3})}});
  EXPECT_EQ(x.allclose(y, {.atol = 9}), allclose(x, y, {.atol = 9}));
}

TEST(TensorMethods, MethodsAlongDimsAreTheFunctionsOfTheirName) {
  const Tensor x = tensor({{0.5F, -1.5F, 2.F}, {3.F, -0.25F, 1.F}});
  const Tensor y = tensor({{2.F, 3.F}, {-1.F, 0.5F}, {4.F, 2.F}});
  const Tensor z = tensor({{1.F, 2.F}, {3.F, 4.F}});

  expect_equal({{"sum", x.sum({0}, {.keepdim = true}), sum(x, {0}, {.keepdim = true})},
                {"var", x.var(1, {.unbiased = false}), var(x, 1, {.unbiased = false})},
                {"nanquantile", x.nanquantile(0.5), nanquantile(x, 0.5)},
                {"nanquantile", x.nanquantile(0.5, {.dim = 1}), nanquantile(x, 0.5, {.dim = 1})},
                {"count_nonzero", x.count_nonzero(), count_nonzero(x)},
                {"count_nonzero", x.count_nonzero(0), count_nonzero(x, 0)},
                {"matmul", x.matmul(y), matmul(x, y)},
                {"addmm", z.addmm(x, y), addmm(z, x, y)},
                {"addmm", z.addmm(x, y, {.beta = 2}), addmm(z, x, y, {.beta = 2})},
                {"kron", x.kron(y), kron(x, y)},
                {"cross", x.cross(x), cross(x, x)},
                {"cross", x.cross(x, {.dim = 1}), cross(x, x, {.dim = 1})},
                {"cov", x.cov(), cov(x)},
                {"cov", x.cov({.correction = 0}), cov(x, {.correction = 0})},
                {"corrcoef", x.corrcoef(), corrcoef(x)},
                {"renorm", x.renorm(2, 0, 1), renorm(x, 2, 0, 1)},
                {"softmax", x.softmax(1), softmax(x, 1)},
                {"softmax", x.softmax(1, {.dtype = DType::kFloat64}),
                 softmax(x, 1, {.dtype = DType::kFloat64})},
                {"cumsum", x.cumsum(1), cumsum(x, 1)},
                {"cumsum", x.cumsum(1, {.dtype = DType::kFloat64}),
                 cumsum(x, 1, {.dtype = DType::kFloat64})},
                {"diff", x.diff({.dim = 0}), diff(x, {.dim = 0})}});
}

TEST(TensorMethods, MethodsOfMatricesAreTheFunctionsOfTheirName) {
  const Tensor x = tensor({{4.F, 1.F}, {1.F, 3.F}});
  const Tensor y = tensor({{2.F, 3.F}, {-1.F, 0.5F}});
  const Tensor factor = linalg::cholesky(x);

  expect_equal({{"cholesky", x.cholesky(), factor},
                {"cholesky", x.cholesky({.upper = true}), linalg::cholesky(x, {.upper = true})},
                {"cholesky_inverse", factor.cholesky_inverse(), cholesky_inverse(factor)},
                {"cholesky_inverse", factor.cholesky_inverse({.upper = true}),
                 cholesky_inverse(factor, {.upper = true})},
                {"cholesky_solve", y.cholesky_solve(factor), cholesky_solve(y, factor)},
                {"cholesky_solve", y.cholesky_solve(factor, {.upper = true}),
                 cholesky_solve(y, factor, {.upper = true})},
                {"det", y.det(), det(y)},
                {"inverse", y.inverse(), inverse(y)},
                {"logdet", x.logdet(), logdet(x)},
                {"slogdet", y.slogdet().logabsdet, slogdet(y).logabsdet},
                {"matrix_exp", y.matrix_exp(), matrix_exp(y)},
                {"matrix_power", y.matrix_power(3), matrix_power(y, 3)},
                {"pinverse", y.pinverse(), pinverse(y)},
                {"pinverse", y.pinverse(0.9), pinverse(y, 0.9)},
                {"qr", y.qr().R, linalg::qr(y).R},
                {"qr", y.qr({.mode = "complete"}).Q, linalg::qr(y, {.mode = "complete"}).Q}});
}

TEST(TensorMethods, MethodsByPositionAreTheFunctionsOfTheirName) {
  const Tensor x = tensor({{0.5F, -1.5F, 2.F}, {3.F, -0.25F, 1.F}});
  const Tensor index = tensor({{1, 0, 1}});
  const Tensor src = tensor({{5.F, 6.F, 7.F}});

  expect_equal(
      {{"gather", x.gather(0, index), gather(x, 0, index)},
       {"scatter", x.scatter(0, index, src), scatter(x, 0, index, src)},
       {"scatter", x.scatter(0, index, src, {.reduce = "add"}),
        scatter(x, 0, index, src, {.reduce = "add"})},
       {"scatter", x.scatter(0, index, 4), scatter(x, 0, index, 4)},
       {"scatter", x.scatter(0, index, 4, {.reduce = "multiply"}),
        scatter(x, 0, index, 4, {.reduce = "multiply"})},
       {"scatter_reduce", x.scatter_reduce(0, index, src, "amax"),
        scatter_reduce(x, 0, index, src, "amax")},
       {"scatter_reduce", x.scatter_reduce(0, index, src, "mean", {.include_self = false}),
        scatter_reduce(x, 0, index, src, "mean", {.include_self = false})},
       {"index_put", x.index_put({0}, src[0], {.accumulate = true}),
        index_put(x, {0}, src[0], {.accumulate = true})},
       {"index_fill", x.index_fill(1, tensor({2}), 8), index_fill(x, 1, tensor({2}), 8)},
       {"index_copy", x.index_copy(0, tensor({1}), src), index_copy(x, 0, tensor({1}), src)},
       {"masked_scatter", x.masked_scatter(x.gt(1), src), masked_scatter(x, x.gt(1), src)},
       {"where", x.where(x.gt(0), src), where(x.gt(0), x, src)},
       {"unique", x.unique().output, unique(x).output},
       {"unique", x.unique({.dim = 0}).output, unique(x, {.dim = 0}).output},
       {"unique_consecutive", x.unique_consecutive().output, unique_consecutive(x).output},
       {"hsplit", x.hsplit(3)[1], hsplit(x, 3)[1]},
       {"vsplit", x.vsplit({1})[0], vsplit(x, {1})[0]},
       {"dsplit", x.unsqueeze(0).dsplit(3)[2], dsplit(x.unsqueeze(0), 3)[2]}});
  EXPECT_EQ(src.multinomial(2).shape(), (Shape{1, 2}));
  EXPECT_EQ(src.multinomial(5, {.replacement = true}).shape(), (Shape{1, 5}));
}

// What the error of a call says it was called from.
template <class Call>
uint32_t line_of_error(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.site().file()), __FILE__);
    return error.site().line();
  }
  return 0;
}

TEST(TensorMethods, ErrorsNameTheLineOfTheCall) {
  const Tensor x = zeros({2, 3});
  const Tensor numbers = tensor({1, 2});
  const Tensor index = tensor({0});

  EXPECT_EQ(line_of_error([&] { numbers.pow(-1); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.quantile(2); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.quantile(2, {.keepdim = true}); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.outer(x); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.unflatten(0, {7}); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.multinomial(9); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.take(x); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.index_add_(0, index, x); }), __LINE__);
  EXPECT_EQ(line_of_error([&] { x.backward(); }), __LINE__);
}

TEST(TensorMethods, ActivationsAreMethods) {
  const Tensor x = tensor({-4.0, -0.3, 0.0, 0.4, 7.0}, {.dtype = float64});
  const auto equal = [](const Tensor& method, const Tensor& function) {
    EXPECT_EQ(method.to_vector<double>(), function.to_vector<double>());
  };
  equal(x.silu(), silu(x));
  equal(x.selu(), selu(x));
  equal(x.mish(), mish(x));
  equal(x.hardswish(), hardswish(x));
  equal(x.hardsigmoid(), hardsigmoid(x));
  equal(x.relu6(), relu6(x));
  equal(x.softsign(), softsign(x));
  equal(x.logsigmoid(), logsigmoid(x));
  equal(x.tanhshrink(), tanhshrink(x));
  equal(x.gelu(), gelu(x));
  equal(x.gelu({.approximate = "tanh"}), gelu(x, {.approximate = "tanh"}));
  equal(x.leaky_relu(), leaky_relu(x));
  equal(x.leaky_relu({.negative_slope = 0.3}), leaky_relu(x, {.negative_slope = 0.3}));
  equal(x.elu({.alpha = 2}), elu(x, {.alpha = 2}));
  equal(x.celu({.alpha = 2}), celu(x, {.alpha = 2}));
  equal(x.softplus({.beta = 2}), softplus(x, {.beta = 2}));
  equal(x.hardtanh({.min_val = -2, .max_val = 0.2}), hardtanh(x, {.min_val = -2, .max_val = 0.2}));
  equal(x.elu(), elu(x));
  equal(x.celu(), celu(x));
  equal(x.softplus(), softplus(x));
  equal(x.hardtanh(), hardtanh(x));
  equal(x.rrelu(), rrelu(x));
  equal(x.rrelu({.lower = 0.2, .upper = 0.4}), rrelu(x, {.lower = 0.2, .upper = 0.4}));
  equal(x.softshrink({.lambd = 0.35}), softshrink(x, {.lambd = 0.35}));
  equal(x.threshold(0.1, 20), threshold(x, 0.1, 20));
  equal(x.softmin(0), softmin(x, 0));
  equal(x.slice(0, 0, 4).glu(), glu(x.slice(0, 0, 4)));
}

TEST(TensorMethods, ReflectionsAndTransformsOfWindowsAreMethods) {
  const Tensor x = randn({4, 3}, {.dtype = float64}), signal = randn({32}, {.dtype = float64});
  const auto equal = [](const Tensor& method, const Tensor& function) {
    EXPECT_EQ(method.to_vector<double>(), function.to_vector<double>());
  };
  const auto [a, tau] = geqrf(x);
  equal(x.geqrf().a, a);
  equal(a.orgqr(tau), orgqr(a, tau));
  equal(a.ormqr(tau, ones({4, 2}, {.dtype = float64})),
        ormqr(a, tau, ones({4, 2}, {.dtype = float64})));
  const Tensor windows = stft(signal, 8, {.hop_length = 4});
  equal(signal.stft(8, {.hop_length = 4}), windows);
  equal(windows.istft(8, {.hop_length = 4}), istft(windows, 8, {.hop_length = 4}));
}

}  // namespace
}  // namespace flow
