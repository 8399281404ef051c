#include "ops/linalg/lu.h"

#include <algorithm>
#include <array>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/sort.h"
#include "ops/linalg/factor_op.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linalg/triangular.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

// Triangular systems of the gradients and of lu_solve.
Tensor divide(const Tensor& a, const Tensor& b, const TriangularAttrs& attrs) {
  return dispatch(kSolveTriangular, {&a, &b}, attrs, Site::here());
}

constexpr TriangularAttrs kLowerUnit{.unitriangular = true};
constexpr TriangularAttrs kLowerUnitTransposed{.transposed = true, .unitriangular = true};
constexpr TriangularAttrs kUpper{.upper = true};
constexpr TriangularAttrs kUpperTransposed{.upper = true, .transposed = true};

// The row of the matrix that is row i of L U.
Tensor permutation(const Tensor& pivots, int64_t rows) {
  return dispatch(kLuPermutation, {&pivots}, PermutationAttrs{rows}, Site::here());
}

// y[i] = x[order[i]] for the rows of each matrix.
Tensor permuted_rows(const Tensor& x, const Tensor& order) {
  return gather(x, -2, expand(unsqueeze(order, -1), x.shape()));
}

void infer_lu(InferContext& ctx) {
  check_matrices(ctx, 0);
  const Shape& shape = ctx.input(0).shape;
  ctx.add_output_like(0);
  Shape pivots = leading_dims(shape, 2);
  pivots.push_back(std::min(size_from_end(shape, 0), size_from_end(shape, 1)));
  ctx.add_output(pivots, DType::kInt32);
}

void sbp_lu(SbpContext& ctx) {
  batch_sbp(ctx);
}

// For a square x = P L U:  dx = P L^-T (tril(L^T dL, -1) + triu(dU U^T)) U^-T. The rows of L below
// the square and the columns of U to the right of it solve triangular systems, which add to dU and
// dL.
void grad_lu(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor packed = ctx.output(0);
  const int64_t m = packed.size(-2), n = packed.size(-1), k = std::min(m, n);
  const Tensor square = narrow(narrow(packed, -2, 0, k), -1, 0, k);
  const Tensor dsquare = narrow(narrow(ctx.dy(), -2, 0, k), -1, 0, k);
  const Tensor lower = add(tril(square, -1), identity_like(packed, k, k));
  const Tensor upper = triu(square);
  Tensor of_lower = matmul(transposed(lower), tril(dsquare, -1));  // L^T dL
  Tensor of_upper = matmul(triu(dsquare), transposed(upper));      // dU U^T
  std::vector<Tensor> parts;
  if (n > k) {  // U2 = L^-1 (P^T x)2
    const Tensor right = narrow(packed, -1, k, n - k);
    const Tensor dright = narrow(ctx.dy(), -1, k, n - k);
    of_lower = sub(of_lower, matmul(dright, transposed(right)));
    parts.push_back(divide(square, dright, kLowerUnitTransposed));
  }
  if (m > k) {  // L2 = (P^T x)2 U^-1
    const Tensor below = narrow(packed, -2, k, m - k);
    const Tensor dbelow = narrow(ctx.dy(), -2, k, m - k);
    of_upper = sub(of_upper, matmul(transposed(below), dbelow));
    parts.push_back(transposed(divide(square, transposed(dbelow), kUpper)));
  }
  const Tensor inner = add(tril(of_lower, -1), triu(of_upper));
  const Tensor half = divide(square, inner, kLowerUnitTransposed);
  Tensor dx = transposed(divide(square, transposed(half), kUpper));
  if (!parts.empty()) dx = cat({dx, parts[0]}, n > k ? -1 : -2);
  const Tensor order = permutation(ctx.output(1), m);
  ctx.set(0, permuted_rows(dx, argsort(order)));
}

Cost cost_lu(const SbpContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  return {.flops = static_cast<double>(shape.numel()) *
                   static_cast<double>(std::min(size_from_end(shape, 0), size_from_end(shape, 1)))};
}

void infer_permutation(InferContext& ctx) {
  const TensorMeta& pivots = ctx.input(0);
  ctx.check(pivots.dtype == DType::kInt32 || pivots.dtype == DType::kInt64,
            "takes pivots of int32 or int64, as lu_factor gives them");
  ctx.check(pivots.dim() >= 1, "takes pivots of at least one dim, as lu_factor gives them");
  const int64_t rows = ctx.attrs<PermutationAttrs>().rows;
  ctx.check(size_from_end(pivots.shape, 0) <= rows, "a matrix of ", rows,
            " rows has at most as many pivots");
  Shape shape = leading_dims(pivots.shape, 1);
  shape.push_back(rows);
  ctx.add_output(shape, DType::kInt64);
}

