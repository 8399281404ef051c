#include "ops/linalg/matrix_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/linalg/lu.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linalg/svd.h"
#include "ops/linalg/tolerance.h"
#include "ops/linear/einsum.h"
#include "ops/linear/vector_algebra.h"
#include "ops/named_errors.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/concat.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::linalg {

namespace {

[[noreturn]] void refuse(const char* function, Site site, const std::string& text) {
  throw InvalidArgument(str("[", function, "] ", text), site);
}

// The two dims of a matrix norm, not negative.
struct MatrixDims {
  int64_t rows;
  int64_t columns;
};

MatrixDims matrix_dims(const Tensor& x, const Ints& dim, Site site) {
  if (dim.size() != 2) refuse("matrix_norm", site, "dim must name two dims");
  const MatrixDims dims{normalize_dim(dim[0], x.dim(), "matrix_norm"),
                        normalize_dim(dim[1], x.dim(), "matrix_norm")};
  if (dims.rows == dims.columns) refuse("matrix_norm", site, "dim names the same dim twice");
  return dims;
}

// The singular values of the matrices in two dims, which become the last dim.
Tensor singular_values(const Tensor& x, MatrixDims dims) {
  return svdvals(movedim(x, {dims.rows, dims.columns}, {-2, -1}));
}

// Inserts dims of size 1 in place of those that a norm has taken.
Tensor with_dims(const Tensor& y, MatrixDims dims, bool keepdim) {
  if (!keepdim) return y;
  return unsqueeze(unsqueeze(y, std::min(dims.rows, dims.columns)),
                   std::max(dims.rows, dims.columns));
}

// The largest or the smallest sum of magnitudes along `summed` for each place of `compared`.
Tensor extreme_sum(const Tensor& x, int64_t summed, int64_t compared, bool largest, bool keepdim) {
  const Tensor sums = sum(abs(x), summed, {.keepdim = true});
  const Tensor y =
      largest ? amax(sums, compared, {.keepdim = true}) : amin(sums, compared, {.keepdim = true});
  return keepdim ? y : squeeze(y, std::vector<int64_t>{summed, compared});
}

// B holds one vector for each matrix of A if it has one dim, or the batch of A and its rows alone.
bool holds_vectors(const TensorArg& A, const TensorArg& B) {
  return B->dim() == 1 ||
         (B->dim() == A->dim() - 1 && B->shape() == ops::leading_dims(A->shape(), 1));
}

int64_t product_of(const Shape& shape, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i)
    product *= shape[i];
  return product;
}

}  // namespace

MatrixOrd::MatrixOrd(const char* word, Site site) : word_(word) {
  if (word_ != "fro" && word_ != "nuc") {
    throw InvalidArgument(str("[MatrixOrd] the norm is \"", word_,
                              "\"; give \"fro\", \"nuc\", 1, -1, 2, -2 or ±infinity"),
                          site);
  }
}

MatrixOrd::MatrixOrd(double number) : number_(number) {}

Tensor matrix_norm(const TensorArg& x, const MatrixNormOptions& options) {
  return ops::named("matrix_norm", x.site(), [&]() -> Tensor {
    if (!is_floating(x->dtype()) || x->dim() < 2) {
      refuse("matrix_norm", x.site(),
             str("takes floating tensors of at least two dims; received ", x->meta()));
    }
    const MatrixDims dims = matrix_dims(x.tensor(), options.dim, x.site());
    const bool keepdim = options.keepdim;
    if (options.ord.is("fro"))
      return flow::norm(x, {.p = 2, .dim = {dims.rows, dims.columns}, .keepdim = keepdim});
    if (options.ord.is("nuc"))
      return with_dims(sum(singular_values(x.tensor(), dims), -1), dims, keepdim);
    const double ord = options.ord.number();
    const bool is_empty = x->size(dims.rows) == 0 || x->size(dims.columns) == 0;
    if (is_empty && (ord == 1 || ord == 2 || (std::isinf(ord) && ord > 0)))
      return sum(x, {dims.rows, dims.columns}, {.keepdim = keepdim});  // 0
    if (std::abs(ord) == 1)
      return extreme_sum(x.tensor(), dims.rows, dims.columns, ord > 0, keepdim);
    if (std::isinf(ord)) return extreme_sum(x.tensor(), dims.columns, dims.rows, ord > 0, keepdim);
    if (std::abs(ord) != 2) {
      refuse("matrix_norm", x.site(),
             str("ord is ", ord, "; give \"fro\", \"nuc\", 1, -1, 2, -2 or ±infinity"));
    }
    const Tensor s = singular_values(x.tensor(), dims);
    return with_dims(ord > 0 ? amax(s, -1) : amin(s, -1), dims, keepdim);
  });
}

