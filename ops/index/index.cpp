#include "ops/index/index.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/creation/copy.h"
#include "ops/creation/copy_op.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/where.h"
#include "ops/index/index_op.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

int64_t picked_position(const Shape& dims) {
  for (int64_t i = 1; i < dims.size(); ++i) {
    if (dims[i] != dims[i - 1] + 1) return 0;
  }
  return dims[0];
}

Shape indexed_shape(const Shape& x, const Shape& dims, const Shape& picked) {
  Shape shape;
  const int64_t position = picked_position(dims);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) shape.push_back(x[i]);
  }
  for (int64_t i = 0; i < picked.size(); ++i)
    shape.insert(position + i, picked[i]);
  return shape;
}

namespace {

void check_indices(const OpContext& ctx, int first, const Shape& dims) {
  ctx.check(ctx.num_inputs() - first == static_cast<int>(dims.size()),
            "one index tensor is needed for each of dims ", dims);
  for (int i = first; i < ctx.num_inputs(); ++i) {
    ctx.check(ctx.input(i).dtype == DType::kInt64, "indices must be integers; cast them to int64");
    ctx.check(ctx.input(i).shape == ctx.input(first).shape, "index tensors differ in shape");
  }
}

void infer_index(InferContext& ctx) {
  const Shape& dims = ctx.attrs<IndexAttrs>().dims;
  check_indices(ctx, 1, dims);
  ctx.add_output(indexed_shape(ctx.input(0).shape, dims, ctx.input(1).shape), ctx.input(0).dtype);
}

void infer_index_put(InferContext& ctx) {
  const Shape& dims = ctx.attrs<IndexPutAttrs>().dims;
  check_indices(ctx, 2, dims);
  const Shape expected = indexed_shape(ctx.input(0).shape, dims, ctx.input(2).shape);
  ctx.check(ctx.input(1).shape == expected && ctx.input(1).dtype == ctx.input(0).dtype,
            "values must be of shape ", expected, " and the tensor's dtype");
  ctx.add_output_like(0);
}

void infer_unindex(InferContext& ctx) {
  const auto& attrs = ctx.attrs<UnindexAttrs>();
  check_indices(ctx, 1, attrs.dims);
  ctx.check(ctx.input(0).shape == indexed_shape(attrs.shape, attrs.dims, ctx.input(1).shape),
            "the input does not have the shape that indexing ", attrs.shape, " gives");
  ctx.add_output(attrs.shape, ctx.input(0).dtype);
}

// `leading` for the tensors in front of the index tensors, which all get `index`.
std::vector<Sbp> inputs_of(const SbpContext& ctx, std::vector<Sbp> leading, Sbp index) {
  leading.resize(static_cast<size_t>(ctx.num_inputs()), index);
  return leading;
}

// The dims of x that are not indexed, and their positions in x[…].
struct KeptDim {
  int64_t in_x;
  int64_t in_result;
};

std::vector<KeptDim> kept_dims(int64_t ndim, const Shape& dims, int64_t num_picked) {
  std::vector<KeptDim> kept;
  const int64_t position = picked_position(dims);
  for (int64_t i = 0; i < ndim; ++i) {
    if (std::find(dims.begin(), dims.end(), i) != dims.end()) continue;
    const auto rank = static_cast<int64_t>(kept.size());
    kept.push_back({i, rank < position ? rank : rank + num_picked});
  }
  return kept;
}

// Kept dims stay split. Entries of the index tensors are independent of each other. A rank that
// holds part of an indexed dim gives the elements it has and zeros elsewhere, which is a partial
// sum.
void sbp_index(SbpContext& ctx) {
  const Shape& dims = ctx.attrs<IndexAttrs>().dims;
  const int64_t num_picked = ctx.input(1).dim();
  const auto add = [&](Sbp x, Sbp index, Sbp y) { ctx.add(inputs_of(ctx, {x}, index), {y}); };
  for (const KeptDim& kept : kept_dims(ctx.input(0).dim(), dims, num_picked))
    add(sbp::split(kept.in_x), sbp::broadcast, sbp::split(kept.in_result));
  for (int64_t i = 0; i < num_picked; ++i)
    add(sbp::broadcast, sbp::split(i), sbp::split(picked_position(dims) + i));
  for (const int64_t dim : dims)
    ctx.add_positional(inputs_of(ctx, {sbp::split(dim)}, sbp::broadcast), {sbp::partial_sum});
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    add(partial, sbp::broadcast, partial);
}

// A rank that holds part of an indexed dim writes the elements in its part. Values that are split
// among ranks may be added to a partial x.
void sbp_index_put(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<IndexPutAttrs>();
  const int64_t num_picked = ctx.input(2).dim();
  const auto add = [&](Sbp x, Sbp values, Sbp index, Sbp y) {
    ctx.add(inputs_of(ctx, {x, values}, index), {y});
  };
  for (const KeptDim& kept : kept_dims(ctx.input(0).dim(), attrs.dims, num_picked)) {
    const Sbp split = sbp::split(kept.in_x);
    add(split, sbp::split(kept.in_result), sbp::broadcast, split);
  }
  for (const int64_t dim : attrs.dims) {
    const Sbp split = sbp::split(dim);
    ctx.add_positional(inputs_of(ctx, {split, sbp::broadcast}, sbp::broadcast), {split});
  }
  add(sbp::partial_sum, sbp::partial_sum, sbp::broadcast, sbp::partial_sum);
  if (!attrs.accumulate) {
    add(sbp::partial_max, sbp::partial_max, sbp::broadcast, sbp::partial_max);
    add(sbp::partial_min, sbp::partial_min, sbp::broadcast, sbp::partial_min);
    return;
  }
  for (int64_t i = 0; i < num_picked; ++i) {
    add(sbp::partial_sum, sbp::split(picked_position(attrs.dims) + i), sbp::split(i),
        sbp::partial_sum);
  }
}

// The dual of index.
void sbp_unindex(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<UnindexAttrs>();
  const int64_t num_picked = ctx.input(1).dim();
  const auto add = [&](Sbp y, Sbp index, Sbp x) { ctx.add(inputs_of(ctx, {y}, index), {x}); };
  for (const KeptDim& kept : kept_dims(attrs.shape.size(), attrs.dims, num_picked))
    add(sbp::split(kept.in_result), sbp::broadcast, sbp::split(kept.in_x));
  for (int64_t i = 0; i < num_picked; ++i)
    add(sbp::split(picked_position(attrs.dims) + i), sbp::split(i), sbp::partial_sum);
  for (const int64_t dim : attrs.dims) {
    ctx.add_positional(inputs_of(ctx, {sbp::broadcast}, sbp::broadcast), {sbp::split(dim)});
  }
  add(sbp::partial_sum, sbp::broadcast, sbp::partial_sum);
}

// The leading tensors and the index tensors, as inputs of a call.
std::vector<const Tensor*> pointers_to(std::initializer_list<const Tensor*> leading,
                                       const std::vector<Tensor>& indices) {
  std::vector<const Tensor*> inputs(leading);
  for (const Tensor& index : indices)
    inputs.push_back(&index);
  return inputs;
}

Tensor pick(const TensorArg& x, const Shape& dims, const std::vector<Tensor>& indices,
            bool counts_from_end = true) {
  const IndexAttrs attrs{dims, counts_from_end};
  return dispatch_raw(kIndex, pointers_to({&x.tensor()}, indices), &attrs, x.site());
}

std::vector<Tensor> saved_indices(const GradContext& ctx, int first) {
  std::vector<Tensor> indices;
  for (int i = first; i < ctx.num_inputs(); ++i)
    indices.push_back(ctx.input(i));
  return indices;
}

// dx is dy added up at the positions that were read.
void grad_index(GradContext& ctx) {
  const UnindexAttrs attrs{ctx.attrs<IndexAttrs>().dims, ctx.input_meta(0)->shape};
  const std::vector<Tensor> indices = saved_indices(ctx, 1);
  ctx.set(0, dispatch_raw(kUnindex, pointers_to({&ctx.dy()}, indices), &attrs, Site::none()));
}

// Linear in y, which index reads back.
void grad_unindex(GradContext& ctx) {
  ctx.set(0, pick(ctx.dy(), ctx.attrs<UnindexAttrs>().dims, saved_indices(ctx, 1)));
}

// dvalues = dy at the positions that were written; dx = dy, but 0 at positions that were
// overwritten.
void grad_index_put(GradContext& ctx) {
  const auto& attrs = ctx.attrs<IndexPutAttrs>();
  const std::vector<Tensor> indices = saved_indices(ctx, 2);
  const Tensor taken = pick(ctx.dy(), attrs.dims, indices);
  if (ctx.needs(1)) ctx.set(1, taken);
  if (!ctx.needs(0)) return;
  const Tensor zeros = zeros_like(taken);
  ctx.set(0, attrs.accumulate ? ctx.dy()
                              : dispatch_raw(kIndexPut, pointers_to({&ctx.dy(), &zeros}, indices),
                                             &attrs, Site::none()));
}

void infer_nonzero(InferContext& ctx) {
  ctx.add_output({ctx.attrs<NonzeroAttrs>().count, ctx.input(0).dim()}, DType::kInt64);
}

void infer_one_hot(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype == DType::kInt64, "indices must be integers");
  Shape shape = ctx.input(0).shape;
  shape.push_back(ctx.attrs<OneHotAttrs>().num_classes);
  ctx.add_output(shape, DType::kInt64);
}