void sbp_permutation(SbpContext& ctx) {
  batch_sbp(ctx, 1);
}

void infer_solve(InferContext& ctx) {
  check_square(ctx, 0);
  check_right_side(ctx);
  ctx.add_output_like(1);
}

// A singular a does not raise here either: its gradients are NaN.
Tensor solve_without_error(const Tensor& a, const Tensor& b, Site site, Tensor* info = nullptr) {
  std::array<Tensor, 2> outputs;
  const Tensor* const inputs[] = {&a, &b};
  Call call{kSolveEx, inputs, nullptr, site};
  dispatch(call, outputs.data());
  if (info != nullptr) *info = std::move(outputs[1]);
  return std::move(outputs[0]);
}

void infer_solve_ex(InferContext& ctx) {
  infer_solve(ctx);
  ctx.add_output(leading_dims(ctx.input(0).shape, 2), DType::kInt32);
}

// As system_sbp, where info belongs to a alone.
void sbp_solve_ex(SbpContext& ctx) {
  batch_sbp(ctx);
  const int64_t columns = ctx.input(1).dim() - 1;
  ctx.add({sbp::broadcast, sbp::split(columns)}, {sbp::split(columns), sbp::broadcast});
  ctx.add({sbp::broadcast, sbp::partial_sum}, {sbp::partial_sum, sbp::broadcast});
}

// db = a^-T dx,  da = -db x^T
template <bool kRaises>
void grad_solve(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor turned = transposed(ctx.input(0));
  const Tensor db = kRaises ? dispatch(kSolve, {&turned, &ctx.dy()}, Site::here())
                            : solve_without_error(turned, ctx.dy(), Site::here());
  if (ctx.needs(1)) ctx.set(1, db);
  if (ctx.needs(0)) ctx.set(0, neg(matmul(db, transposed(ctx.output()))));
}

Cost cost_solve(const SbpContext& ctx) {
  const auto n = static_cast<double>(size_from_end(ctx.input(0).shape, 0));
  return {.flops = n * (static_cast<double>(ctx.input(0).numel) * 2 / 3 +
                        static_cast<double>(ctx.input(1).numel) * 2)};
}

}  // namespace

const OpDef kLuFactor{.name = "lu_factor",
                      .num_outputs = 2,
                      .attrs = attrs_def<SingularAttrs>(),
                      .infer = infer_lu,
                      .sbp = sbp_lu,
                      .grad = grad_lu,
                      .cost = cost_lu,
                      .saved_outputs = 0b11,
                      .autocast = AutocastRule::kFloat32};

const OpDef kLuPermutation{.name = "lu_permutation",
                           .attrs = attrs_def<PermutationAttrs>(),
                           .infer = infer_permutation,
                           .sbp = sbp_permutation,
                           .grad = not_differentiable};

const OpDef kSolve{.name = "solve",
                   .num_inputs = 2,
                   .infer = infer_solve,
                   .sbp = system_sbp,
                   .grad = grad_solve<true>,
                   .cost = cost_solve,
                   .saved_inputs = 0b1,
                   .saved_outputs = 0b1,
                   .autocast = AutocastRule::kFloat32};

const OpDef kSolveEx{.name = "solve_ex",
                     .num_inputs = 2,
                     .num_outputs = 2,
                     .infer = infer_solve_ex,
                     .sbp = sbp_solve_ex,
                     .grad = grad_solve<false>,
                     .cost = cost_solve,
                     .saved_inputs = 0b1,
                     .saved_outputs = 0b1,
                     .autocast = AutocastRule::kFloat32};

void register_lu(OpTable& table);

void register_lu(OpTable& table) {
  table.add(kLuFactor);
  table.add(kLuPermutation);
  table.add(kSolve);
  table.add(kSolveEx);
}

}  // namespace ops

