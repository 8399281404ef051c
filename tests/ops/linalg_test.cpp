// Facts of matrix factorisations beyond the contract: errors, special matrices, gradients of what
// is composed of others.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "ops/linalg/plain_factors.h"
#include "tests/support/error_of.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

const TensorOptions kDouble{.dtype = DType::kFloat64};

Tensor random_matrix(const Shape& shape) {
  manual_seed(3);
  return randn(shape, kDouble);
}

TEST(Cholesky, OfASmallMatrix) {
  const Tensor x = tensor({{4.F, 2.F}, {2.F, 5.F}});

  EXPECT_EQ(linalg::cholesky(x).to_vector<double>(), (Doubles{2, 0, 1, 2}));
  EXPECT_EQ(linalg::cholesky(x, {.upper = true}).to_vector<double>(), (Doubles{2, 1, 0, 2}));
}

TEST(Cholesky, NamesTheMatrixThatIsNotPositive) {
  const Tensor good = eye(3), bad = diag(tensor({1.F, 1.F, -1.F}));
  const Tensor batch = stack({stack({good, good}), stack({good, bad})});

  EXPECT_EQ(message_of([&] { linalg::cholesky(batch); }).substr(0, 84),
            "[cholesky] matrix (1, 1) of the batch is not positive-definite: its leading minor of");
  EXPECT_NE(message_of([&] { linalg::cholesky(bad); }).find("leading minor of order 3"),
            std::string::npos);
}

TEST(Cholesky, SolvesAndInverts) {
  const Tensor root = random_matrix({2, 4, 4});
  const Tensor x = root.matmul(root.transpose(-1, -2)) + eye(4, kDouble);
  const Tensor b = random_matrix({2, 4, 3});

  for (const bool upper : {false, true}) {
    const Tensor factor = linalg::cholesky(x, {.upper = upper});
    EXPECT_LT(distance(x.matmul(cholesky_solve(b, factor, {.upper = upper})), b), 1e-12);
    EXPECT_LT(distance(cholesky_inverse(factor, {.upper = upper}), linalg::inv(x)), 1e-12);
  }
}

TEST(Lu, FactorsMultiplyToTheMatrix) {
  for (const Shape& shape :
       {Shape{4, 4}, Shape{2, 3, 5}, Shape{2, 5, 3}, Shape{0, 3, 3}, Shape{3, 0}, Shape{0, 0}}) {
    const Tensor x = random_matrix(shape);
    const auto [p, l, u] = linalg::lu(x);

    EXPECT_LT(distance(p.matmul(l).matmul(u), x), 1e-14) << shape;
  }
}

TEST(Lu, SolvesFromBothSides) {
  const Tensor a = random_matrix({3, 4, 4}), b = random_matrix({3, 4, 4});
  const auto [lu, pivots] = linalg::lu_factor(a);
  const Tensor turned = a.transpose(-1, -2);

  EXPECT_LT(distance(a.matmul(lu_solve(lu, pivots, b)), b), 1e-12);
  EXPECT_LT(distance(turned.matmul(lu_solve(lu, pivots, b, {.adjoint = true})), b), 1e-12);
  EXPECT_LT(distance(lu_solve(lu, pivots, b, {.left = false}).matmul(a), b), 1e-12);
  EXPECT_LT(distance(linalg::solve(a, b, {.left = false}).matmul(a), b), 1e-12);
}

// A symmetric matrix with small elements on its diagonal, so that pivots are blocks of two rows.
Tensor indefinite_matrix(const Shape& shape) {
  const Tensor x = random_matrix(shape);
  return x + x.mT() - 1.9 * diag_embed(x.diagonal(0, -2, -1));
}