// Each index produces a separate row, and a rank may produce its part of the classes.
void sbp_one_hot(SbpContext& ctx) {
  const int64_t ndim = ctx.input(0).dim();
  for (int64_t i = 0; i < ndim; ++i)
    ctx.add({sbp::split(i)}, {sbp::split(i)});
  ctx.add_positional({sbp::broadcast}, {sbp::split(ndim)});
}

// Bits of the index tensors that follow `leading` others.
constexpr uint32_t index_bits(int leading) {
  return ((1U << kMaxDims) - 1U) << leading;
}

}  // namespace

const OpDef kIndex{.name = "index",
                   .num_inputs = kVariadic,
                   .attrs = attrs_def<IndexAttrs>(),
                   .infer = infer_index,
                   .sbp = sbp_index,
                   .grad = grad_index,
                   .saved_inputs = index_bits(1)};
const OpDef kIndexPut{.name = "index_put",
                      .num_inputs = kVariadic,
                      .attrs = attrs_def<IndexPutAttrs>(),
                      .infer = infer_index_put,
                      .sbp = sbp_index_put,
                      .grad = grad_index_put,
                      .saved_inputs = index_bits(2),
                      .allows_in_place = true};
const OpDef kUnindex{.name = "unindex",
                     .num_inputs = kVariadic,
                     .attrs = attrs_def<UnindexAttrs>(),
                     .infer = infer_unindex,
                     .sbp = sbp_unindex,
                     .grad = grad_unindex,
                     .saved_inputs = index_bits(1)};
