#include "ops/linear/vector_algebra.h"

#include <algorithm>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/autocast.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/index.h"
#include "ops/linear/distance_op.h"
#include "ops/linear/einsum.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/arrange.h"
#include "ops/shape/concat.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// Positions that the caller gives, in the layout of x, whole on every rank.
Tensor positions(const Tensor& x, const std::vector<int64_t>& places, Site site) {
  const TensorOptions layout = ops::whole_like(x, DType::kInt64);
  return tensor(places, {static_cast<int64_t>(places.size())}, layout, site);
}

// The next selection of increasing positions below n; with replacement, positions may repeat.
bool next_choice(std::vector<int64_t>& choice, int64_t n, bool with_replacement) {
  const auto r = static_cast<int64_t>(choice.size());
  for (int64_t i = r - 1; i >= 0; --i) {
    const int64_t highest = with_replacement ? n - 1 : n - r + i;
    if (choice[static_cast<size_t>(i)] == highest) continue;
    int64_t next = ++choice[static_cast<size_t>(i)];
    for (int64_t j = i + 1; j < r; ++j) {
      if (!with_replacement) ++next;
      choice[static_cast<size_t>(j)] = next;
    }
    return true;
  }
  return false;
}

}  // namespace

Tensor cross(const TensorArg& a, const TensorArg& b, const CrossOptions& options) {
  return ops::named("cross", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    const Shape shape = broadcast_shapes(a->shape(), b->shape(), "cross");
    int64_t dim = -1;
    if (options.dim) {
      dim = normalize_dim(*options.dim, shape.size(), "cross");
    } else {
      for (int64_t i = 0; dim < 0 && i < shape.size(); ++i) {
        if (shape[i] == 3) dim = i;
      }
    }
    const auto has_three = [&](const Tensor& v) {
      const int64_t own = dim - (shape.size() - v.dim());
      return own >= 0 && v.size(own) == 3;
    };
    if (dim < 0 || !has_three(a) || !has_three(b)) {
      throw InvalidArgument(str("[cross] needs a dim of size 3; received ", a->meta(), ", ",
                                b->meta(), "; name one with dim"),
                            site);
    }
    const Tensor x = expand(a, shape);
    const Tensor y = expand(b, shape);
    const auto turned = [&](const Tensor& v, int64_t by) { return roll({v, site}, by, dim); };
    const Tensor forward = mul({turned(x, -1), site}, turned(y, -2));
    return sub({forward, site}, mul({turned(x, -2), site}, turned(y, -1)));
  });
}

Tensor outer(const TensorArg& a, const TensorArg& b) {
  return ops::named("outer", a.site(), [&]() -> Tensor {
    if (a->dim() != 1 || b->dim() != 1) {
      throw InvalidArgument(
          str("[outer] takes two vectors; received ", a->meta(), ", ", b->meta(), "; flatten them"),
          a.site());
    }
    return mul({unsqueeze(a, 1), a.site()}, b);
  });
}

Tensor inner(const TensorArg& a, const TensorArg& b) {
  return ops::named("inner", a.site(), [&]() -> Tensor {
    if (a->dim() == 0 || b->dim() == 0) return mul(a, b);
    if (a->size(-1) != b->size(-1)) {
      throw InvalidArgument(str("[inner] the last dims must have one size; received ", a->meta(),
                                ", ", b->meta(), "; transpose or slice one"),
                            a.site());
    }
    return tensordot(a, b, Ints(-1), Ints(-1));
  });
}

Tensor dist(const TensorArg& a, const TensorArg& b, double p) {
  return ops::named("dist", a.site(), [&]() -> Tensor {
    const Tensor left = ops::autocast(a, AutocastRule::kFloat32);
    const Tensor right = ops::autocast(b, AutocastRule::kFloat32);
    return norm({sub({left, a.site()}, right), a.site()}, {.p = p});
  });
}