// The factors as matrices, from the definition of the compact form.
Tensor product_of(const Tensor& ld, const std::vector<int>& pivots) {
  const int64_t n = ld.size(-1);
  Tensor product = eye(n, kDouble), blocks = diag(ld.diagonal());
  for (int64_t k = 0; k < n; ++k) {
    const bool is_pair = pivots[static_cast<size_t>(k)] < 0;
    const int64_t last = is_pair ? k + 1 : k;
    const int64_t row = std::abs(pivots[static_cast<size_t>(k)]) - 1;
    Tensor swap = eye(n, kDouble), step = eye(n, kDouble);
    swap[last].copy_(eye(n, kDouble)[row]);
    swap[row].copy_(eye(n, kDouble)[last]);
    for (int64_t j = k; j <= last; ++j)
      step.narrow(0, last + 1, n - last - 1)
          .select(1, j)
          .copy_(ld.narrow(0, last + 1, n - last - 1).select(1, j));
    if (is_pair) {
      blocks[k][last].copy_(ld[last][k]);
      blocks[last][k].copy_(ld[last][k]);
    }
    product = product.matmul(swap).matmul(step);
    k = last;
  }
  return product.matmul(blocks).matmul(product.mT());
}

TEST(Ldl, FactorsMultiplyToTheMatrix) {
  for (const int64_t n : {1, 2, 5, 8, 100}) {
    const Tensor x = indefinite_matrix({n, n});
    const auto [ld, pivots] = linalg::ldl_factor(x);

    EXPECT_LT(distance(product_of(ld, pivots.to_vector<int>()), x), 1e-11) << n;
    EXPECT_TRUE(ld.triu(1).eq(0).all().item<bool>());
  }
  const auto [ld, pivots] = linalg::ldl_factor(indefinite_matrix({5, 5}));
  EXPECT_LT(pivots.amin().item<int>(), 0) << "no block of two rows was tested";
}

TEST(Ldl, ReadsTheLowerTriangle) {
  const Tensor x = indefinite_matrix({2, 4, 4});
  const auto [ld, pivots] = linalg::ldl_factor(x);
  const auto [lower, same] = linalg::ldl_factor(x.tril());

  EXPECT_TRUE(ld.equal(lower) && pivots.equal(same));
}

TEST(Ldl, Solves) {
  for (const int64_t n : {1, 4, 9}) {
    const Tensor x = indefinite_matrix({3, n, n}), b = random_matrix({2, 1, n, 2});
    const auto [ld, pivots] = linalg::ldl_factor(x);

    const Tensor y = linalg::ldl_solve(ld, pivots, b);

    EXPECT_EQ(y.shape(), (Shape{2, 3, n, 2}));
    EXPECT_LT(distance(x.matmul(y), b.expand({2, 3, n, 2})), 1e-10) << n;
  }
  const auto [ld, pivots] = linalg::ldl_factor(zeros({0, 0}));
  EXPECT_EQ(linalg::ldl_solve(ld, pivots, zeros({0, 2})).shape(), (Shape{0, 2}));
}

TEST(Ldl, TheGradientIsThatOfTheRightSide) {
  const auto [ld, pivots] = linalg::ldl_factor(indefinite_matrix({2, 4, 4}));
  const auto solve = [ld = ld, pivots = pivots](const std::vector<Tensor>& b) {
    return std::vector<Tensor>{linalg::ldl_solve(ld, pivots, b[0].square())};
  };
  const Tensor b = random_matrix({2, 4, 3}).requires_grad_();

  EXPECT_NO_THROW(gradcheck(solve, {b}));
  EXPECT_NO_THROW(gradgradcheck(solve, {b}));
  EXPECT_THROW(linalg::ldl_solve(ld.detach().requires_grad_(), pivots, b).sum().backward(),
               Unsupported);
  const Tensor x = eye(2, kDouble).requires_grad_();
  EXPECT_THROW(linalg::ldl_factor(x).LD.sum().backward(), Unsupported);
}