const OpDef kNonzero{.name = "nonzero",
                     .attrs = attrs_def<NonzeroAttrs>(),
                     .infer = infer_nonzero,
                     .sbp = only_broadcast,
                     .grad = not_differentiable,
                     .has_data_dependent_shape = true};
const OpDef kOneHot{.name = "one_hot",
                    .attrs = attrs_def<OneHotAttrs>(),
                    .infer = infer_one_hot,
                    .sbp = sbp_one_hot,
                    .grad = not_differentiable};

void register_index(OpTable& table) {
  for (const OpDef* op : {&kIndex, &kIndexPut, &kUnindex, &kNonzero, &kOneHot})
    table.add(*op);
}

namespace {

// A parsed index: the view that numbers, slices, None and Ellipsis give, and the index tensors that
// remain for dims of that view.
struct ParsedIndex {
  Tensor view;
  Shape dims;
  std::vector<Tensor> indices;
  int64_t position = 0;  // of the picked dims in the result
  Tensor mask = {};      // of the view's dims from mask_dim on, if masks are kept
  int64_t mask_dim = 0;
};

// The number of dims of x that an index names.
int64_t dims_named(const IndexArg& index) {
  switch (index.kind) {
    case IndexArg::Kind::kNumber:
    case IndexArg::Kind::kSlice:
      return 1;
    case IndexArg::Kind::kNone:
    case IndexArg::Kind::kEllipsis:
      return 0;
    case IndexArg::Kind::kTensor:
      break;
  }
  return index.tensor.dtype() == DType::kBool ? index.tensor.dim() : 1;
}

void check_mask(const Tensor& mask, const Tensor& view, int64_t dim) {
  for (int64_t i = 0; i < mask.dim(); ++i) {
    if (view.shape()[dim + i] == mask.shape()[i]) continue;
    throw InvalidArgument(str("[index] a mask of shape ", mask.shape(),
                              " does not match the tensor of shape ", view.shape(), " at dim ",
                              dim + i, "; give a mask of those sizes"));
  }
}

// Adds the index tensors that `index` stands for, beginning at dim `dim` of the view, and returns
// their number.
int64_t add_index_tensor(const IndexArg& index, int64_t dim, ParsedIndex& parsed) {
  const Tensor& tensor = index.tensor;
  if (tensor.dtype() == DType::kInt64 || tensor.dtype() == DType::kInt32) {
    parsed.dims.push_back(dim);
    parsed.indices.push_back(cast({tensor, index.site}, DType::kInt64));
    return 1;
  }
  if (tensor.dtype() != DType::kBool || tensor.dim() == 0) {
    throw InvalidArgument(
        str("[index] an index tensor holds int64 or int32 positions, or is a "
            "bool mask with dims; received ",
            tensor.meta(), "; cast it"));
  }
  check_mask(tensor, parsed.view, dim);
  const Tensor positions = nonzero({tensor, index.site});
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    parsed.dims.push_back(dim + i);
    parsed.indices.push_back(select({positions, index.site}, 1, i));
  }
  return tensor.dim();
}

