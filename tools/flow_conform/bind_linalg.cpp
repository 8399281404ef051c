// Matrix factorisations and functions of matrices.
#include "ops/linalg/cholesky.h"
#include "ops/linalg/eigh.h"
#include "ops/linalg/ldl.h"
#include "ops/linalg/lu.h"
#include "ops/linalg/matrix_exp.h"
#include "ops/linalg/matrix_functions.h"
#include "ops/linalg/qr.h"
#include "ops/linalg/svd.h"
#include "ops/linalg/triangular.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

linalg::ExOptions ex_options(Case& c) {
  linalg::ExOptions options;
  c.attrs.read("check_errors", options.check_errors);
  return options;
}

void bind_factors(Bindings& table) {
  table.add({"cholesky", "cholesky_inverse"}, [](Case& c) {
    linalg::CholeskyOptions options;
    c.attrs.read("upper", options.upper);
    return c.op() == "cholesky" ? linalg::cholesky(c.in(0), options)
                                : linalg::cholesky_inverse(c.in(0), options);
  });
  table.add("cholesky_solve", [](Case& c) {
    linalg::CholeskyOptions options;
    c.attrs.read("upper", options.upper);
    return linalg::cholesky_solve(c.in(0), c.in(1), options);
  });
  table.add("lu_factor", [](Case& c) -> Outputs {
    const auto [factors, pivots] = linalg::lu_factor(c.in(0));
    return {factors, pivots};
  });
  table.add("lu_factor_ex", [](Case& c) -> Outputs {
    const auto [factors, pivots, info] = linalg::lu_factor_ex(c.in(0), ex_options(c));
    return {factors, pivots, info};
  });
  table.add("ldl_factor", [](Case& c) -> Outputs {
    const auto [factors, pivots] = linalg::ldl_factor(c.in(0));
    return {factors, pivots};
  });
  table.add("ldl_factor_ex", [](Case& c) -> Outputs {
    const auto [factors, pivots, info] = linalg::ldl_factor_ex(c.in(0), ex_options(c));
    return {factors, pivots, info};
  });
  table.add("ldl_solve", [](Case& c) { return linalg::ldl_solve(c.in(0), c.in(1), c.in(2)); });
  table.add("cholesky_ex", [](Case& c) -> Outputs {
    linalg::CholeskyExOptions options;
    c.attrs.read("upper", options.upper);
    c.attrs.read("check_errors", options.check_errors);
    const auto [factor, info] = linalg::cholesky_ex(c.in(0), options);
    return {factor, info};
  });
  table.add("lu", [](Case& c) -> Outputs {
    const auto [p, l, u] = linalg::lu(c.in(0));
    return {p, l, u};
  });
  table.add("qr", [](Case& c) -> Outputs {
    linalg::QrOptions options;
    c.attrs.read("mode", options.mode);
    const auto [q, r] = linalg::qr(c.in(0), options);
    return {q, r};
  });
  table.add("geqrf", [](Case& c) -> Outputs {
    const auto [a, tau] = linalg::geqrf(c.in(0));
    return {a, tau};
  });
  table.add("householder_product",
            [](Case& c) { return linalg::householder_product(c.in(0), c.in(1)); });
  table.add("orgqr", [](Case& c) { return orgqr(c.in(0), c.in(1)); });
  table.add("ormqr", [](Case& c) {
    linalg::OrmqrOptions options;
    c.attrs.read("left", options.left);
    c.attrs.read("transpose", options.transpose);
    return linalg::ormqr(c.in(0), c.in(1), c.in(2), options);
  });
}

void bind_systems(Bindings& table) {
  table.add("solve", [](Case& c) {
    linalg::SolveOptions options;
    c.attrs.read("left", options.left);
    return linalg::solve(c.in(0), c.in(1), options);
  });
  table.add("solve_ex", [](Case& c) -> Outputs {
    linalg::SolveExOptions options;
    c.attrs.read("left", options.left);
    c.attrs.read("check_errors", options.check_errors);
    const auto [result, info] = linalg::solve_ex(c.in(0), c.in(1), options);
    return {result, info};
  });
  table.add("inv_ex", [](Case& c) -> Outputs {
    const auto [inverse, info] = linalg::inv_ex(c.in(0), ex_options(c));
    return {inverse, info};
  });
  table.add("solve_triangular", [](Case& c) {
    linalg::SolveTriangularOptions options;
    c.attrs.read("left", options.left);
    c.attrs.read("unitriangular", options.unitriangular);
    return linalg::solve_triangular(c.in(0), c.in(1), c.attrs.get<bool>("upper"), options);
  });
  table.add("lu_solve", [](Case& c) {
    linalg::LuSolveOptions options;
    c.attrs.read("left", options.left);
    c.attrs.read("adjoint", options.adjoint);
    return linalg::lu_solve(c.in(0), c.in(1), c.in(2), options);
  });
  table.add("inv", [](Case& c) { return linalg::inv(c.in(0)); });
  table.add("inverse", [](Case& c) { return linalg::inverse(c.in(0)); });
  table.add("det", [](Case& c) { return linalg::det(c.in(0)); });
  table.add("logdet", [](Case& c) { return linalg::logdet(c.in(0)); });
  table.add("slogdet", [](Case& c) -> Outputs {
    const auto [sign, logabsdet] = linalg::slogdet(c.in(0));
    return {sign, logabsdet};
  });
  table.add("lstsq", [](Case& c) -> Outputs {
    linalg::LstsqOptions options;
    c.attrs.read("rcond", options.rcond);
    const auto [solution, residuals, rank, values] = linalg::lstsq(c.in(0), c.in(1), options);
    return {solution, residuals, rank, values};
  });
}

