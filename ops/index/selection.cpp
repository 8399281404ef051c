#include "ops/index/selection.h"

#include <algorithm>
#include <vector>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/index_op.h"
#include "ops/index/scatter_reduce.h"
#include "ops/index/search.h"
#include "ops/index/sort.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
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

void check_index(const char* name, const TensorArg& x, const TensorArg& index) {
  const bool has_positions = index->dtype() == DType::kInt64 || index->dtype() == DType::kInt32;
  if (index->dim() <= 1 && has_positions) return;
  throw InvalidArgument(str("[", name, "] positions must be a vector of integers; received ",
                            index->meta(), "; reshape or cast it"),
                        x.site());
}

// Throws unless `source` has a slice of x for each position along `dim`.
void check_slices(const char* name, const TensorArg& x, int64_t dim, const TensorArg& index,
                  const TensorArg& source) {
  check_index(name, x, index);
  Shape wanted = x->shape();
  wanted[dim] = index->numel();
  if (source->shape() == wanted && source->dtype() == x->dtype()) return;
  throw InvalidArgument(str("[", name, "] takes a source of shape ", wanted,
                            " and the tensor's dtype, with a slice for each position; received ",
                            x->meta(), ", ", index->meta(), ", ", source->meta()),
                        x.site());
}

// A function of the slices of x, for a number x: of its only element as a vector. `source` is a
// number too.
template <class F>
Tensor of_single_slice(const char* name, const TensorArg& x, const TensorArg& index,
                       const TensorArg& source, F function) {
  check_index(name, x, index);
  if (index->numel() != 1 || source->dim() != 0) {
    throw InvalidArgument(
        str("[", name, "] takes one position and a number as source for a tensor without dims; ",
            "received ", index->meta(), ", ", source->meta()),
        x.site());
  }
  const Tensor line = reshape(x, {1});
  const Tensor place = reshape(index, {1});
  const Tensor value = reshape(source, {1});
  const Tensor y = function(TensorArg(line, x.site()), TensorArg(place, index.site()),
                            TensorArg(value, source.site()));
  return reshape({y, x.site()}, {});
}

// Adds alpha times the slices of `source` to those of x at the positions in `index`. A negative
// position is out of range, as in PyTorch.
void add_slices(const char* name, const Tensor& x, int64_t dim, const TensorArg& index,
                const TensorArg& source, double alpha, Site site) {
  const int64_t d = normalize_dim(dim, x.dim(), name);
  check_slices(name, {x, site}, d, index, source);
  const Tensor flat = reshape(index, {index->numel()});
  const Tensor places = cast({flat, index.site()}, DType::kInt64);
  ops::check_alpha(alpha, x, source, name, site);
  // A whole number keeps integers exact.
  const Scalar factor =
      is_floating(source->dtype()) ? Scalar(alpha) : Scalar(static_cast<int64_t>(alpha));
  const Tensor scaled = alpha == 1 ? source.tensor() : mul(source, factor);
  const Tensor added = cast({scaled, source.site()}, x.dtype());
  const ops::IndexPutAttrs attrs{.dims = {d}, .accumulate = true, .counts_from_end = false};
  dispatch_in_place(ops::kIndexPut, {&x, &added, &places}, &attrs, site);
}

}  // namespace