void check_number(const Tensor& view, int64_t dim, int64_t number) {
  const int64_t size = view.shape()[dim];
  if (number >= -size && number < size) return;
  throw InvalidArgument(str("[index] index ", number, " is out of range for dim ", dim, " of size ",
                            size, "; received a tensor of shape ", view.shape(), "; count from ",
                            -size, " to ", size - 1));
}

bool is_full(const Slice& slice) {
  return !slice.start && !slice.end && slice.step == 1;
}

// Returns whether the only tensor of an index is a mask.
bool has_one_mask(std::span<const IndexArg> list) {
  int64_t tensors = 0;
  bool is_mask = false;
  for (const IndexArg& index : list) {
    if (index.kind != IndexArg::Kind::kTensor) continue;
    ++tensors;
    is_mask = index.tensor.dtype() == DType::kBool && index.tensor.dim() > 0;
  }
  return tensors == 1 && is_mask;
}

// The place of the picked dims in the result. A scalar selects as a number does, so only the other
// index tensors count for whether they are next to each other.
int64_t position_without_scalars(const Shape& dims, const std::vector<Tensor>& indices) {
  Shape others;
  int64_t scalars = 0;
  for (int64_t i = 0; i < dims.size(); ++i) {
    if (indices[static_cast<size_t>(i)].dim() == 0) {
      ++scalars;
    } else {
      others.push_back(dims[i] - scalars);
    }
  }
  return others.empty() ? picked_position(dims) : picked_position(others);
}