TEST(Ldl, SingularMatricesAreNamed) {
  const Tensor x = stack({eye(2), zeros({2, 2}), diag(tensor({1.F, 0.F}))});

  EXPECT_EQ(message_of([&] { linalg::ldl_factor(x); }),
            "[ldl_factor] matrix 1 of the batch is singular: element 0 of the diagonal of its "
            "factor D is zero");
  EXPECT_EQ(message_of([&] { linalg::ldl_factor_ex(x, {.check_errors = true}); }).substr(0, 34),
            "[ldl_factor_ex] matrix 1 of the ba");
  EXPECT_EQ(linalg::ldl_factor_ex(x).info.to_vector<int>(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(linalg::ldl_factor_ex(full({2, 2}, NAN)).LD.shape(), (Shape{2, 2}));
}

TEST(Ldl, RefusesWrongPivots) {
  const Tensor ld = eye(3), b = ones({3, 1});
  const auto solve = [&](const std::vector<int>& pivots) {
    return message_of([&] { linalg::ldl_solve(ld, tensor(pivots), b); });
  };

  EXPECT_EQ(solve({1, 2, 3}), "no error");
  for (const std::vector<int>& wrong : std::vector<std::vector<int>>{
           {0, 2, 3}, {1, 1, 3}, {1, 2, 4}, {-2, 2, 3}, {-1, -1, 3}, {1, 2, -3}, {1, -4, -4}}) {
    EXPECT_EQ(solve(wrong).find("[ldl_solve] the matrix has the pivot "), 0U) << wrong[0];
  }
  EXPECT_EQ(message_of([&] {
              linalg::ldl_solve(ld, tensor({1, 2}), b);
            }).find("[ldl_solve] takes"),
            0U);
  EXPECT_NE(message_of([&] { linalg::ldl_solve(ld, arange(1, 4), b); }).find("takes int32 pivots"),
            std::string::npos);
}

TEST(Lu, SolvesVectors) {
  const Tensor a = tensor({{3.F, 1.F}, {1.F, 2.F}});

  EXPECT_LT(distance(linalg::solve(a, tensor({9.F, 8.F})), tensor({2.F, 3.F})), 1e-5);
  EXPECT_EQ(linalg::solve(stack({a, a}), ones({2, 2})).shape(), (Shape{2, 2}));
}

TEST(Lu, SingularMatricesAreNamed) {
  const Tensor x = stack({eye(2), ones({2, 2})});

  for (const std::string& message :
       {message_of([&] {
          linalg::solve(x, ones({2, 2, 1}));
        }),
        message_of([&] { linalg::lu_factor(x); }), message_of([&] { linalg::inv(x); }),
        message_of([&] { inverse(x); })}) {
    EXPECT_NE(message.find("] matrix 1 of the batch is singular: element 1"), std::string::npos)
        << message;
  }
  EXPECT_EQ(det(x).to_vector<double>(), (Doubles{1, 0}));
  EXPECT_EQ(slogdet(x).sign.to_vector<double>(), (Doubles{1, 0}));
  EXPECT_EQ(logdet(x).to_vector<double>(), (Doubles{0, -INFINITY}));
  EXPECT_TRUE(std::isnan(logdet(-eye(1)).item()));
  EXPECT_NE(message_of([&] {
              const Tensor y = ones({2, 2}).requires_grad_();
              det(y).backward();
            }).find("is singular"),
            std::string::npos);
}

TEST(Lu, DeterminantsOfPermutations) {
  const Tensor even = eye(3).index_select(0, tensor({1, 2, 0})), odd = flip(eye(2), {0});

  EXPECT_EQ(det(even).item(), 1);
  EXPECT_EQ(det(odd).item(), -1);
  EXPECT_EQ(det(zeros({0, 0})).item(), 1);
  EXPECT_EQ(slogdet(odd).sign.item(), -1);
}

TEST(Triangular, RefusesAZeroOnTheDiagonal) {
  const Tensor x = tensor({{1.F, 0.F}, {5.F, 0.F}});

  EXPECT_NE(message_of([&] {
              linalg::solve_triangular(x, ones({2, 1}), false);
            }).find("[solve_triangular] the matrix is singular: element 1"),
            std::string::npos);
  EXPECT_EQ(
      linalg::solve_triangular(x, ones({2, 1}), false, {.unitriangular = true}).to_vector<double>(),
      (Doubles{1, -4}));
}

TEST(Factors, RefuseOtherDtypesAndShapes) {
  const std::vector<std::function<void(const Tensor&)>> calls = {
      [](const Tensor& x) { linalg::cholesky(x); },
      [](const Tensor& x) { linalg::lu_factor(x); },
      [](const Tensor& x) { linalg::inv(x); },
      [](const Tensor& x) { linalg::qr(x); },
      [](const Tensor& x) { linalg::eigh(x); },
      [](const Tensor& x) { linalg::svd(x); },
      [](const Tensor& x) { linalg::pinv(x); },
      [](const Tensor& x) { matrix_exp(x); },
      [](const Tensor& x) { det(x); }};
  for (const auto& call : calls) {
    for (const DType dtype : {DType::kInt64, DType::kBool, DType::kFloat16, DType::kBFloat16})
      EXPECT_THROW(call(ones({2, 2}, {.dtype = dtype})), InvalidArgument);
    EXPECT_THROW(call(ones({3})), InvalidArgument);
  }
}

TEST(Qr, IsOrthonormalAndUpper) {
  for (const char* mode : {"reduced", "complete"}) {
    for (const Shape& shape : {Shape{4, 4}, Shape{2, 5, 3}, Shape{2, 3, 5}, Shape{3, 0}}) {
      const Tensor x = random_matrix(shape);
      const auto [q, r] = linalg::qr(x, {.mode = mode});
      const Tensor one = eye(q.size(-1), kDouble).expand(q.transpose(-1, -2).matmul(q).shape());

      EXPECT_LT(distance(q.matmul(r), x), 1e-13) << mode << shape;
      EXPECT_LT(distance(q.transpose(-1, -2).matmul(q), one), 1e-13) << mode << shape;
      EXPECT_EQ(distance(triu(r), r), 0) << mode << shape;
    }
  }
  EXPECT_EQ(linalg::qr(ones({3, 2}), {.mode = "r"}).Q.shape(), Shape{0});
}

TEST(Qr, OfACompleteBasisHasNoGradient) {
  const Tensor x = random_matrix({4, 2}).requires_grad_();

  EXPECT_THROW(linalg::qr(x, {.mode = "complete"}).Q.sum().backward(), Unsupported);
}

TEST(Eigh, FollowsItsSignRule) {
  const auto [values, vectors] = linalg::eigh(tensor({{2.0, 1.0}, {1.0, 2.0}}));
  const double half = std::sqrt(0.5);

  EXPECT_LT(distance(values, tensor({1.0, 3.0})), 1e-6);
  EXPECT_LT(distance(vectors, tensor({{half, half}, {-half, half}})), 1e-6);
}

TEST(Eigh, RepeatedEigenvaluesHaveGradients) {
  const Tensor x = eye(3, kDouble).requires_grad_();

  linalg::eigvalsh(x).sum().backward();

  EXPECT_LT(distance(x.grad(), eye(3, kDouble)), 1e-14);
}

TEST(Svd, MultipliesToTheMatrix) {
  for (const bool full : {false, true}) {
    for (const Shape& shape : {Shape{4, 4}, Shape{2, 5, 3}, Shape{2, 3, 6}, Shape{0, 2, 3}}) {
      const Tensor x = random_matrix(shape);
      const auto [u, s, vh] = linalg::svd(x, {.full_matrices = full});
      const int64_t k = s.size(-1);
      const Tensor product = (u.narrow(-1, 0, k) * s.unsqueeze(-2)).matmul(vh.narrow(-2, 0, k));
      const Tensor of_u = u.transpose(-1, -2).matmul(u), of_v = vh.matmul(vh.transpose(-1, -2));

      EXPECT_LT(distance(product, x), 1e-13) << shape;
      EXPECT_LT(distance(of_u, eye(u.size(-1), kDouble).expand(of_u.shape())), 1e-13) << shape;
      EXPECT_LT(distance(of_v, eye(vh.size(-2), kDouble).expand(of_v.shape())), 1e-13) << shape;
      EXPECT_EQ(u.size(-1), full ? u.size(-2) : k) << shape;
    }
  }
}

TEST(Svd, OfDeficientMatricesIsOrthonormal) {
  const auto [u, s, vh] = linalg::svd(ones({4, 3}, kDouble));

  EXPECT_NEAR(s[0].item(), std::sqrt(12), 1e-12);
  EXPECT_LT(distance(u.transpose(-1, -2).matmul(u), eye(4, kDouble)), 1e-12);
  EXPECT_EQ(linalg::matrix_rank(ones({4, 3})).item(), 1);
}

// Where OpenBLAS is, only the contract test runs these loops otherwise. Expects factors of x that
// have lengths of 1 and multiply to x.
void expect_plain_svd(const Tensor& x) {
  const int64_t m = x.size(0), n = x.size(1), k = std::min(m, n);
  const ops::FactorWork sizes = ops::plain_factors().svd_work(m, n);
  Tensor u = empty({m, k}, kDouble), s = empty({k}, kDouble), vh = empty({k, n}, kDouble);
  Doubles work(static_cast<size_t>(sizes.elements));
  const int64_t info =
      ops::plain_factors().svd(m, n, x.clone().data<double>(), u.data<double>(), s.data<double>(),
                               vh.data<double>(), work.data(), nullptr);

  const double largest = std::max(x.abs().max().item<double>(), 1e-300);
  EXPECT_EQ(info, 0) << x.shape();
  EXPECT_LT(distance((u * (s / largest)).matmul(vh), x / largest), 1e-13) << x.shape();
  EXPECT_LT(distance(u.t().matmul(u), eye(k, kDouble)), 1e-13) << x.shape();
  EXPECT_LT(distance(vh.matmul(vh.t()), eye(k, kDouble)), 1e-13) << x.shape();
}

TEST(Svd, PlainLoopsCompleteDeficientMatrices) {
  expect_plain_svd(zeros({3, 3}, kDouble));
  expect_plain_svd(diag(tensor({1e-30, 1.0, 1e-300}, kDouble)));
  for (const auto& [m, n] : {std::pair{4, 3}, {3, 4}, {8, 5}, {5, 8}, {12, 12}}) {
    expect_plain_svd(ones({m, n}, kDouble));
    for (int64_t rank = 1; rank <= std::min(m, n); ++rank)
      expect_plain_svd(random_matrix({m, rank}).matmul(random_matrix({rank, n})));
  }
}

TEST(Svd, PlainLoopsTakeMatricesOfAnySize) {
  for (const double size : {1e300, 1e160, 1e-160, 1e-290}) {
    expect_plain_svd(random_matrix({5, 3}) * size);
    expect_plain_svd(ones({3, 4}, kDouble) * size);
  }
}

TEST(Factors, RefuseValuesThatAreNotFinite) {
  const Tensor x = stack({eye(2), tensor({{1.F, NAN}, {0.F, 1.F}})});

  for (const std::string& message :
       {message_of([&] { linalg::eigh(x); }), message_of([&] { linalg::svdvals(x); }),
        message_of([&] { linalg::pinv(x); }), message_of([&] { matrix_exp(x); })})
    EXPECT_NE(message.find("matrix 1 of the batch has a NaN"), std::string::npos) << message;
}

TEST(Pinv, OfRepeatedSingularValuesHasAGradient) {
  const Tensor x = eye(3, 2, kDouble).requires_grad_();

  linalg::pinv(x).sum().backward();

  EXPECT_TRUE(isfinite(x.grad()).all().item());
  EXPECT_NO_THROW(
      gradcheck([](const auto& in) -> std::vector<Tensor> { return {linalg::pinv(in[0])}; },
                {x.detach().requires_grad_()}));
}

TEST(MatrixFunctions, HaveGradients) {
  using Function = std::function<Tensor(const Tensor&)>;
  const std::vector<Function> functions = {
      [](const Tensor& x) { return linalg::det(x); },
      [](const Tensor& x) { return linalg::logdet(x.matmul(x.transpose(-1, -2))); },
      [](const Tensor& x) { return linalg::inv(x); },
      [](const Tensor& x) { return linalg::svd(x).U; },
      [](const Tensor& x) { return linalg::matrix_norm(x, {.ord = "nuc"}); },
      [](const Tensor& x) { return linalg::matrix_norm(x, {.ord = 2}); },
      [](const Tensor& x) { return linalg::cond(x); },
      [](const Tensor& x) { return linalg::cond(x, "fro"); },
      [](const Tensor& x) { return linalg::matrix_power(x, -3); },
      [](const Tensor& x) { return linalg::lstsq(x.narrow(-1, 0, 2), x).solution; },
      [](const Tensor& x) { return linalg::lstsq(x.narrow(-1, 0, 2), x).residuals; },
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    const auto call = [&](const auto& in) -> std::vector<Tensor> { return {functions[i](in[0])}; };
    EXPECT_NO_THROW(gradcheck(call, {random_matrix({2, 3, 3}).requires_grad_()})) << i;
    EXPECT_NO_THROW(gradgradcheck(call, {random_matrix({2, 3, 3}).requires_grad_()})) << i;
  }
}

TEST(MatrixFunctions, ExponentialOfARotation) {
  const double angle = 30;
  const Tensor x = tensor({{0.0, -angle}, {angle, 0.0}}).to(DType::kFloat64);

  const Tensor turn = matrix_exp(x);

  EXPECT_NEAR(turn[0][0].item(), std::cos(angle), 1e-12);
  EXPECT_NEAR(turn[1][0].item(), std::sin(angle), 1e-12);
  EXPECT_EQ(matrix_exp(zeros({2, 2})).to_vector<double>(), (Doubles{1, 0, 0, 1}));
}

// Of a matrix whose fourth power is zero, so that four terms are the exponential.
TEST(MatrixFunctions, ExponentialOfALargeTriangle) {
  for (const double size : {1e3, 1e5, 1e10}) {
    for (const bool is_lower : {false, true}) {
      for (const DType dtype : {float32, float64}) {
        const Tensor ones_beside = diag(ones({3}, kDouble), 1);
        const Tensor shift = is_lower ? ones_beside.t() : ones_beside;
        Tensor expected = eye(4, kDouble), term = expected;
        for (const double k : {1, 2, 3}) {
          term = term.matmul(shift) * (size / k);
          expected = expected + term;
        }

        const Tensor y = matrix_exp((shift * size).to(dtype)).to(float64);

        const double limit = dtype == float32 ? 1e-5 : 1e-14;
        EXPECT_LT(distance(y / (expected + 1e-300), expected / (expected + 1e-300)), limit)
            << size << ' ' << is_lower << ' ' << dtype;
      }
    }
  }
}

TEST(MatrixFunctions, NormsOfWords) {
  const Tensor x = diag(tensor({3.F, -4.F}));

  EXPECT_NEAR(linalg::matrix_norm(x).item(), 5, 1e-6);
  EXPECT_NEAR(linalg::matrix_norm(x, {.ord = "nuc"}).item(), 7, 1e-5);
  EXPECT_NEAR(linalg::norm(x).item(), 5, 1e-6);
  EXPECT_EQ(linalg::norm(tensor({3.F, 0.F, -4.F}), {.ord = 0}).item(), 2);
  EXPECT_THROW(linalg::matrix_norm(x, {.ord = "spectral"}), InvalidArgument);
  EXPECT_THROW(linalg::matrix_norm(x, {.ord = 3}), InvalidArgument);
}

TEST(WithoutErrors, InfoSaysWhichMatrixFailed) {
  const Tensor one = eye(3, kDouble);
  const Tensor singular = diag(tensor({1.0, 0.0, 2.0}, kDouble));
  const Tensor indefinite = diag(tensor({1.0, 2.0, -3.0}, kDouble));
  const Tensor batch = stack({one * 2, singular, indefinite});

  const auto [factor, order] = linalg::cholesky_ex(stack({one, indefinite}));
  EXPECT_EQ(order.dtype(), DType::kInt32);
  EXPECT_EQ(order.to_vector<int>(), (std::vector<int>{0, 3}));
  EXPECT_EQ(distance(factor[0], one), 0);
  EXPECT_TRUE(isnan(factor[1]).all().item<bool>());
  EXPECT_EQ(linalg::lu_factor_ex(batch).info.to_vector<int>(), (std::vector<int>{0, 2, 0}));
  const auto [inverse, info] = linalg::inv_ex(batch);
  EXPECT_EQ(info.to_vector<int>(), (std::vector<int>{0, 2, 0}));
  EXPECT_EQ(distance(inverse[0], one / 2), 0);
  EXPECT_TRUE(isnan(inverse[1]).all().item<bool>());
  const auto [solution, solved] = linalg::solve_ex(singular, ones({2, 3, 1}, kDouble));
  EXPECT_EQ(solved.shape(), Shape{});  // the batch of the matrix
  EXPECT_EQ(solved.item<int>(), 2);
  EXPECT_TRUE(isnan(solution).all().item<bool>());
}

TEST(WithoutErrors, CheckErrorsRaises) {
  const Tensor singular = zeros({2, 2});

  EXPECT_THROW(linalg::cholesky_ex(singular, {.check_errors = true}), InvalidArgument);
  EXPECT_THROW(linalg::lu_factor_ex(singular, {.check_errors = true}), InvalidArgument);
  EXPECT_THROW(linalg::inv_ex(singular, {.check_errors = true}), InvalidArgument);
  EXPECT_THROW(linalg::solve_ex(singular, ones({2}), {.check_errors = true}), InvalidArgument);
  EXPECT_EQ(linalg::inv_ex(eye(2), {.check_errors = true}).info.item<int>(), 0);
}

TEST(WithoutErrors, GradientsOfGoodMatricesPass) {
  const Tensor x = stack({eye(2, kDouble) * 2, zeros({2, 2}, kDouble)}).requires_grad_();

  const auto [inverse, info] = linalg::inv_ex(x);
  masked_fill(inverse, ne(info, 0).reshape({2, 1, 1}), 0).sum().backward();

  EXPECT_EQ(x.grad()[0].to_vector<double>(), (Doubles{-0.25, -0.25, -0.25, -0.25}));
  EXPECT_TRUE(isnan(x.grad()[1]).all().item<bool>());
}

TEST(Eigh, ReadsTheTriangleThatIsNamed) {
  const Tensor x = random_matrix({2, 4, 4});
  const Tensor lower = tril(x) + tril(x, -1).transpose(-1, -2);
  const Tensor upper = triu(x) + triu(x, 1).transpose(-1, -2);

  EXPECT_EQ(distance(linalg::eigh(x, {.UPLO = "L"}).eigenvectors, linalg::eigh(lower).eigenvectors),
            0);
  EXPECT_EQ(distance(linalg::eigvalsh(x, {.UPLO = "U"}), linalg::eigvalsh(upper)), 0);
  EXPECT_LT(distance(linalg::eigvalsh(lower), linalg::eigh(lower).eigenvalues), 1e-13);
  EXPECT_NE(message_of([&] { linalg::eigh(x, {.UPLO = "l"}); }).find("UPLO is \"l\""),
            std::string::npos);
}

TEST(Svd, ValuesAloneAreThoseOfTheDecomposition) {
  for (const Shape& shape : {Shape{4, 4}, Shape{2, 3, 5}, Shape{2, 5, 3}, Shape{3, 0}}) {
    const Tensor x = random_matrix(shape);

    EXPECT_LT(distance(linalg::svdvals(x), linalg::svd(x).S), 1e-13) << shape;
  }
}

TEST(Svd, GivesThePolarDecomposition) {
  const Tensor x = random_matrix({2, 4, 3});

  const auto [u, h] = linalg::polar(x);

  EXPECT_LT(distance(u.matmul(h), x), 1e-13);
  EXPECT_LT(distance(u.transpose(-1, -2).matmul(u), eye(3, kDouble).expand({2, 3, 3})), 1e-13);
  EXPECT_LT(distance(h, h.transpose(-1, -2)), 1e-13);
}

TEST(Qr, OfLapackHasTheReflectionsOfQ) {
  const Tensor x = random_matrix({2, 5, 3});
  const auto [q, r] = linalg::qr(x);

  const auto [a, tau] = geqrf(x);

  EXPECT_LT(distance(triu(narrow(a, -2, 0, 3)), r), 1e-13);
  EXPECT_LT(distance(linalg::householder_product(a, tau), q), 1e-13);
  EXPECT_LT(distance(ormqr(a, tau, pad(r, {0, 0, 0, 2})), x), 1e-13);
}

// The matrix of one reflection.
Tensor reflection(const Tensor& x, const Tensor& tau, int64_t i) {
  const int64_t m = x.size(0);
  Doubles v(static_cast<size_t>(m), 0);
  for (int64_t row = i; row < m; ++row)
    v[static_cast<size_t>(row)] = row == i ? 1 : x[row][i].item();
  const Tensor column = tensor(v, {m, 1});
  return eye(m, kDouble) - tau[i] * column.matmul(column.transpose(0, 1));
}

TEST(Qr, ProductsOfReflections) {
  const Tensor x = random_matrix({5, 3}), y = random_matrix({5, 2});
  const Tensor tau = tensor({0.5, 0.0, 1.5}, kDouble);
  const Tensor q =
      reflection(x, tau, 0).matmul(reflection(x, tau, 1)).matmul(reflection(x, tau, 2));

  EXPECT_LT(distance(linalg::householder_product(x, tau), narrow(q, 1, 0, 3)), 1e-14);
  EXPECT_LT(distance(ormqr(x, tau, y), q.matmul(y)), 1e-14);
  EXPECT_LT(distance(ormqr(x, tau, y, {.transpose = true}), q.transpose(0, 1).matmul(y)), 1e-14);
  EXPECT_LT(
      distance(ormqr(x, tau, y.transpose(0, 1), {.left = false}), y.transpose(0, 1).matmul(q)),
      1e-14);
  const auto product = [](const auto& in) { return linalg::householder_product(in[0], in[1]); };
  EXPECT_NO_THROW(gradcheck(product, {x.requires_grad_(), tau.clone().requires_grad_()}));
}

struct Inverts : nn::Graph<Inverts> {
  Tensor build(const Tensor& x) { return linalg::inv(x).sum(); }
};

TEST(LinalgGraph, RaisesForASingularMatrixAsEagerDoes) {
  Inverts graph;

  EXPECT_EQ(graph(eye(2)).item(), 2);
  EXPECT_NE(message_of([&] {
              graph(ones({2, 2}));
            }).find("the matrix is singular: element 1"),
            std::string::npos);
}

}  // namespace
}  // namespace flow
