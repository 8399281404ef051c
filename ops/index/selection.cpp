#include "ops/index/selection.h"

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/search.h"
#include "ops/index/sort.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/random/random.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/arrange.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// The index as positions that gather and scatter take: one for each element of `shape`.
Tensor spread_index(const TensorArg& index, const Shape& shape, int64_t dim) {
  Shape along(std::vector<int64_t>(static_cast<size_t>(shape.size()), 1));
  along[dim] = index->numel();
  const Site site = index.site();
  return expand({reshape({cast(index, DType::kInt64), site}, along), site}, shape);
}

Tensor nonfinite_aware(const TensorArg& a, const TensorArg& b,
                       Tensor (*choose)(const TensorArg&, const TensorArg&)) {
  const Site site = a.site();
  const Tensor chosen = choose(a, b);
  if (!is_floating(chosen.dtype())) return chosen;
  const Tensor without_a = where({isnan(a), site}, b, {chosen, site});
  return where({isnan(b), site}, a, {without_a, site});
}

int64_t dim_of_split(const char* name, const TensorArg& x, int64_t dim) {
  if (x->dim() > dim) return dim;
  if (x->dim() == 1 && dim == 1) return 0;
  throw InvalidArgument(str("[", name, "] cuts dim ", dim, "; received ", x->meta()), x.site());
}

// As PyTorch, parts are of one size here.
std::vector<Tensor> split_evenly(const char* name, const TensorArg& x, int64_t sections,
                                 int64_t dim) {
  return ops::named(name, [&] {
    const int64_t d = dim_of_split(name, x, dim);
    if (sections < 1 || x->size(d) % sections != 0) {
      throw InvalidArgument(str("[", name, "] dim ", d, " of ", x->meta(), " does not fall into ",
                                sections, " even parts; use tensor_split"),
                            x.site());
    }
    return tensor_split(x, sections, d);
  });
}

std::vector<Tensor> split_before(const char* name, const TensorArg& x,
                                 const std::vector<int64_t>& indices, int64_t dim) {
  return ops::named(name, [&] { return tensor_split(x, indices, dim_of_split(name, x, dim)); });
}

void check_index(const char* name, const TensorArg& x, const TensorArg& index) {
  const bool has_positions = index->dtype() == DType::kInt64 || index->dtype() == DType::kInt32;
  if (index->dim() <= 1 && has_positions) return;
  throw InvalidArgument(str("[", name, "] positions are a vector of integers; received ",
                            index->meta(), "; reshape or cast it"),
                        x.site());
}

}  // namespace

Tensor isin(const TensorArg& x, const TensorArg& test, const IsinOptions& options) {
  return ops::named("isin", [&]() -> Tensor {
    const Site site = x.site();
    if (test->numel() == 0) {
      return full_like(x, options.invert, {.dtype = DType::kBool});
    }
    const DType dtype = ops::result_dtype(x, test);
    const DType compared = dtype == DType::kBool ? DType::kUInt8 : dtype;
    const Tensor values = cast(x, compared);
    const Tensor flat = reshape({cast(test, compared), site}, {-1});
    const Tensor sorted = sort({flat, site}).values;
    const Tensor rows = reshape({values, site}, {-1});
    const Tensor place = searchsorted({sorted, site}, {rows, site});
    const Tensor inside = clamp({place, site}, {.max = flat.numel() - 1});
    const Tensor found = index_select({sorted, site}, 0, {inside, site});
    const Tensor is_in =
        options.invert ? ne({found, site}, {rows, site}) : eq({found, site}, {rows, site});
    return reshape({is_in, site}, x->shape());
  });
}

Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value) {
  return ops::named("index_fill", [&]() -> Tensor {
    check_index("index_fill", x, index);
    const Site site = x.site();
    if (x->dim() == 0) {
      return reshape({index_fill({reshape(x, {1}), site}, dim, index, value), site}, {});
    }
    const int64_t d = normalize_dim(dim, x->dim(), "index_fill");
    Shape shape = x->shape();
    shape[d] = index->numel();
    // Negative positions count from the end.
    const Tensor places = cast(index, DType::kInt64);
    const Tensor positive = where({lt({places, site}, 0), site},
                                  {add({places, site}, x->size(d)), site}, {places, site});
    return scatter(x, d, {spread_index({positive, site}, shape, d), site}, value);
  });
}