// Masks are replaced by the positions of their elements unless the only one is kept.
ParsedIndex parse(const Tensor& x, std::span<const IndexArg> list, bool keeps_mask = false) {
  int64_t named = 0;
  int64_t ellipses = 0;
  for (const IndexArg& index : list) {
    named += dims_named(index);
    ellipses += index.kind == IndexArg::Kind::kEllipsis ? 1 : 0;
  }
  if (named > x.dim() || ellipses > 1) {
    throw InvalidArgument(
        str("[index] ", ellipses > 1 ? "two Ellipsis in one index" : "too many indices", "; ",
            named, " dims are indexed of a tensor of shape ", x.shape(), "; index fewer"));
  }
  ParsedIndex parsed{.view = x, .dims = {}, .indices = {}};
  int64_t dim = 0;
  for (const IndexArg& index : list) {
    const TensorArg view(parsed.view, index.site);
    switch (index.kind) {
      case IndexArg::Kind::kNumber:
        check_number(view, dim, index.number);
        parsed.view = select(view, dim, index.number);
        break;
      case IndexArg::Kind::kSlice:
        if (!is_full(index.slice)) {
          parsed.view = slice(view, dim, index.slice.start, index.slice.end, index.slice.step);
        }
        ++dim;
        break;
      case IndexArg::Kind::kNone:
        parsed.view = unsqueeze(view, dim++);
        break;
      case IndexArg::Kind::kEllipsis:
        dim += x.dim() - named;
        break;
      case IndexArg::Kind::kTensor:
        if (!keeps_mask) {
          dim += add_index_tensor(index, dim, parsed);
          break;
        }
        check_mask(index.tensor, parsed.view, dim);
        parsed.mask = index.tensor;
        parsed.mask_dim = std::exchange(dim, dim + index.tensor.dim());
        break;
    }
  }
  if (parsed.indices.empty()) return parsed;
  Shape common;
  for (const Tensor& tensor : parsed.indices)
    common = broadcast_shapes(common, tensor.shape(), "index");
  parsed.position = position_without_scalars(parsed.dims, parsed.indices);
  for (Tensor& tensor : parsed.indices) {
    if (tensor.shape() != common) tensor = expand({tensor, list.front().site}, common);
  }
  return parsed;
}

// Moves `count` dims that begin at dim `from` so that they begin at dim `to`.
Tensor move_dims(const TensorArg& x, int64_t from, int64_t to, int64_t count) {
  std::vector<int64_t> source(static_cast<size_t>(count));
  std::iota(source.begin(), source.end(), from);
  std::vector<int64_t> destination(static_cast<size_t>(count));
  std::iota(destination.begin(), destination.end(), to);
  return from == to ? x.tensor() : movedim(x, source, destination);
}

Site site_of(std::span<const IndexArg> list, Site fallback) {
  return list.empty() ? fallback : list.front().site;
}

Tensor index_by(const Tensor& x, std::span<const IndexArg> list, Site site) {
  return located(site, [&]() -> Tensor {
    const ParsedIndex parsed = parse(x, list);
    if (!parsed.indices.empty()) {
      const Tensor y = pick({parsed.view, site}, parsed.dims, parsed.indices);
      return move_dims({y, site}, picked_position(parsed.dims), parsed.position,
                       parsed.indices.front().dim());
    }
    // Returns a new view even if nothing was sliced.
    return parsed.view.is_same(x) ? reshape({x, site}, x.shape()) : parsed.view;
  });
}

// parsed.view[indices] = values, of the shape and dtype that takes.
void put_picked(const ParsedIndex& parsed, const Tensor& values, bool accumulate, Site site) {
  const IndexPutAttrs attrs{parsed.dims, accumulate};
  const auto inputs = pointers_to({&parsed.view, &values}, parsed.indices);
  Tensor output;
  Call call{kIndexPut, inputs, &attrs, site};
  call.mutates = 1;
  dispatch(call, &output);
}