namespace linalg {

namespace {

LuFactor factorise(const TensorArg& x, bool refuses_singular) {
  std::array<Tensor, 2> outputs = dispatch_multi<2>(ops::kLuFactor, {&x.tensor()},
                                                    ops::SingularAttrs{refuses_singular}, x.site());
  return {std::move(outputs[0]), std::move(outputs[1])};
}

void check_square(const TensorArg& x, const char* function) {
  if (x->dim() >= 2 && x->size(-1) == x->size(-2)) return;
  throw InvalidArgument(
      str("[", function, "] takes square matrices (…, n, n); received ", x->meta()), x.site());
}

// 1 for an even number of swapped rows, else -1.
Tensor parity(const LuFactor& factors) {
  const Tensor own = ops::counting_like(factors.LU, factors.pivots.size(-1), DType::kInt32);
  const Tensor swaps = cast(ne(factors.pivots, add(own, 1)), factors.LU.dtype());
  return prod(1 - mul(swaps, 2), -1);
}

}  // namespace

LuFactor lu_factor(const TensorArg& x) {
  return ops::located(x.site(), [&]() -> LuFactor { return factorise(x, true); });
}

LuFactorEx lu_factor_ex(const TensorArg& x, const ExOptions& options) {
  return ops::named("lu_factor_ex", x.site(), [&]() -> LuFactorEx {
    const LuFactor factors = factorise(x, options.check_errors);
    const Shape batch = ops::leading_dims(x->shape(), 2);
    const int64_t k = factors.pivots.size(-1);
    if (options.check_errors || k == 0)
      return {factors.LU, factors.pivots, new_zeros(x, batch, {.dtype = DType::kInt32})};
    // The number of each zero, or a number that no element has.
    const Tensor is_zero = eq(diagonal(factors.LU.detach(), 0, -2, -1), 0);
    const Tensor numbers = add(ops::counting_like(factors.LU, k, DType::kInt32), 1);
    const Tensor first = amin(where(is_zero, numbers, full_like(numbers, k + 1)), -1);
    return {factors.LU, factors.pivots, masked_fill(first, eq(first, k + 1), 0)};
  });
}

Lu lu(const TensorArg& x) {
  return ops::named("lu", x.site(), [&]() -> Lu {
    const LuFactor factors = factorise(x, false);
    const int64_t m = x->size(-2), n = x->size(-1), k = std::min(m, n);
    const Tensor order = ops::permutation(factors.pivots, m);
    const Tensor rows = ops::counting_like(factors.LU, m, DType::kInt64);
    const Tensor is_one = eq(unsqueeze(order, -2), unsqueeze(rows, -1));
    return {cast(is_one, factors.LU.dtype()),
            add(tril(narrow(factors.LU, -1, 0, k), -1), ops::identity_like(factors.LU, m, k)),
            triu(narrow(factors.LU, -2, 0, k))};
  });
}

Tensor lu_solve(const TensorArg& LU, const TensorArg& pivots, const TensorArg& B,
                const LuSolveOptions& options) {
  return ops::named("lu_solve", LU.site(), [&]() -> Tensor {
    check_square(LU, "lu_solve");
    const int64_t n = LU->size(-1);
    if (B->dim() < 2 || pivots->dim() < 1 || pivots->size(-1) != n) {
      throw InvalidArgument(str("[lu_solve] takes LU (…, n, n), pivots (…, n) and B (…, n, k); "
                                "received ",
                                LU->meta(), ", ", pivots->meta(), ", ", B->meta()),
                            LU.site());
    }
    const Tensor own = options.left ? B.tensor() : ops::transposed(B);
    const Shape batch = broadcast_shapes(ops::leading_dims(LU->shape(), 2),
                                         ops::leading_dims(own.shape(), 2), "lu_solve");
    const Tensor a = ops::with_batch(LU, batch);
    const Tensor b = ops::with_batch(own, batch);
    const Tensor order = ops::permutation(pivots, n);
    Shape all_orders = batch;
    all_orders.push_back(n);
    const Tensor orders = expand(order, all_orders);
    Tensor x;
    if (options.adjoint == options.left) {  // x = P L^-T U^-T b
      x = ops::divide(a, ops::divide(a, b, ops::kUpperTransposed), ops::kLowerUnitTransposed);
      x = ops::permuted_rows(x, argsort(orders));
    } else {  // x = U^-1 L^-1 P^T b
      x = ops::divide(a, ops::divide(a, ops::permuted_rows(b, orders), ops::kLowerUnit),
                      ops::kUpper);
    }
    return options.left ? x : ops::transposed(x);
  });
}

namespace {

// The info of the matrices A, which were repeated along `batch`.
Tensor own_info(const Tensor& info, const Tensor& A) {
  const Shape own = ops::leading_dims(A.shape(), 2);
  if (own.numel() > info.numel()) return new_zeros(info, own);  // no right-hand side at all
  Tensor result = info;
  while (result.dim() > own.size())
    result = select(result, 0, 0);
  for (int64_t d = 0; d < own.size(); ++d)
    if (own[d] != result.size(d)) result = narrow(result, d, 0, 1);
  return result;
}

// The solution, and where `info` is not null, whether there is one instead of an error.
Tensor solved(const char* function, const TensorArg& A, const TensorArg& B, bool left,
              Tensor* info) {
  const Site site = A.site();
  check_square(A, function);
  // As in PyTorch and NumPy, B holds vectors if it has one dim, or the batch of A alone.
  const bool are_vectors =
      B->dim() == 1 || (B->dim() == A->dim() - 1 && B->shape() == ops::leading_dims(A->shape(), 1));
  if (B->dim() == 0) {
    throw InvalidArgument(
        str("[", function, "] B must have at least one dim; received ", B->meta(), "; reshape it"),
        site);
  }
  const Tensor columns = are_vectors ? unsqueeze(B, -1) : B.tensor();
  const bool turns = !left && !are_vectors;
  const Tensor own = turns ? ops::transposed(columns) : columns;
  const Tensor matrix = left ? A.tensor() : ops::transposed(A);
  const Shape batch = broadcast_shapes(ops::leading_dims(matrix.shape(), 2),
                                       ops::leading_dims(own.shape(), 2), function);
  const Tensor a = ops::with_batch({matrix, site}, batch);
  const Tensor b = ops::with_batch({own, site}, batch);
  const Tensor x = info != nullptr ? ops::solve_without_error(a, b, site, info)
                                   : dispatch(ops::kSolve, {&a, &b}, site);
  return are_vectors ? squeeze(x, -1) : turns ? ops::transposed(x) : x;
}

// The info of matrices that were factorised or solved without an error.
Tensor no_errors(const Tensor& x, const Shape& batch) {
  return new_zeros(x, batch, {.dtype = DType::kInt32});
}

}  // namespace

Tensor solve(const TensorArg& A, const TensorArg& B, const SolveOptions& options) {
  return ops::named("solve", A.site(),
                    [&]() -> Tensor { return solved("solve", A, B, options.left, nullptr); });
}

SolveEx solve_ex(const TensorArg& A, const TensorArg& B, const SolveExOptions& options) {
  return ops::named("solve_ex", A.site(), [&]() -> SolveEx {
    SolveEx parts;
    Tensor* const info = options.check_errors ? nullptr : &parts.info;
    parts.result = solved("solve_ex", A, B, options.left, info);
    parts.info = options.check_errors ? no_errors(A, ops::leading_dims(A->shape(), 2))
                                      : own_info(parts.info, A);
    return parts;
  });
}

Tensor inv(const TensorArg& x) {
  return ops::named("inv", x.site(), [&]() -> Tensor {
    check_square(x, "inv");
    const Tensor one = ops::identity_like(x, x->size(-1), x->size(-1));
    const Tensor sides = expand(one, x->shape());
    return dispatch(ops::kSolve, {&x.tensor(), &sides}, x.site());
  });
}

InvEx inv_ex(const TensorArg& x, const ExOptions& options) {
  return ops::named("inv_ex", x.site(), [&]() -> InvEx {
    check_square(x, "inv_ex");
    if (options.check_errors) return {inv(x), no_errors(x, ops::leading_dims(x->shape(), 2))};
    const Tensor one = ops::identity_like(x, x->size(-1), x->size(-1));
    InvEx parts;
    parts.inverse = ops::solve_without_error(x, expand(one, x->shape()), x.site(), &parts.info);
    return parts;
  });
}

Tensor inverse(const TensorArg& x) {
  return ops::named("inverse", x.site(), [&]() -> Tensor { return inv(x); });
}

Tensor det(const TensorArg& x) {
  return ops::named("det", x.site(), [&]() -> Tensor {
    check_square(x, "det");
    const LuFactor factors = factorise(x, false);
    return mul(prod(diagonal(factors.LU, 0, -2, -1), -1), parity(factors));
  });
}

Slogdet slogdet(const TensorArg& x) {
  return ops::named("slogdet", x.site(), [&]() -> Slogdet {
    check_square(x, "slogdet");
    const LuFactor factors = factorise(x, false);
    const Tensor values = diagonal(factors.LU, 0, -2, -1);
    return {mul(prod(sign(values.detach()), -1), parity(factors)), sum(log(abs(values)), -1)};
  });
}

Tensor logdet(const TensorArg& x) {
  return ops::named("logdet", x.site(), [&]() -> Tensor {
    const Slogdet parts = slogdet(x);
    return add(parts.logabsdet, log(parts.sign));
  });
}

}  // namespace linalg

Tensor LinalgMethods::det(Site site) const {
  return linalg::det({self(), site});
}

Tensor LinalgMethods::inverse(Site site) const {
  return linalg::inverse({self(), site});
}

Tensor LinalgMethods::logdet(Site site) const {
  return linalg::logdet({self(), site});
}

linalg::Slogdet LinalgMethods::slogdet(Site site) const {
  return linalg::slogdet({self(), site});
}

}  // namespace flow