Tensor index_copy(const TensorArg& x, int64_t dim, const TensorArg& index,
                  const TensorArg& source) {
  return ops::named("index_copy", [&]() -> Tensor {
    check_index("index_copy", x, index);
    const int64_t d = normalize_dim(dim, x->dim(), "index_copy");
    Shape shape = x->shape();
    if (!shape.empty()) shape[d] = index->numel();
    if (x->dim() == 0 || source->shape() != shape || source->dtype() != x->dtype()) {
      throw InvalidArgument(
          str("[index_copy] takes a source of shape ", shape, " and the tensor's dtype; received ",
              x->meta(), ", ", source->meta()),
          x.site());
    }
    return scatter(x, d, {spread_index(index, shape, d), x.site()}, source);
  });
}

Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source) {
  return ops::named("masked_scatter", [&]() -> Tensor {
    const Site site = x.site();
    if (mask->dtype() != DType::kBool || source->dtype() != x->dtype()) {
      throw InvalidArgument(
          str("[masked_scatter] takes a bool mask and a source of the tensor's ",
              "dtype; received ", x->meta(), ", ", mask->meta(), ", ", source->meta()),
          site);
    }
    const Shape shape = broadcast_shapes(x->shape(), mask->shape(), "masked_scatter");
    const Tensor wide = reshape({expand(x, shape), site}, {-1});
    const Tensor chosen = reshape({expand(mask, shape), site}, {-1});
    if (source->numel() == 0 || wide.numel() == 0) return reshape({wide, site}, shape);
    // The k-th chosen element takes the k-th of the source.
    const Tensor rank = sub({cumsum({chosen, site}, 0), site}, 1);
    const Tensor place = clamp({rank, site}, {.min = 0, .max = source->numel() - 1});
    const Tensor values = index_select({reshape(source, {-1}), site}, 0, {place, site});
    return reshape({where({chosen, site}, {values, site}, {wide, site}), site}, shape);
  });
}

Tensor fmax(const TensorArg& a, const TensorArg& b) {
  return ops::named("fmax", [&] { return nonfinite_aware(a, b, maximum); });
}

Tensor fmin(const TensorArg& a, const TensorArg& b) {
  return ops::named("fmin", [&] { return nonfinite_aware(a, b, minimum); });
}

Tensor multinomial(const TensorArg& p, int64_t num_samples, const MultinomialOptions& options) {
  return ops::named("multinomial", [&]() -> Tensor {
    const Site site = p.site();
    if ((p->dim() != 1 && p->dim() != 2) || !is_floating(p->dtype()) || num_samples < 1 ||
        p->size(-1) == 0 || (!options.replacement && num_samples > p->size(-1))) {
      throw InvalidArgument(str("[multinomial] takes floating weights (C) or (N, C) and 1 to C "
                                "samples, or more with ",
                                "replacement; received ", p->meta(), ", ", num_samples),
                            site);
    }
    const Tensor weights = p->detach();
    if (!options.replacement) {
      // The first arrivals of exponential clocks with these rates (Efraimidis and Spirakis 2006).
      const Tensor draws = clamp({rand_like({weights, site}), site}, {.min = 1.17549435e-38});
      const Tensor waiting = neg({log({draws, site}), site});
      return topk({div({weights, site}, waiting), site}, num_samples, {.dim = -1}).indices;
    }
    const Tensor sums = cumsum({weights, site}, -1);
    const Tensor total = narrow({sums, site}, -1, weights.size(-1) - 1, 1);
    Shape shape = weights.shape();
    shape[shape.size() - 1] = num_samples;
    TensorOptions layout = options_like(weights);
    if (!layout.sbp.empty()) layout.sbp = NdSbp::broadcast(layout.sbp.size());
    const Tensor level = mul({rand(shape, layout, site), site}, total);
    const Tensor place = searchsorted({sums, site}, {level, site}, {.right = true});
    return clamp({place, site}, {.max = weights.size(-1) - 1});
  });
}