void put(const Tensor& x, const IndexList& list, const Tensor& values, bool accumulate, Site site) {
  const ParsedIndex parsed = parse(x, list.indices());
  if (!parsed.indices.empty()) {
    const Shape& picked = parsed.indices.front().shape();
    Shape shape = indexed_shape(parsed.view.shape(), parsed.dims, {});
    for (int64_t i = 0; i < picked.size(); ++i)
      shape.insert(parsed.position + i, picked[i]);
    if (!fits(values.dtype(), x.dtype())) {
      throw InvalidArgument(str("[index_put] values of ", values.dtype(),
                                " do not fit into a tensor of ", x.dtype(), "; cast them"),
                            site);
    }
    Tensor fitting = cast({without_leading_ones(values, shape.size(), site), site}, x.dtype());
    if (fitting.shape() != shape) fitting = expand({fitting, site}, shape);
    fitting =
        move_dims({fitting, site}, parsed.position, picked_position(parsed.dims), picked.size());
    put_picked(parsed, fitting, accumulate, site);
    return;
  }
  const Tensor fitting = without_leading_ones(values, parsed.view.dim(), site);
  if (accumulate) {
    parsed.view.add_({fitting, site});
  } else {
    parsed.view.copy_({fitting, site});
  }
}

// x, or the whole of it on every rank if some axes are partial: partial sums that two ops reduce on
// their own may be rounded in another order.
Tensor reduced_once(const TensorArg& x) {
  if (!x->is_global() || !x->sbp().has_partial()) return x.tensor();
  return x->to_global(x->placement(), NdSbp::broadcast(x->placement().num_axes()), x.site());
}

}  // namespace

int64_t size_in(const char* op, const Tensor& value, Site site) {
  if (value.impl().trace != nullptr) {
    throw Unsupported(
        str("[", op,
            "] the shape of the result depends on data, which cannot be traced; call "
            "it outside and pass its result in",
            std::string_view(op) == "nonzero" ? ", or take nonzero_static, whose size is given"
                                              : ""),
        site);
  }
  return value.item<int64_t>(site);
}

}  // namespace ops

IndexList::IndexList(const std::vector<Tensor>& tensors, Site where) {
  for (const Tensor& tensor : tensors)
    indices_.emplace_back(tensor, where);
}

Tensor index(const TensorArg& x, const IndexList& indices) {
  return ops::index_by(x, indices.indices(), x.site());
}

Tensor IndexMethods::operator[](const IndexArg& index) const& {
  return ops::index_by(self(), {&index, 1}, index.site);
}

Tensor IndexMethods::operator[](const IndexArg& index) && {
  const Tensor temporary = std::move(temporary_self());
  return ops::index_by(temporary, {&index, 1}, index.site);
}

Tensor IndexMethods::index(const IndexList& indices) const {
  return ops::index_by(self(), indices.indices(), ops::site_of(indices.indices(), Site::none()));
}

Tensor index_put(const TensorArg& x, const IndexList& indices, const TensorArg& values,
                 const IndexPutOptions& options) {
  const auto put_in_copy = [&](const TensorArg& own, const TensorArg& new_values) {
    Tensor y = clone(own);
    ops::put(y, indices, new_values, options.accumulate, own.site());
    return y;
  };
  return ops::named("index_put", x.site(),
                    [&] { return ops::in_widest_dtype(put_in_copy, x, values); });
}

const Tensor& index_put_(const Tensor& x, const IndexList& indices, const TensorArg& values,
                         const IndexPutOptions& options) {
  ops::located(values.site(),
               [&] { ops::put(x, indices, values, options.accumulate, values.site()); });
  return x;
}

const Tensor& index_put_(const Tensor& x, const IndexList& indices, const Scalar& value,
                         Site site) {
  return ops::located(site, [&]() -> const Tensor& {
    const bool has_mask = ops::has_one_mask(indices.indices());
    const ops::ParsedIndex parsed = ops::parse(x, indices.indices(), has_mask);
    if (has_mask) {
      Shape shape = parsed.mask.shape();
      while (shape.size() + parsed.mask_dim < parsed.view.dim())
        shape.push_back(1);
      masked_fill_({parsed.view, site}, {reshape({parsed.mask, site}, shape), site}, value);
    } else if (parsed.indices.empty()) {
      parsed.view.fill_(value, site);
    } else {
      const Tensor taken = ops::pick({parsed.view.detach(), site}, parsed.dims, parsed.indices);
      ops::put_picked(parsed, full_like({taken, site}, value), false, site);
    }
    return x;
  });
}