Tensor kron(const TensorArg& a, const TensorArg& b) {
  return ops::named("kron", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    const int64_t dims = std::max(a->dim(), b->dim());
    Shape left;
    Shape right;
    Shape out;
    for (int64_t i = 0; i < dims; ++i) {
      const int64_t at_a = i - (dims - a->dim());
      const int64_t at_b = i - (dims - b->dim());
      const int64_t size_a = at_a < 0 ? 1 : a->shape()[at_a];
      const int64_t size_b = at_b < 0 ? 1 : b->shape()[at_b];
      left.push_back(size_a);
      left.push_back(1);
      right.push_back(1);
      right.push_back(size_b);
      out.push_back(size_a * size_b);
    }
    return reshape({mul({reshape(a, left), site}, reshape(b, right)), site}, out);
  });
}

namespace {

// The norm of each row of x; 0 for rows without elements, also where the norm is a maximum.
Tensor length(const TensorArg& x, double p) {
  return x->size(-1) == 0 ? sum(x, -1) : norm(x, {.p = p, .dim = -1});
}

}  // namespace

namespace {

// The kernels are for CPUs and Euclidean distances of rows with elements.
bool has_kernel(const Tensor& a, const Tensor& b, double p) {
  return p == 2 && a.device() == DeviceType::kCpu && is_floating(a.dtype()) &&
         a.dtype() == b.dtype() && a.size(-1) > 0;
}

// Rows with the leading dims that a and b broadcast to.
Tensor with_leading(const Tensor& x, const Shape& leading) {
  Shape shape = leading;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return expand(x, shape);
}

Shape leading_shape(const Tensor& x) {
  Shape shape;
  for (int64_t i = 0; i + 2 < x.dim(); ++i)
    shape.push_back(x.size(i));
  return shape;
}

}  // namespace

Tensor cdist(const TensorArg& a, const TensorArg& b, const CdistOptions& options) {
  return ops::named("cdist", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    if (a->dim() < 2 || b->dim() < 2 || a->size(-1) != b->size(-1) || !(options.p >= 0)) {
      throw InvalidArgument(str("[cdist] takes rows (…, P, M) and (…, R, M) and p >= 0; received ",
                                a->meta(), ", ", b->meta(), ", p = ", options.p),
                            site);
    }
    const Tensor left = ops::autocast(a, ops::kCdist.autocast);
    const Tensor right = ops::autocast(b, ops::kCdist.autocast);
    if (has_kernel(left, right, options.p)) {
      const Shape leading = broadcast_shapes(leading_shape(left), leading_shape(right), "cdist");
      const Tensor wide_left = with_leading(left, leading);
      const Tensor wide_right = with_leading(right, leading);
      return dispatch(ops::kCdist, {&wide_left, &wide_right}, site);
    }
    const Tensor difference = sub({unsqueeze(a, -2), site}, unsqueeze(b, -3));
    return length({difference, site}, options.p);
  });
}

Tensor pdist(const TensorArg& x, double p) {
  return ops::named("pdist", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() != 2 || !(p >= 0)) {
      throw InvalidArgument(
          str("[pdist] takes rows (N, M) and p >= 0; received ", x->meta(), ", p = ", p), site);
    }
    std::vector<int64_t> first;
    std::vector<int64_t> second;
    for (int64_t i = 0; i < x->size(0); ++i) {
      for (int64_t j = i + 1; j < x->size(0); ++j) {
        first.push_back(i);
        second.push_back(j);
      }
    }
    const auto rows = [&](const std::vector<int64_t>& places) {
      return index_select(x, 0, {positions(x, places, site), site});
    };
    return length({sub({rows(first), site}, rows(second)), site}, p);
  });
}