Tensor isin(const TensorArg& x, const TensorArg& test, const IsinOptions& options) {
  return ops::named("isin", x.site(), [&]() -> Tensor {
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

Tensor take(const TensorArg& x, const TensorArg& index) {
  return ops::named("take", x.site(), [&]() -> Tensor {
    if (index->dtype() != DType::kInt64) {
      throw InvalidArgument(
          str("[take] positions must be int64; received ", index->meta(), "; cast them"), x.site());
    }
    const Tensor line = reshape(x, {-1});
    return flow::index({line, x.site()}, IndexArg(index.tensor(), index.site()));
  });
}

Tensor take_along_dim(const TensorArg& x, const TensorArg& indices, std::optional<int64_t> dim) {
  return ops::named("take_along_dim", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (!dim) return gather({reshape(x, {-1}), site}, 0, {reshape(indices, {-1}), site});
    if (indices->dim() != x->dim()) {
      throw InvalidArgument(
          str("[take_along_dim] x and indices must have the same number of dims; received ",
              x->meta(), ", ", indices->meta(), "; reshape one"),
          site);
    }
    const int64_t d = normalize_dim(*dim, x->dim(), "take_along_dim");
    Shape of_x = x->shape();
    Shape of_indices = indices->shape();
    of_x[d] = of_indices[d] = 1;
    Shape shape = broadcast_shapes(of_x, of_indices, "take_along_dim");
    shape[d] = x->shape()[d];
    const Tensor wide = expand(x, shape);
    shape[d] = indices->shape()[d];
    return gather({wide, site}, d, {expand(indices, shape), site});
  });
}

Tensor index_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                 double alpha) {
  return ops::named("index_add", x.site(), [&]() -> Tensor {
    if (x->dim() == 0) {
      return of_single_slice("index_add", x, index, source,
                             [&](const auto& line, const auto& place, const auto& value) {
                               return flow::index_add(line, dim, place, value, alpha);
                             });
    }
    // Autocast leaves operands of several dtypes, which take the widest.
    const bool widens = thread_state().autocast != nullptr && is_floating(x->dtype()) &&
                        is_floating(source->dtype());
    const DType dtype = widens ? promote(x->dtype(), source->dtype()) : x->dtype();
    Tensor y = clone({cast(x, dtype), x.site()});
    const Tensor added = widens ? cast(source, dtype) : source.tensor();
    add_slices("index_add", y, dim, index, {added, source.site()}, alpha, x.site());
    return y;
  });
}

Tensor nonzero_static(const TensorArg& x, const NonzeroStaticOptions& options) {
  return ops::named("nonzero_static", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (options.size < 0) {
      throw InvalidArgument(str("[nonzero_static] size is ", options.size, "; give 0 or more"),
                            site);
    }
    const Shape shape = x->shape();
    const Tensor values = x->detach();
    const TensorOptions layout = ops::whole_like(values, DType::kInt64);
    const int64_t num_found = std::min(options.size, values.numel());
    const Tensor is_zero = reshape({eq({values, site}, 0), site}, {-1});
    const Tensor order = argsort({cast({is_zero, site}, DType::kInt32), site}, {.stable = true});
    const Tensor first = narrow({order, site}, 0, 0, num_found);
    std::vector<Tensor> columns;
    int64_t stride = values.numel();
    for (int64_t d = 0; d < shape.size() && num_found > 0; ++d) {
      stride /= shape[d];
      const Tensor quotient = floor_divide({first, site}, stride);
      columns.push_back(remainder({quotient, site}, shape[d]));
    }
    const Tensor rows = columns.empty() ? zeros({num_found, shape.size()}, layout, site)
                                        : stack({columns, site}, 1);
    const Tensor is_missing = ge({arange(num_found, layout, site), site}, count_nonzero(values));
    Tensor found =
        masked_fill({rows, site}, {unsqueeze({is_missing, site}, 1), site}, options.fill_value);
    if (num_found == options.size) return found;
    const Tensor rest =
        full({options.size - num_found, shape.size()}, options.fill_value, layout, site);
    return cat({{found, rest}, site}, 0);
  });
}