Tensor index_select(const TensorArg& x, int64_t dim, const TensorArg& index) {
  return ops::named("index_select", x.site(), [&]() -> Tensor {
    if (x->dim() == 0) {  // a vector of one element
      const Tensor y = index_select({reshape(x, {1}), x.site()}, dim, index);
      if (y.numel() == 1) return reshape({y, x.site()}, {});
      throw InvalidArgument(str("[index_select] a scalar has one element to select; received ",
                                index->meta(), "; give one position or reshape the scalar to (1)"),
                            x.site());
    }
    const int64_t d = normalize_dim(dim, x->dim(), "index_select");
    const bool has_positions = index->dtype() == DType::kInt64 || index->dtype() == DType::kInt32;
    if (index->dim() > 1 || !has_positions) {
      throw InvalidArgument(
          str("[index_select] positions must be a vector of integers; received ", index->meta(),
              "; reshape or cast it, or use masked_select for a mask"),
          x.site());
    }
    Tensor indices = cast(index, DType::kInt64);
    if (indices.dim() == 0) indices = reshape({indices, index.site()}, {1});
    return ops::pick(x, {d}, {indices}, false);
  });
}

Tensor masked_select(const TensorArg& x, const TensorArg& mask) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (mask->dtype() != DType::kBool) {
      throw InvalidArgument(str("[masked_select] the mask must be bool; received ", mask->meta()),
                            x.site());
    }
    const Shape shape = broadcast_shapes(x->shape(), mask->shape(), "masked_select");
    const Site site = x.site();
    const Tensor values = reshape({expand(x, shape), site}, {-1});
    const Tensor chosen = reshape({expand(mask, shape), mask.site()}, {-1});
    const Tensor places = reshape({nonzero({chosen, site}), site}, {-1});
    return index_select({values, site}, 0, {places, site});
  });
}

Tensor nonzero(const TensorArg& x) {
  return ops::named("nonzero", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    const Tensor values = ops::reduced_once(x);
    const Tensor count = count_nonzero({values, site});
    return dispatch(ops::kNonzero, {&values},
                    ops::NonzeroAttrs{ops::size_in("nonzero", count, site)}, site);
  });
}

Tensor one_hot(const TensorArg& indices, int64_t num_classes) {
  if (is_floating(indices->dtype())) {
    throw InvalidArgument(
        str("[one_hot] indices must be integers; received ", indices->meta(), "; cast first"),
        indices.site());
  }
  if (num_classes < -1 || (num_classes == -1 && indices->numel() == 0)) {
    throw InvalidArgument(str("[one_hot] num_classes must be given and >= 0 here; received ",
                              num_classes, " for ", indices->meta()),
                          indices.site());
  }
  const Tensor positions = cast(indices, DType::kInt64);
  const Site site = indices.site();
  const int64_t classes =
      num_classes >= 0 ? num_classes : ops::size_in("one_hot", max({positions, site}), site) + 1;
  return dispatch(ops::kOneHot, {&positions}, ops::OneHotAttrs{classes}, site);
}

const Tensor& InPlaceMethods::index_put_(const IndexList& indices, const TensorArg& values,
                                         const IndexPutOptions& options) const {
  return flow::index_put_(self(), indices, values, options);
}

const Tensor& InPlaceMethods::index_put_(const IndexList& indices, const Scalar& value,
                                         Site site) const {
  return flow::index_put_(self(), indices, value, site);
}

Tensor IndexMethods::index_select(int64_t dim, const TensorArg& index) const {
  return flow::index_select(TensorArg(self(), index.site()), dim, index);
}

Tensor IndexMethods::masked_select(const TensorArg& mask) const {
  return flow::masked_select(TensorArg(self(), mask.site()), mask);
}

Tensor IndexMethods::nonzero(Site site) const {
  return flow::nonzero(TensorArg(self(), site));
}

Tensor IndexMethods::index_put(const IndexList& indices, const TensorArg& values,
                               const IndexPutOptions& options) const {
  return flow::index_put(TensorArg(self(), values.site()), indices, values, options);
}

}  // namespace flow