Tensor cov(const TensorArg& x, const CovOptions& options) {
  return ops::named("cov", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() > 2 || x->dtype() == DType::kBool) {
      throw InvalidArgument(
          str("[cov] takes (V, N) for V variables, or a vector for one; received ", x->meta(),
              "; reshape it"),
          site);
    }
    if (options.fweights.defined() && !is_integral(options.fweights.dtype())) {
      throw InvalidArgument(str("[cov] fweights count how often a column occurs; received ",
                                options.fweights.meta(), "; give integers, or use aweights"),
                            site);
    }
    Tensor rows = x->dim() < 2 ? reshape(x, {1, -1}) : x.tensor();
    const int64_t n = rows.size(1);
    rows = ops::as_floating({rows, site});
    if (options.aweights.defined() && is_floating(options.aweights.dtype()))
      rows = cast({rows, site}, promote(rows.dtype(), options.aweights.dtype()));
    Tensor weights;
    for (const Tensor& own : {options.fweights, options.aweights}) {
      if (!own.defined()) continue;
      if (own.dim() > 1 || own.numel() != n) {
        throw InvalidArgument(
            str("[cov] weights must be a vector of ", n, " elements; received ", own.meta()), site);
      }
      const Tensor factor = cast({own, site}, rows.dtype());
      weights = weights.defined() ? mul({weights, site}, factor) : factor;
    }
    const auto correction = static_cast<double>(options.correction);
    if (!weights.defined()) {
      const Tensor centred = sub({rows, site}, mean({rows, site}, 1, {.keepdim = true}));
      const Tensor products = matmul({centred, site}, {transpose({centred, site}, 0, 1), site});
      const Tensor y = div({products, site}, std::max(0.0, static_cast<double>(n) - correction));
      return rows.size(0) == 1 ? reshape({y, site}, {}) : y;
    }
    const Tensor total = sum({weights, site});
    const Tensor means =
        div({sum({mul({rows, site}, weights), site}, 1, {.keepdim = true}), site}, total);
    const Tensor centred = sub({rows, site}, means);
    const Tensor weighted = mul({centred, site}, weights);
    Tensor freedom = sub({total, site}, correction);
    if (options.aweights.defined() && options.correction != 0) {
      const Tensor squares = mul({weights, site}, cast({options.aweights, site}, rows.dtype()));
      const Tensor lost = div({mul({sum({squares, site}), site}, correction), site}, total);
      freedom = sub({total, site}, lost);
    }
    const Tensor products = matmul({weighted, site}, {transpose({centred, site}, 0, 1), site});
    const Tensor y = div({products, site}, clamp({freedom, site}, {.min = 0}));
    return rows.size(0) == 1 ? reshape({y, site}, {}) : y;
  });
}

Tensor corrcoef(const TensorArg& x) {
  return ops::named("corrcoef", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    const Tensor c = cov(x);
    if (c.dim() == 0) return div({c, site}, c);
    const Tensor deviation = sqrt({flow::diagonal({c, site}), site});
    const Tensor of_row = div({c, site}, unsqueeze({deviation, site}, 1));
    const Tensor y = div({of_row, site}, unsqueeze({deviation, site}, 0));
    return clamp({y, site}, {.min = -1, .max = 1});
  });
}

Tensor renorm(const TensorArg& x, double p, int64_t dim, double maxnorm) {
  return ops::named("renorm", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() < 2 || !(p > 0) || !(maxnorm >= 0)) {
      throw InvalidArgument(
          str("[renorm] takes at least two dims, p > 0 and maxnorm >= 0; received ", x->meta(),
              ", p = ", p, ", maxnorm = ", maxnorm),
          site);
    }
    const int64_t d = normalize_dim(dim, x->dim(), "renorm");
    std::vector<int64_t> others;
    for (int64_t i = 0; i < x->dim(); ++i) {
      if (i != d) others.push_back(i);
    }
    const Tensor length = norm(x, {.p = p, .dim = others, .keepdim = true});
    const Tensor scale = maxnorm / TensorArg(add({length, site}, 1e-7), site);
    return mul(x, {where({gt({length, site}, maxnorm), site}, {scale, site}, 1), site});
  });
}

