// Matrices with separated eigenvalues or far from singular ones, so that kernels differ by little
// more than rounding. Batches have one leading dim: the first matrix may be repeated.
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/linalg/cholesky.h"
#include "ops/linalg/eigh.h"
#include "ops/linalg/ldl.h"
#include "ops/linalg/lu.h"
#include "ops/linalg/matrix_exp.h"
#include "ops/linalg/qr.h"
#include "ops/linalg/svd.h"
#include "ops/linalg/triangular.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

constexpr DTypeSet kWide = only(DType::kFloat32) | only(DType::kFloat64);
constexpr DTypeSet kDouble = only(DType::kFloat64);

Tensor near(const Tensor& x, double scale, const Tensor& base) {
  return cast(add(mul(x, scale), base), x.dtype());
}

// Near three times the identity.
Tensor regular(const Tensor& x, double scale = 0.25) {
  return near(x, scale, mul(eye(x.size(-2), x.size(-1)), 3));
}

// The same with rows in falling order, so that elimination swaps rows.
Tensor turned(const Tensor& x) {
  return flip(regular(x), {-2});
}

// Near a diagonal matrix with eigenvalues 1, 3, 5, …
Tensor separated(const Tensor& x) {
  const Tensor values = add(mul(arange(x.size(-1)), 2), 1);
  return near(x, 0.1, mul(eye(x.size(-2), x.size(-1)), values));
}

// The first matrix of a batch, and zeros in place of the others.
Tensor only_first(const Tensor& x) {
  const Tensor is_first = cast(eq(arange(x.size(0)), 0), x.dtype());
  return mul(x, reshape(is_first, {x.size(0), 1, 1}));
}

// Of an op that reports failures. Where nothing fails, info is 0, which any layout gives; where a
// matrix fails, its results have no gradient.
void add_ex(Samples& samples, const std::string& op, const std::vector<SampleInput>& inputs,
            const std::function<void(const Tensor& matrix, const Inputs& x)>& call) {
  OpSample good{op, inputs, kWide, [call](const Inputs& x) { call(regular(x[0]), x); }};
  good.is_general = false;
  samples.push_back(good);
  OpSample failing{op, inputs, kWide,
                   [call](const Inputs& x) { call(only_first(regular(x[0])), x); }, "failing"};
  failing.constant_inputs = 0b11;
  samples.push_back(failing);
}

void add_systems(Samples& samples) {
  for (const bool upper : {false, true}) {
    for (const bool left : {false, true}) {
      const auto call = [upper, left](const Inputs& x) {
        const Tensor b = left ? x[1] : x[1].transpose(-1, -2);
        linalg::solve_triangular(regular(x[0]), b, upper, {.left = left});
      };
      samples.push_back({"solve_triangular", {in({2, 5, 5}), in({2, 5, 3})}, kWide, call});
    }
    samples.push_back({"solve_triangular",
                       {in({2, 3, 3}), in({2, 3, 2})},
                       kWide,
                       [upper](const Inputs& x) {
                         linalg::solve_triangular(x[0], x[1], upper, {.unitriangular = true});
                       },
                       "unitriangular"});
  }
  samples.push_back({"solve", {in({2, 5, 5}), in({2, 5, 3})}, kWide, [](const Inputs& x) {
                       linalg::solve(turned(x[0]), x[1]);
                     }});
  add_ex(samples, "solve_ex", {in({2, 5, 5}), in({2, 5, 3})},
         [](const Tensor& matrix, const Inputs& x) { linalg::solve_ex(matrix, x[1]); });
  samples.push_back({"solve_ex",
                     {in({3, 40, 40}), in({3, 40, 17})},
                     kWide,
                     [](const Inputs& x) { linalg::solve_ex(regular(x[0], 0.1), x[1]); },
                     "many",
                     true});
  for (const char* op : {"solve", "solve_triangular"}) {
    samples.push_back({op,
                       {in({3, 40, 40}), in({3, 40, 17})},
                       kWide,
                       [op](const Inputs& x) {
                         const Tensor a = regular(x[0], 0.1);
                         std::string_view(op) == "solve" ? linalg::solve(a, x[1])
                                                         : linalg::solve_triangular(a, x[1], true);
                       },
                       "many",
                       true});
  }
}

// Near a matrix with zeros on its diagonal, so that pivots are blocks of two rows. Of singular
// matrices the factors have zeros.
void add_ldl(Samples& samples) {
  const auto factor = [](const Inputs& x) { linalg::ldl_factor_ex(turned(x[0])); };
  samples.push_back({"ldl_factor", {in({2, 5, 5})}, kWide, factor});
  samples.back().constant_inputs = 0b1;
  samples.back().is_general = false;  // info is 0, which any layout gives
  samples.push_back({"ldl_factor", {in({3, 40, 40})}, kWide, factor, "many", true});
  samples.push_back({"ldl_factor",
                     {in({2, 5, 5})},
                     kWide,
                     [](const Inputs& x) { linalg::ldl_factor_ex(only_first(turned(x[0]))); },
                     "singular"});
  samples.back().constant_inputs = 0b1;
  const auto solve = [](const Inputs& x) {
    const auto [factors, pivots] = linalg::ldl_factor(turned(x[0]));
    linalg::ldl_solve(factors, pivots, x[1]);
  };
  samples.push_back({"ldl_solve", {in({2, 5, 5}), in({2, 5, 3})}, kWide, solve});
  samples.back().constant_inputs = 0b1;
}