Tensor argwhere(const TensorArg& x) {
  return nonzero(x);
}

Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value) {
  return ops::named("index_fill", x.site(), [&]() -> Tensor {
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
  return ops::named("index_copy", x.site(), [&]() -> Tensor {
    if (x->dim() == 0) {
      return of_single_slice("index_copy", x, index, source,
                             [&](const auto& line, const auto& place, const auto& value) {
                               return flow::index_copy(line, dim, place, value);
                             });
    }
    const int64_t d = normalize_dim(dim, x->dim(), "index_copy");
    check_slices("index_copy", x, d, index, source);
    return scatter(x, d, {spread_index(index, source->shape(), d), x.site()}, source);
  });
}

Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source) {
  return ops::named("masked_scatter", x.site(), [&]() -> Tensor {
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
    if (wide.numel() == 0) return reshape({wide, site}, shape);
    // The k-th selected element takes element k of the source, counted from 1. The others take
    // element 0, which is an extra one, so that a source that is too short gives an index error.
    const Tensor place = mul({cumsum({chosen, site}, 0), site}, {chosen, site});
    const Tensor first = new_zeros(source, {1});
    const Tensor elements = cat({{first, reshape(source, {-1})}, site});
    const Tensor values = index_select({elements, site}, 0, {place, site});
    return reshape({where({chosen, site}, {values, site}, {wide, site}), site}, shape);
  });
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

const Tensor& InPlaceMethods::index_add_(int64_t dim, const TensorArg& index,
                                         const TensorArg& source, double alpha) const {
  return ops::named("index_add_", index.site(), [&]() -> const Tensor& {
    const TensorArg x(self(), index.site());
    if (x->dim() == 0) {
      return ops::write_over("index_add_", x, {&source.tensor()}, [&](const TensorArg& old) {
        return flow::index_add(old, dim, index, source, alpha);
      });
    }
    add_slices("index_add_", x, dim, index, source, alpha, source.site());
    return self();
  });
}

Tensor IndexMethods::take(const TensorArg& index) const {
  return flow::take(TensorArg(self(), index.site()), index);
}

Tensor IndexMethods::take_along_dim(const TensorArg& indices, std::optional<int64_t> dim) const {
  return flow::take_along_dim(TensorArg(self(), indices.site()), indices, dim);
}

Tensor IndexMethods::index_add(int64_t dim, const TensorArg& index, const TensorArg& source,
                               double alpha) const {
  return flow::index_add(TensorArg(self(), index.site()), dim, index, source, alpha);
}

Tensor IndexMethods::nonzero_static(const NonzeroStaticOptions& options, Site site) const {
  return flow::nonzero_static({self(), site}, options);
}

Tensor IndexMethods::argwhere(Site site) const {
  return flow::argwhere(TensorArg(self(), site));
}

const Tensor& InPlaceMethods::masked_scatter_(const TensorArg& mask,
                                              const TensorArg& source) const {
  return ops::write_over(
      "masked_scatter_", {self(), mask.site()}, {&source.tensor()},
      [&](const TensorArg& old) { return flow::masked_scatter(old, mask, source); });
}

const Tensor& InPlaceMethods::index_fill_(int64_t dim, const TensorArg& index,
                                          const Scalar& value) const {
  return ops::write_over("index_fill_", {self(), index.site()}, {}, [&](const TensorArg& old) {
    return flow::index_fill(old, dim, index, value);
  });
}

const Tensor& InPlaceMethods::index_copy_(int64_t dim, const TensorArg& index,
                                          const TensorArg& source) const {
  return ops::write_over(
      "index_copy_", {self(), index.site()}, {&source.tensor()},
      [&](const TensorArg& old) { return flow::index_copy(old, dim, index, source); });
}

const Tensor& InPlaceMethods::put_(const TensorArg& index, const TensorArg& source,
                                   const IndexPutOptions& options) const {
  return ops::write_over(
      "put_", {self(), index.site()}, {&source.tensor()},
      [&](const TensorArg& old) { return flow::put(old, index, source, options); });
}

Tensor put(const TensorArg& x, const TensorArg& index, const TensorArg& source,
           const IndexPutOptions& options) {
  return ops::named("put", x.site(), [&]() -> Tensor {
    if (index->numel() != source->numel()) {
      throw InvalidArgument(str("[put] index has ", index->numel(), " elements, and source ",
                                source->numel(), "; give an element for each position"),
                            x.site());
    }
    const Tensor positions = reshape(index, {-1});
    const Tensor values = reshape(source, {-1});
    const Tensor line = reshape(x, {-1});
    const Tensor written = line.index_put({positions}, values, options);
    return reshape({written, x.site()}, x->shape());
  });
}

Tensor index_reduce(const TensorArg& x, int64_t dim, const TensorArg& index,
                    const TensorArg& source, const std::string& reduce,
                    const ScatterReduceOptions& options) {
  return ops::named("index_reduce", x.site(), [&]() -> Tensor {
    if (x->dim() == 0) {
      return of_single_slice("index_reduce", x, index, source,
                             [&](const auto& line, const auto& place, const auto& value) {
                               return flow::index_reduce(line, dim, place, value, reduce, options);
                             });
    }
    const int64_t d = normalize_dim(dim, x->dim(), "index_reduce");
    check_slices("index_reduce", x, d, index, source);
    const Tensor places = spread_index(index, source->shape(), d);
    return scatter_reduce(x, d, {places, x.site()}, source, reduce, options);
  });
}

}  // namespace flow