namespace {

// The areas between neighbours along dim d of y: the means of the two times their distance. Sums of
// narrow integers would overflow, so they are added as floating numbers.
Tensor areas(const TensorArg& y, int64_t d, const TrapezoidOptions& options) {
  const Site site = y.site();
  const int64_t n = y->size(d);
  const Tensor own = ops::as_floating(y);
  const Tensor pairs =
      add({narrow({own, site}, d, 1, n - 1), site}, narrow({own, site}, d, 0, n - 1));
  if (!options.x.defined()) return mul({pairs, site}, options.dx / 2);
  const int64_t along = options.x.dim() == 1 ? 0 : options.dim;
  if (options.x.dim() == 0 || options.x.size(along) != n) {
    throw InvalidArgument(
        str("[trapezoid] x needs one position for each of the ", n, " values along dim ",
            options.dim, "; received ", options.x.meta(), " for ", y->meta()),
        site);
  }
  Tensor widths = diff({options.x, site}, {.dim = along});
  if (options.x.dim() == 1) {
    Shape shape(std::vector<int64_t>(static_cast<size_t>(y->dim()), 1));
    shape[d] = widths.numel();
    widths = reshape({widths, site}, shape);
  }
  const Tensor result = mul({mul({pairs, site}, widths), site}, 0.5);
  const bool has_dtype_of_x = !is_floating(y->dtype()) && is_floating(options.x.dtype());
  return has_dtype_of_x ? cast({result, site}, options.x.dtype()) : result;
}

}  // namespace

Tensor trapezoid(const TensorArg& y, const TrapezoidOptions& options) {
  return ops::named("trapezoid", y.site(), [&]() -> Tensor {
    const int64_t d = normalize_dim(options.dim, y->dim(), "trapezoid");
    if (y->size(d) == 0) return sum(y, d);
    return sum({areas(y, d, options), y.site()}, d);
  });
}

Tensor cumulative_trapezoid(const TensorArg& y, const TrapezoidOptions& options) {
  return ops::named("cumulative_trapezoid", y.site(), [&]() -> Tensor {
    const int64_t d = normalize_dim(options.dim, y->dim(), "cumulative_trapezoid");
    if (y->size(d) == 0) return y;
    return cumsum({areas(y, d, options), y.site()}, d);
  });
}

Tensor cartesian_prod(const TensorListArg& tensors) {
  return ops::named("cartesian_prod", tensors.site, [&]() -> Tensor {
    for (const Tensor& vector : tensors.tensors) {
      if (vector.dim() != 1) {
        throw InvalidArgument(str("[cartesian_prod] takes vectors; received ", vector.meta()),
                              tensors.site);
      }
    }
    if (tensors.tensors.size() == 1) return tensors.tensors[0];
    std::vector<Tensor> columns;
    for (const Tensor& grid : meshgrid(tensors))
      columns.push_back(reshape({grid, tensors.site}, {-1}));
    return stack({columns, tensors.site}, 1);
  });
}

Tensor combinations(const TensorArg& x, int64_t r, bool with_replacement) {
  return ops::named("combinations", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() != 1 || r < 0) {
      throw InvalidArgument(
          str("[combinations] takes a vector and r >= 0; received ", x->meta(), ", r = ", r), site);
    }
    if (r == 0) return new_empty(x, {0});
    const int64_t n = x->numel();
    std::vector<int64_t> places;
    if (with_replacement ? n > 0 : n >= r) {
      std::vector<int64_t> choice(static_cast<size_t>(r), 0);
      for (int64_t i = 0; i < r && !with_replacement; ++i)
        choice[static_cast<size_t>(i)] = i;
      do {
        places.insert(places.end(), choice.begin(), choice.end());
      } while (next_choice(choice, n, with_replacement));
    }
    const Tensor chosen = index_select(x, 0, {positions(x, places, site), site});
    return reshape({chosen, site}, {static_cast<int64_t>(places.size()) / r, r});
  });
}