void add_factors(Samples& samples) {
  const auto cholesky = [](const Inputs& x) { linalg::cholesky(regular(x[0])); };
  samples.push_back({"cholesky", {in({2, 5, 5})}, kWide, cholesky});
  samples.push_back({"cholesky",
                     {in({3, 40, 40})},
                     kWide,
                     [](const Inputs& x) { linalg::cholesky(regular(x[0], 0.1)); },
                     "many",
                     true});
  add_ex(samples, "cholesky_ex", {in({2, 5, 5})},
         [](const Tensor& matrix, const Inputs& /*x*/) { linalg::cholesky_ex(matrix); });
  samples.push_back({"cholesky_ex",
                     {in({3, 40, 40})},
                     kWide,
                     [](const Inputs& x) { linalg::cholesky_ex(regular(x[0], 0.1)); },
                     "many",
                     true});
  const auto lu = [](const Inputs& x) { linalg::lu_factor(turned(x[0])); };
  const auto lu_of_all = [](const Inputs& x) { linalg::lu(x[0]); };  // any pivots
  for (const Shape& shape : {Shape{2, 5, 5}, Shape{2, 5, 3}, Shape{2, 3, 5}}) {
    samples.push_back({"lu_factor", {in(shape)}, kWide, lu});
    samples.push_back({"lu_permutation", {in(shape)}, kWide, lu_of_all});
  }
  samples.push_back({"lu_factor", {in({3, 40, 40})}, kWide, lu, "many", true});
  const auto qr = [](const Inputs& x) { linalg::qr(regular(x[0])); };
  const auto complete = [](const Inputs& x) { linalg::qr(regular(x[0]), {.mode = "complete"}); };
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{2, 5, 3}, Shape{2, 3, 5}})
    samples.push_back({"qr", {in(shape)}, kWide, qr});
  samples.push_back({"qr", {in({2, 3, 5})}, kWide, complete, "complete"});
  samples.push_back({"qr", {in({2, 5, 3})}, kWide, complete, "complete, no gradient", true});
  samples.push_back({"qr", {in({3, 40, 30})}, kWide, qr, "many", true});
  const auto geqrf = [](const Inputs& x) { linalg::geqrf(regular(x[0])); };
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{2, 5, 3}, Shape{2, 3, 5}})
    samples.push_back({"geqrf", {in(shape)}, kWide, geqrf});
  samples.push_back({"geqrf", {in({3, 40, 30})}, kWide, geqrf, "many", true});
}

void add_spectra(Samples& samples) {
  const auto eigh = [](const Inputs& x) { linalg::eigh(separated(x[0])); };
  samples.push_back({"eigh", {in({2, 5, 5})}, kWide, eigh});
  samples.push_back({"eigh", {in({3, 40, 40})}, kDouble, eigh, "many", true});
  const auto eigvalsh = [](const Inputs& x) { linalg::eigvalsh(separated(x[0])); };
  samples.push_back({"eigvalsh", {in({2, 5, 5})}, kWide, eigvalsh});
  samples.push_back({"eigvalsh", {in({3, 40, 40})}, kWide, eigvalsh, "many", true});
  const auto svd = [](const Inputs& x) { linalg::svd(separated(x[0]), {.full_matrices = false}); };
  const auto svdvals = [](const Inputs& x) { linalg::svdvals(separated(x[0])); };
  const auto pinv = [](const Inputs& x) { linalg::pinv(separated(x[0])); };
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{2, 5, 3}, Shape{2, 3, 5}}) {
    samples.push_back({"svd", {in(shape)}, kWide, svd});
    samples.push_back({"svdvals", {in(shape)}, kWide, svdvals});
    samples.push_back({"pinv", {in(shape)}, kWide, pinv});
  }
  samples.push_back({"svdvals", {in({3, 40, 30})}, kWide, svdvals, "many", true});
  samples.push_back({"svd", {in({3, 40, 30})}, kDouble, svd, "many", true});
  samples.push_back({"pinv", {in({3, 40, 30})}, kDouble, pinv, "many", true});
}

void add_exponentials(Samples& samples) {
  const auto scaled = [](double scale) {
    return [scale](const Inputs& x) { linalg::matrix_exp(cast(mul(x[0], scale), x[0].dtype())); };
  };
  samples.push_back({"matrix_exp", {in({2, 3, 3})}, kWide, scaled(0.5)});
  samples.push_back({"matrix_exp", {in({2, 5, 5})}, kDouble, scaled(3), "with squarings"});
  samples.push_back({"matrix_exp", {in({3, 40, 40})}, kWide, scaled(0.05), "many", true});
}

}  // namespace

Samples linalg_samples() {
  Samples samples;
  add_systems(samples);
  add_ldl(samples);
  add_factors(samples);
  add_spectra(samples);
  add_exponentials(samples);
  return samples;
}

}  // namespace flow::contract