Tensor norm(const TensorArg& x, const LinalgNormOptions& options) {
  return ops::named("norm", x.site(), [&]() -> Tensor {
    const Ints dim = options.dim.value_or(Ints());
    const bool keepdim = options.keepdim;
    if (!options.ord) return flow::norm(x, {.p = 2, .dim = dim, .keepdim = keepdim});
    const bool is_matrix = options.dim ? dim.size() == 2 : x->dim() == 2;
    if (is_matrix) {
      return matrix_norm(
          x, {.ord = *options.ord, .dim = options.dim.value_or(Ints{-2, -1}), .keepdim = keepdim});
    }
    if (options.ord->is("fro") || options.ord->is("nuc") || (!options.dim && x->dim() != 1)) {
      refuse("norm", x.site(),
             str("this norm takes a vector or a matrix; received ", x->meta(),
                 "; name one or two dims with dim"));
    }
    return flow::norm(x, {.p = options.ord->number(), .dim = dim, .keepdim = keepdim});
  });
}

Tensor cond(const TensorArg& x, const std::optional<MatrixOrd>& p) {
  return ops::named("cond", x.site(), [&]() -> Tensor {
    const bool is_two = !p || (!p->is("fro") && !p->is("nuc") && std::abs(p->number()) == 2);
    if (is_two) {
      const Tensor s = svdvals(x);
      const Tensor high = amax(s, -1), low = amin(s, -1);
      return !p || p->number() > 0 ? div(high, low) : div(low, high);
    }
    return mul(matrix_norm(x, {.ord = *p}), matrix_norm(inv(x), {.ord = *p}));
  });
}

Tensor matrix_rank(const TensorArg& x, const MatrixRankOptions& options) {
  return ops::named("matrix_rank", x.site(), [&]() -> Tensor {
    const ops::Tolerances limits =
        ops::tolerances(x.tensor(), options.atol, options.rtol, "matrix_rank");
    const Tensor s = svdvals(x.tensor().detach());
    if (s.size(-1) == 0) return sum(cast(s, DType::kInt64), -1);
    const Tensor limit = clamp_min(mul(narrow(s, -1, 0, 1), limits.relative), limits.absolute);
    return sum(cast(gt(s, limit), DType::kInt64), -1);
  });
}

Tensor matrix_power(const TensorArg& x, int64_t n) {
  return ops::named("matrix_power", x.site(), [&]() -> Tensor {
    if (x->dim() < 2 || x->size(-1) != x->size(-2)) {
      refuse("matrix_power", x.site(),
             str("takes square matrices (…, n, n); received ", x->meta()));
    }
    if (n == 0) {
      const Tensor one = ops::identity_like(x, x->size(-1), x->size(-1));
      return expand(one, x->shape()).clone();
    }
    Tensor square = n < 0 ? inv(x) : x.tensor();
    Tensor y;
    for (uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
      if (left % 2 == 1) y = y.defined() ? matmul(y, square) : square;
      left /= 2;
      if (left == 0) return y.is_same(x.tensor()) ? y.clone() : y;
      square = matmul(square, square);
    }
  });
}

Lstsq lstsq(const TensorArg& A, const TensorArg& B, const LstsqOptions& options) {
  return ops::named("lstsq", A.site(), [&]() -> Lstsq {
    if (A->dim() < 2 || B->dim() == 0) {
      refuse("lstsq", A.site(),
             str("takes A (…, m, n) and B (…, m, k) or (…, m); received ", A->meta(), ", ",
                 B->meta()));
    }
    const bool are_vectors = holds_vectors(A, B);
    const Tensor b = are_vectors ? unsqueeze(B, -1) : B.tensor();
    const Tensor x = matmul(pinv(A, {.atol = 0, .rtol = options.rcond}), b);
    const bool has_residuals = A->size(-2) > A->size(-1);
    const Tensor residuals =
        has_residuals ? sum(square(sub(matmul(A, x), b)), -2) : new_empty(A, {0});
    return {are_vectors ? squeeze(x, -1) : x, residuals,
            matrix_rank(A, {.atol = 0, .rtol = options.rcond}), svdvals(A)};
  });
}

Tensor tensorinv(const TensorArg& x, int64_t ind) {
  return ops::named("tensorinv", x.site(), [&]() -> Tensor {
    const Shape& shape = x->shape();
    const int64_t cut = std::clamp<int64_t>(ind, 0, shape.size());
    const int64_t rows = product_of(shape, 0, cut);
    const int64_t columns = product_of(shape, cut, shape.size());
    if (ind < 1 || ind > shape.size() || rows != columns) {
      refuse("tensorinv", x.site(),
             str("the product of the first ", ind,
                 " sizes must equal that of the others; received ", x->meta()));
    }
    Shape turned;
    for (int64_t i = 0; i < shape.size(); ++i)
      turned.push_back(shape[(i + ind) % shape.size()]);
    return reshape(inv(reshape(x, {rows, columns})), turned);
  });
}