std::vector<Tensor> hsplit(const TensorArg& x, int64_t sections) {
  return split_evenly("hsplit", x, sections, 1);
}

std::vector<Tensor> hsplit(const TensorArg& x, const std::vector<int64_t>& indices) {
  return split_before("hsplit", x, indices, 1);
}

std::vector<Tensor> vsplit(const TensorArg& x, int64_t sections) {
  if (x->dim() < 2) dim_of_split("vsplit", x, 2);
  return split_evenly("vsplit", x, sections, 0);
}

std::vector<Tensor> vsplit(const TensorArg& x, const std::vector<int64_t>& indices) {
  if (x->dim() < 2) dim_of_split("vsplit", x, 2);
  return split_before("vsplit", x, indices, 0);
}

std::vector<Tensor> dsplit(const TensorArg& x, int64_t sections) {
  return split_evenly("dsplit", x, sections, 2);
}

std::vector<Tensor> dsplit(const TensorArg& x, const std::vector<int64_t>& indices) {
  return split_before("dsplit", x, indices, 2);
}

Tensor block_diag(const TensorListArg& tensors) {
  return ops::named("block_diag", [&]() -> Tensor {
    const Site site = tensors.site;
    int64_t columns = 0;
    std::vector<Tensor> blocks;
    for (const Tensor& x : tensors.tensors) {
      if (x.dim() > 2) {
        throw InvalidArgument(str("[block_diag] takes matrices; received ", x.meta()), site);
      }
      blocks.push_back(atleast_2d({x, site}));
      columns += blocks.back().size(1);
    }
    int64_t before = 0;
    for (Tensor& block : blocks) {
      const int64_t own = block.size(1);
      block = pad({block, site}, {before, columns - before - own});
      before += own;
    }
    return cat({blocks, site}, 0);
  });
}

Tensor PointwiseMethods::fmax(const TensorArg& other) const {
  return flow::fmax(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::fmin(const TensorArg& other) const {
  return flow::fmin(TensorArg(self(), other.site()), other);
}

Tensor IndexMethods::multinomial(int64_t num_samples, const MultinomialOptions& options,
                                 Site site) const {
  return flow::multinomial(TensorArg(self(), site), num_samples, options);
}

Tensor IndexMethods::index_fill(int64_t dim, const TensorArg& index, const Scalar& value) const {
  return flow::index_fill(TensorArg(self(), index.site()), dim, index, value);
}

Tensor IndexMethods::index_copy(int64_t dim, const TensorArg& index,
                                const TensorArg& source) const {
  return flow::index_copy(TensorArg(self(), index.site()), dim, index, source);
}

Tensor IndexMethods::masked_scatter(const TensorArg& mask, const TensorArg& source) const {
  return flow::masked_scatter(TensorArg(self(), mask.site()), mask, source);
}

std::vector<Tensor> ShapeMethods::hsplit(int64_t sections, Site site) const {
  return flow::hsplit(TensorArg(self(), site), sections);
}

std::vector<Tensor> ShapeMethods::hsplit(const std::vector<int64_t>& indices, Site site) const {
  return flow::hsplit(TensorArg(self(), site), indices);
}

std::vector<Tensor> ShapeMethods::vsplit(int64_t sections, Site site) const {
  return flow::vsplit(TensorArg(self(), site), sections);
}

std::vector<Tensor> ShapeMethods::vsplit(const std::vector<int64_t>& indices, Site site) const {
  return flow::vsplit(TensorArg(self(), site), indices);
}

std::vector<Tensor> ShapeMethods::dsplit(int64_t sections, Site site) const {
  return flow::dsplit(TensorArg(self(), site), sections);
}

std::vector<Tensor> ShapeMethods::dsplit(const std::vector<int64_t>& indices, Site site) const {
  return flow::dsplit(TensorArg(self(), site), indices);
}

}  // namespace flow