linalg::EighOptions eigh_options(Case& c) {
  linalg::EighOptions options;
  c.attrs.read("UPLO", options.UPLO);
  return options;
}

void bind_spectra(Bindings& table) {
  table.add("eigh", [](Case& c) -> Outputs {
    const auto [values, vectors] = linalg::eigh(c.in(0), eigh_options(c));
    return {values, vectors};
  });
  table.add("eigvalsh", [](Case& c) { return linalg::eigvalsh(c.in(0), eigh_options(c)); });
  table.add("linalg_polar", [](Case& c) -> Outputs {
    const auto [u, h] = linalg::polar(c.in(0));
    return {u, h};
  });
  table.add("svd", [](Case& c) -> Outputs {
    linalg::SvdOptions options;
    c.attrs.read("full_matrices", options.full_matrices);
    const auto [u, s, vh] = linalg::svd(c.in(0), options);
    return {u, s, vh};
  });
  table.add("svdvals", [](Case& c) { return linalg::svdvals(c.in(0)); });
  table.add("pinv", [](Case& c) {
    linalg::PinvOptions options;
    c.attrs.read("atol", options.atol);
    c.attrs.read("rtol", options.rtol);
    return linalg::pinv(c.in(0), options);
  });
  table.add("pinverse",
            [](Case& c) { return linalg::pinverse(c.in(0), c.attrs.get<double>("rcond", 1e-15)); });
  table.add("matrix_rank", [](Case& c) {
    linalg::MatrixRankOptions options;
    c.attrs.read("atol", options.atol);
    c.attrs.read("rtol", options.rtol);
    return linalg::matrix_rank(c.in(0), options);
  });
}

// A norm, which is a word or a number; infinities are words too.
std::optional<linalg::MatrixOrd> ord_of(Case& c, const char* name) {
  if (!c.attrs.has(name)) return {};
  const Json& value = c.attrs.json(name);
  if (value == "fro" || value == "nuc") return value.get<std::string>().c_str();
  double number = 0;
  convert(value, number);
  return number;
}

void bind_matrix_norms(Bindings& table) {
  table.add("matrix_norm", [](Case& c) {
    linalg::MatrixNormOptions options;
    if (const auto ord = ord_of(c, "ord")) options.ord = *ord;
    c.attrs.read("dim", options.dim);
    c.attrs.read("keepdim", options.keepdim);
    return linalg::matrix_norm(c.in(0), options);
  });
  table.add("linalg_norm", [](Case& c) {
    linalg::LinalgNormOptions options{.ord = ord_of(c, "ord")};
    c.attrs.read("dim", options.dim);
    c.attrs.read("keepdim", options.keepdim);
    return linalg::norm(c.in(0), options);
  });
  table.add("cond", [](Case& c) { return linalg::cond(c.in(0), ord_of(c, "p")); });
}

void bind_powers(Bindings& table) {
  table.add("matrix_power",
            [](Case& c) { return linalg::matrix_power(c.in(0), c.attrs.get<int64_t>("n")); });
  table.add("matrix_exp", [](Case& c) { return linalg::matrix_exp(c.in(0)); });
  table.add("tensorinv",
            [](Case& c) { return linalg::tensorinv(c.in(0), c.attrs.get<int64_t>("ind", 2)); });
  table.add("tensorsolve", [](Case& c) {
    std::optional<Ints> dims;
    c.attrs.read("dims", dims);
    return linalg::tensorsolve(c.in(0), c.in(1), dims);
  });
  table.add("multi_dot", [](Case& c) { return linalg::multi_dot(c.all()); });
  table.add("vecdot", [](Case& c) {
    return linalg::vecdot(c.in(0), c.in(1), c.attrs.get<int64_t>("dim", -1));
  });
  table.add("linalg_vander", [](Case& c) {
    std::optional<int64_t> columns;
    c.attrs.read("N", columns);
    return linalg::vander(c.in(0), columns);
  });
}

}  // namespace

void bind_linalg(Bindings& table) {
  bind_factors(table);
  bind_systems(table);
  bind_spectra(table);
  bind_matrix_norms(table);
  bind_powers(table);
}

}  // namespace flow::conform