Tensor vander(const TensorArg& x, const VanderOptions& options) {
  return ops::named("vander", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    const int64_t count = options.N.value_or(x->numel());
    if (x->dim() != 1 || count < 0) {
      throw InvalidArgument(
          str("[vander] takes a vector and N >= 0; received ", x->meta(), ", N = ", count), site);
    }
    const DType dtype = is_floating(x->dtype()) ? x->dtype() : DType::kInt64;
    const Tensor column = unsqueeze({cast(x, dtype), site}, 1);
    if (count == 0) return new_empty({column, site}, {x->numel(), 0});
    const Tensor factors = expand({column, site}, {x->numel(), count - 1});
    const Tensor powers = cumprod(cat({ones_like(column), factors}, 1), 1);
    return options.increasing ? powers : flip(powers, {1});
  });
}

namespace {

// bilinear, with its operands as they are.
Tensor bilinear_of(const TensorArg& x1, const TensorArg& x2, const TensorArg& weight,
                   const TensorArg& bias) {
  const Site site = x1.site();
  if (weight->dim() != 3 || x1->dim() != x2->dim() || x1->dim() < 1 ||
      x1->size(-1) != weight->size(1) || x2->size(-1) != weight->size(2)) {
    throw InvalidArgument(
        str("[bilinear] takes (…, in1), (…, in2) and a weight (out, in1, in2); received ",
            x1->meta(), ", ", x2->meta(), ", ", weight->meta()),
        site);
  }
  // (…, 1, in1) x (in1, out in2), then times x2 for each output.
  const int64_t out = weight->size(0);
  const Tensor flat =
      reshape({permute(weight, {1, 0, 2}), site}, {weight->size(1), out * weight->size(2)});
  Shape shape = x1->shape();
  shape[shape.size() - 1] = out;
  shape.push_back(weight->size(2));
  const Tensor left = reshape({matmul(x1, {flat, site}), site}, shape);
  const Tensor products = mul({left, site}, unsqueeze(x2, -2));
  const Tensor y = sum({products, site}, -1, {.dtype = products.dtype()});
  return bias.defined() ? add({y, site}, bias) : y;
}

}  // namespace

Tensor bilinear(const TensorArg& x1, const TensorArg& x2, const TensorArg& weight,
                const TensorArg& bias) {
  return ops::named("bilinear", x1.site(),
                    [&] { return ops::in_widest_dtype(bilinear_of, x1, x2, weight, bias); });
}

Tensor ReduceMethods::inner(const TensorArg& other) const {
  return flow::inner(TensorArg(self(), other.site()), other);
}

Tensor ReduceMethods::dist(const TensorArg& other, double p) const {
  return flow::dist(TensorArg(self(), other.site()), other, p);
}

Tensor ReduceMethods::cross(const TensorArg& other, const CrossOptions& options) const {
  return flow::cross(TensorArg(self(), other.site()), other, options);
}

Tensor ReduceMethods::kron(const TensorArg& other) const {
  return flow::kron(TensorArg(self(), other.site()), other);
}

Tensor ReduceMethods::cov(Site site) const {
  return flow::cov(TensorArg(self(), site));
}

Tensor ReduceMethods::cov(const CovOptions& options, Site site) const {
  return flow::cov(TensorArg(self(), site), options);
}

Tensor ReduceMethods::corrcoef(Site site) const {
  return flow::corrcoef(TensorArg(self(), site));
}

Tensor ReduceMethods::renorm(double p, int64_t dim, double maxnorm, Site site) const {
  return flow::renorm(TensorArg(self(), site), p, dim, maxnorm);
}

Tensor ReduceMethods::outer(const TensorArg& other) const {
  return flow::outer(TensorArg(self(), other.site()), other);
}

const Tensor& InPlaceMethods::renorm_(double p, int64_t dim, double maxnorm, Site site) const {
  return ops::write_over("renorm_", {self(), site}, {},
                         [&](const TensorArg& old) { return flow::renorm(old, p, dim, maxnorm); });
}

}  // namespace flow