Tensor tensorsolve(const TensorArg& A, const TensorArg& B, const std::optional<Ints>& dims) {
  return ops::named("tensorsolve", A.site(), [&]() -> Tensor {
    Tensor own = A.tensor();
    if (dims && !dims->empty()) {
      std::vector<int64_t> ends;
      for (int64_t i = 0; i < dims->size(); ++i)
        ends.push_back(i - dims->size());
      own = movedim(A, *dims, ends);
    }
    const Shape& shape = own.shape();
    const int64_t split = std::min(B->dim(), shape.size());
    const int64_t rows = product_of(shape, 0, split);
    const int64_t columns = product_of(shape, split, shape.size());
    if (rows != columns || rows != B->numel()) {
      refuse("tensorsolve", A.site(),
             str("A must have the sizes of B, and then sizes with the same product; received ",
                 own.meta(), ", ", B->meta()));
    }
    Shape solution;
    for (int64_t i = split; i < shape.size(); ++i)
      solution.push_back(shape[i]);
    return reshape(solve(reshape(own, {rows, columns}), reshape(B, {rows})), solution);
  });
}

Tensor multi_dot(const TensorListArg& tensors) {
  return ops::named("multi_dot", tensors.site, [&]() -> Tensor {
    std::vector<Tensor> list = tensors.tensors;
    const size_t count = list.size();
    if (count < 2) refuse("multi_dot", tensors.site, "takes two tensors or more");
    const bool is_row = list.front().dim() == 1, is_column = list.back().dim() == 1;
    if (is_row) list.front() = unsqueeze(list.front(), 0);
    if (is_column) list.back() = unsqueeze(list.back(), 1);
    for (size_t i = 0; i < count; ++i) {
      if (list[i].dim() == 2 && (i == 0 || list[i].size(0) == list[i - 1].size(1))) continue;
      refuse("multi_dot", tensors.site,
             str("tensor ", i,
                 " must be a matrix with as many rows as the one before has columns; "
                 "received ",
                 list[i].meta()));
    }
    // cost[i][j]: the multiplications of the product of matrices i to j; cut[i][j]: where its last
    // product is (the chain of matrices, Godbole 1973).
    std::vector<std::vector<double>> cost(count, std::vector<double>(count, 0));
    std::vector<std::vector<size_t>> cut(count, std::vector<size_t>(count, 0));
    for (size_t length = 1; length < count; ++length) {
      for (size_t i = 0; i + length < count; ++i) {
        const size_t j = i + length;
        cost[i][j] = std::numeric_limits<double>::infinity();
        for (size_t k = i; k < j; ++k) {
          const double own = cost[i][k] + cost[k + 1][j] +
                             static_cast<double>(list[i].size(0)) *
                                 static_cast<double>(list[k].size(1)) *
                                 static_cast<double>(list[j].size(1));
          if (own >= cost[i][j]) continue;
          cost[i][j] = own;
          cut[i][j] = k;
        }
      }
    }
    const auto product = [&](const auto& self, size_t i, size_t j) -> Tensor {
      if (i == j) return list[i];
      const size_t k = cut[i][j];
      return matmul(self(self, i, k), self(self, k + 1, j));
    };
    Tensor y = product(product, 0, count - 1);
    if (is_column) y = squeeze(y, 1);
    return is_row ? squeeze(y, 0) : y;
  });
}

Tensor vecdot(const TensorArg& x, const TensorArg& y, int64_t dim) {
  return ops::named("vecdot", x.site(), [&]() -> Tensor { return sum(mul(x, y), dim); });
}

Tensor cross(const TensorArg& x, const TensorArg& y, int64_t dim) {
  return flow::cross(x, y, {.dim = dim});
}

Tensor diagonal(const TensorArg& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return flow::diagonal(x, offset, dim1, dim2);
}

Tensor vander(const TensorArg& x, std::optional<int64_t> N) {
  return ops::named("vander", x.site(), [&]() -> Tensor {
    if (x->dim() == 0) return vander({reshape(x, {1}), x.site()}, N);
    const int64_t columns = N.value_or(x->size(-1));
    if (x->dtype() == DType::kBool || columns < 1) {
      refuse("vander", x.site(),
             str("takes numbers (…, n) and N > 0; received ", x->meta(), ", N = ", columns));
    }
    const Tensor column = unsqueeze(x, -1);
    Shape factors = x->shape();
    factors.push_back(columns - 1);
    const Tensor one = ones_like(column);
    return cumprod(cat({one, expand(column, factors)}, -1), -1);
  });
}

}  // namespace flow::linalg

namespace flow {

Tensor LinalgMethods::matrix_power(int64_t n, Site site) const {
  return linalg::matrix_power({self(), site}, n);
}

}  // namespace flow
