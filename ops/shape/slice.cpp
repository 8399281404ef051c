#include "ops/shape/slice.h"

#include <algorithm>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/named_errors.h"
#include "ops/shape/slice_op.h"
#include "ops/shape/view.h"
#include "ops/shape/view_op.h"

namespace flow {

namespace ops {

namespace {

// The shape without the dim that is sliced.
bool takes_all(const SliceAttrs& attrs, const Shape& shape) {
  return attrs.start == 0 && attrs.step == 1 && attrs.length == shape[attrs.dim];
}

void infer_slice(InferContext& ctx) {
  const auto& attrs = ctx.attrs<SliceAttrs>();
  Shape shape = ctx.input(0).shape;
  shape[attrs.dim] = attrs.length;
  ctx.add_output(shape, ctx.input(0).dtype);
}

void infer_select(InferContext& ctx) {
  Shape shape = ctx.input(0).shape;
  shape.erase(ctx.attrs<SelectAttrs>().dim);
  ctx.add_output(shape, ctx.input(0).dtype);
}

void infer_unslice(InferContext& ctx) {
  const auto& attrs = ctx.attrs<UnsliceAttrs>();
  Shape shape = ctx.input(0).shape;
  ctx.check(attrs.dim < shape.size(), "takes a tensor with a dim ", attrs.dim, "; unsqueeze it");
  shape[attrs.dim] = attrs.size;
  ctx.add_output(shape, ctx.input(0).dtype);
}

// Returns true if each rank's balanced part of `size` elements holds the elements start, start +
// step, … that its part of `length` elements needs.
bool parts_hold(int64_t size, int64_t start, int64_t length, int64_t step, int64_t num_ranks) {
  if (start == 0 && step == 1 && length == size) return true;
  for (int64_t r = 0; r < num_ranks; ++r) {
    const Range taken = balanced_part(length, num_ranks, r);
    const Range held = balanced_part(size, num_ranks, r);
    if (taken.size == 0) continue;
    const int64_t first = start + taken.begin * step;
    const int64_t last = first + (taken.size - 1) * step;
    if (first < held.begin || last >= held.begin + held.size) return false;
  }
  return num_ranks > 0;
}

// Returns true if start and step select the same elements of every such part, wherever it begins.
bool are_parts_alike(int64_t size, int64_t length, int64_t step) {
  return length * step == size;
}

// A rank that holds part of the sliced dim fills in its elements and zeros elsewhere, which gives a
// partial sum.
void sbp_slice(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<SliceAttrs>();
  const Shape& shape = ctx.input(0).shape;
  for (int64_t i = 0; i < shape.size(); ++i) {
    if (i != attrs.dim) {
      ctx.add({sbp::split(i)}, {sbp::split(i)});
    } else if (parts_hold(shape[i], attrs.start, attrs.length, attrs.step, ctx.num_ranks())) {
      const bool is_positional = !are_parts_alike(shape[i], attrs.length, attrs.step);
      ctx.add({{sbp::split(i)}, {sbp::split(i)}, is_positional});
    }
  }
  ctx.add_positional({sbp::split(attrs.dim)}, {sbp::partial_sum});
  add_all_partials(ctx);
}

void sbp_select(SbpContext& ctx) {
  const int64_t dim = ctx.attrs<SelectAttrs>().dim;
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (i != dim) ctx.add({sbp::split(i)}, {sbp::split(i < dim ? i : i - 1)});
  }
  ctx.add_positional({sbp::split(dim)}, {sbp::partial_sum});
  add_all_partials(ctx);
}

// True if each rank's part of the input belongs to its part of the widened dim. Where an outer axis
// has split the dim, `start` does not say where the elements are in this part, unless they have the
// same place in every part.
bool unslices_by_parts(const SbpContext& ctx) {
  const auto& attrs = ctx.attrs<UnsliceAttrs>();
  const int64_t length = ctx.input(0).shape[attrs.dim];
  const int64_t size = ctx.output(0).shape[attrs.dim];
  if (length == attrs.length && size == attrs.size)
    return parts_hold(size, attrs.start, length, attrs.step, ctx.num_ranks());
  return are_parts_alike(size, length, attrs.step) && attrs.start < attrs.step &&
         parts_hold(size, attrs.start, length, attrs.step, ctx.num_ranks());
}

// The dual of slice: from a whole input, each rank takes its part of the widened dim; a split input
// is written into zeros.
void sbp_unslice(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<UnsliceAttrs>();
  const int64_t dim = attrs.dim;
  if (unslices_by_parts(ctx)) {
    const bool is_positional = !are_parts_alike(attrs.size, attrs.length, attrs.step);
    ctx.add({{sbp::split(dim)}, {sbp::split(dim)}, is_positional});
  }
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i)
    ctx.add({{i == dim ? sbp::broadcast : sbp::split(i)}, {sbp::split(i)}, i == dim});
  ctx.add_positional({sbp::split(dim)}, {sbp::partial_sum});
  add_all_partials(ctx);
}

void infer_slice_scatter(InferContext& ctx) {
  const auto& attrs = ctx.attrs<SliceAttrs>();
  Shape shape = ctx.input(0).shape;
  shape[attrs.dim] = attrs.length;
  ctx.check(ctx.input(1).shape == shape, "takes a source of the shape of the slice, ", shape);
  ctx.check(ctx.input(1).dtype == ctx.input(0).dtype, "takes a source of the same dtype; cast it");
  ctx.add_output_like(0);
}

// Every rank has the whole source and uses the elements that belong to its part.
void sbp_slice_scatter(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<SliceAttrs>();
  const int64_t dim = attrs.dim;
  const int64_t size = ctx.input(0).shape[dim];
  if (parts_hold(size, attrs.start, attrs.length, attrs.step, ctx.num_ranks())) {
    const bool is_positional = !are_parts_alike(size, attrs.length, attrs.step);
    ctx.add({{sbp::split(dim), sbp::split(dim)}, {sbp::split(dim)}, is_positional});
  }
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    const Sbp source = i == dim ? sbp::broadcast : sbp::split(i);
    ctx.add({{sbp::split(i), source}, {sbp::split(i)}, i == dim});
  }
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, partial}, {partial});
}

// dx = dy at the positions that were read, and 0 elsewhere.
void grad_slice(GradContext& ctx) {
  const auto& attrs = ctx.attrs<SliceAttrs>();
  const int64_t size = ctx.input_meta(0)->shape[attrs.dim];
  ctx.set(0, unslice(ctx.dy(), attrs.dim, attrs.start, size, attrs.step));
}

void grad_select(GradContext& ctx) {
  const auto& attrs = ctx.attrs<SelectAttrs>();
  const int64_t size = ctx.input_meta(0)->shape[attrs.dim];
  ctx.set(0, unslice(unsqueeze(ctx.dy(), attrs.dim), attrs.dim, attrs.index, size, 1));
}

Tensor slice_of(const TensorArg& x, const SliceAttrs& attrs) {
  return dispatch(kSlice, {&x.tensor()}, attrs, x.site());
}

// dx = dy at the positions that were written.
void grad_unslice(GradContext& ctx) {
  const auto& attrs = ctx.attrs<UnsliceAttrs>();
  const int64_t length = ctx.input_meta(0)->shape[attrs.dim];
  ctx.set(0, slice_of(ctx.dy(), {attrs.dim, attrs.start, length, attrs.step}));
}

// dsource = dy at the positions that were written; dx = dy elsewhere.
void grad_slice_scatter(GradContext& ctx) {
  const auto& attrs = ctx.attrs<SliceAttrs>();
  const Tensor written = slice_of(ctx.dy(), attrs);
  if (ctx.needs(0)) {
    const Tensor nothing = zeros_like(written);
    ctx.set(0, dispatch(kSliceScatter, {&ctx.dy(), &nothing}, attrs, Site::here()));
  }
  if (ctx.needs(1)) ctx.set(1, written);
}

// Returns true if this rank holds every element of `dim`.
bool holds_whole(const TensorMeta& input, int64_t dim) {
  return input.local_shape[dim] == input.shape[dim];
}

bool view_slice(const TensorMeta& input, const Shape& output, const void* attrs, ViewSpec& view) {
  const auto& slice = *static_cast<const SliceAttrs*>(attrs);
  if (!input.is_held) {
    view = {contiguous_strides(output), 0};
    return true;
  }
  view.strides = input.strides;
  view.strides[slice.dim] *= slice.step;
  view.offset = slice.start * input.strides[slice.dim];
  return holds_whole(input, slice.dim) ||
         (takes_all(slice, input.shape) && output == input.local_shape);
}

bool view_select(const TensorMeta& input, const Shape& output, const void* attrs, ViewSpec& view) {
  const auto& select = *static_cast<const SelectAttrs*>(attrs);
  if (!input.is_held) {
    view = {contiguous_strides(output), 0};
    return true;
  }
  view.strides = input.strides;
  view.strides.erase(select.dim);
  view.offset = select.index * input.strides[select.dim];
  return holds_whole(input, select.dim);
}

void write_back_slice(const Tensor& base, const Tensor& part, const void* attrs, Site site) {
  dispatch_in_place(kSliceScatter, {&base, &part}, attrs, site);
}

void write_back_select(const Tensor& base, const Tensor& part, const void* attrs, Site site) {
  const auto& place = *static_cast<const SelectAttrs*>(attrs);
  const SliceAttrs slice{place.dim, place.index, 1, 1};
  write_back_slice(base, unsqueeze(TensorArg(part, site), place.dim), &slice, site);
}

}  // namespace

const OpDef kSlice{.name = "slice",
                   .attrs = attrs_def<SliceAttrs>(),
                   .infer = infer_slice,
                   .sbp = sbp_slice,
                   .grad = grad_slice,
                   .view = view_slice,
                   .write_back = write_back_slice};
const OpDef kSelect{.name = "select",
                    .attrs = attrs_def<SelectAttrs>(),
                    .infer = infer_select,
                    .sbp = sbp_select,
                    .grad = grad_select,
                    .view = view_select,
                    .write_back = write_back_select};
const OpDef kUnslice{.name = "unslice",
                     .attrs = attrs_def<UnsliceAttrs>(),
                     .infer = infer_unslice,
                     .sbp = sbp_unslice,
                     .grad = grad_unslice};

const OpDef kSliceScatter{.name = "slice_scatter",
                          .num_inputs = 2,
                          .attrs = attrs_def<SliceAttrs>(),
                          .infer = infer_slice_scatter,
                          .sbp = sbp_slice_scatter,
                          .grad = grad_slice_scatter,
                          .allows_in_place = true};

void register_slice(OpTable& table) {
  for (const OpDef* op : {&kSlice, &kSelect, &kUnslice, &kSliceScatter})
    table.add(*op);
}

Tensor unslice(const TensorArg& x, int64_t dim, int64_t start, int64_t size, int64_t step) {
  return dispatch(kUnslice, {&x.tensor()}, UnsliceAttrs{dim, start, x->size(dim), size, step},
                  x.site());
}

namespace {

int64_t sliced_dim(const Tensor& x, int64_t dim, const char* op) {
  if (x.dim() == 0) {
    throw InvalidArgument(
        str("[", op, "] a scalar has no dim to slice; received ", x.meta(), "; reshape it to (1)"));
  }
  return normalize_dim(dim, x.dim(), op);
}

// Returns parts of the given sizes, which are within x.
std::vector<Tensor> cut(const TensorArg& x, int64_t dim, const std::vector<int64_t>& sizes) {
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(slice_of(x, {dim, start, size, 1}));
    start += size;
  }
  return parts;
}

std::vector<Tensor> cut_evenly(const TensorArg& x, int64_t dim, int64_t part_size) {
  std::vector<int64_t> sizes;
  int64_t left = x->shape()[dim];
  for (; left > part_size; left -= part_size)
    sizes.push_back(part_size);
  sizes.push_back(left);
  return cut(x, dim, sizes);
}

}  // namespace

}  // namespace ops

namespace {

// The elements of `dim` that Python's start:end:step selects.
ops::SliceAttrs parse_slice(const Tensor& x, int64_t dim, std::optional<int64_t> start,
                            std::optional<int64_t> end, int64_t step, const char* op) {
  const int64_t d = ops::sliced_dim(x, dim, op);
  if (step <= 0) {
    throw InvalidArgument(str("[", op, "] step must be positive; received ", step,
                              "; use flip for the other direction"));
  }
  const int64_t size = x.shape()[d];
  const auto position = [size](int64_t p) {
    return std::clamp(p < 0 ? p + size : p, int64_t{0}, size);
  };
  const int64_t first = position(start.value_or(0));
  const int64_t last = std::max(first, position(end.value_or(size)));
  const int64_t length = (last - first) / step + ((last - first) % step != 0 ? 1 : 0);
  return {d, first, length, step};
}

// Normalises `dim` and `index` to count from the start.
ops::SelectAttrs parse_select(const Tensor& x, int64_t dim, int64_t index, const char* op) {
  const int64_t d = ops::sliced_dim(x, dim, op);
  const int64_t size = x.shape()[d];
  if (index < -size || index >= size) {
    throw InvalidArgument(str("[", op, "] index ", index, " is out of range for dim ", d,
                              " of size ", size, "; received a tensor of shape ", x.shape(),
                              "; count from ", -size, " to ", size - 1));
  }
  return {d, index < 0 ? index + size : index};
}

}  // namespace

Tensor slice(const TensorArg& x, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  return ops::located(x.site(), [&]() -> Tensor {
    return ops::slice_of(x, parse_slice(x, dim, start, end, step, "slice"));
  });
}

Tensor slice_scatter(const TensorArg& x, const TensorArg& source, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  return ops::located(x.site(), [&]() -> Tensor {
    return dispatch(ops::kSliceScatter, {&x.tensor(), &source.tensor()},
                    parse_slice(x, dim, start, end, step, "slice_scatter"), x.site());
  });
}

Tensor select_scatter(const TensorArg& x, const TensorArg& source, int64_t dim, int64_t index) {
  return ops::located(x.site(), [&]() -> Tensor {
    const ops::SelectAttrs place = parse_select(x, dim, index, "select_scatter");
    Shape shape = x->shape();
    shape.erase(place.dim);
    if (source->shape() != shape) {
      throw InvalidArgument(
          str("[select_scatter] takes a source of shape ", shape, ", that of one element of dim ",
              place.dim, "; received ", source->meta()),
          x.site());
    }
    const Tensor slice = unsqueeze(TensorArg(source.tensor(), x.site()), place.dim);
    return dispatch(ops::kSliceScatter, {&x.tensor(), &slice},
                    ops::SliceAttrs{place.dim, place.index, 1, 1}, x.site());
  });
}

Tensor narrow(const TensorArg& x, int64_t dim, int64_t start, int64_t length) {
  return ops::located(x.site(), [&]() -> Tensor {
    const int64_t d = ops::sliced_dim(x, dim, "narrow");
    const int64_t size = x->shape()[d];
    const int64_t first = start < 0 ? start + size : start;
    if (length < 0 || first < 0 || first > size || length > size - first) {
      throw InvalidArgument(str("[narrow] start ", start, " with length ", length, " exceeds dim ",
                                d, " of size ", size, "; received a tensor of shape ", x->shape()),
                            x.site());
    }
    return ops::slice_of(x, {d, first, length, 1});
  });
}

Tensor select(const TensorArg& x, int64_t dim, int64_t index) {
  return ops::located(x.site(), [&]() -> Tensor {
    return dispatch(ops::kSelect, {&x.tensor()}, parse_select(x, dim, index, "select"), x.site());
  });
}

std::vector<Tensor> unbind(const TensorArg& x, int64_t dim) {
  return ops::located(x.site(), [&]() -> std::vector<Tensor> {
    const int64_t d = ops::sliced_dim(x, dim, "unbind");
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < x->shape()[d]; ++i)
      parts.push_back(select(x, d, i));
    return parts;
  });
}

std::vector<Tensor> split(const TensorArg& x, const Sections& sections, int64_t dim) {
  return ops::located(x.site(), [&]() -> std::vector<Tensor> {
    const int64_t d = ops::sliced_dim(x, dim, "split");
    if (sections.is_number()) {
      const int64_t size = sections.number();
      if (size < 0 || (size == 0 && x->shape()[d] != 0)) {
        throw InvalidArgument(str("[split] split_size must be positive; received ", size),
                              x.site());
      }
      return ops::cut_evenly(x, d, size);
    }
    int64_t left = x->shape()[d];
    for (const int64_t size : sections.list()) {
      if (size < 0 || size > left) left = -1;
      if (left < 0) break;
      left -= size;
    }
    if (left != 0) {
      std::string list;
      for (const int64_t size : sections.list())
        list += str(list.empty() ? "" : ", ", size);
      throw InvalidArgument(str("[split] sizes must be >= 0 and add up to ", x->shape()[d],
                                ", the size of dim ", d, "; received {", list, "}"),
                            x.site());
    }
    return ops::cut(x, d, sections.list());
  });
}

std::vector<Tensor> chunk(const TensorArg& x, int64_t chunks, int64_t dim) {
  return ops::located(x.site(), [&]() -> std::vector<Tensor> {
    const int64_t d = ops::sliced_dim(x, dim, "chunk");
    if (chunks <= 0) {
      throw InvalidArgument(str("[chunk] chunks must be positive; received ", chunks), x.site());
    }
    const int64_t size = x->shape()[d];
    // An empty dim still gives the requested number of parts.
    if (size == 0) return ops::cut(x, d, std::vector<int64_t>(static_cast<size_t>(chunks), 0));
    return ops::cut_evenly(x, d, size / chunks + (size % chunks != 0 ? 1 : 0));
  });
}

Tensor ShapeMethods::narrow(int64_t dim, int64_t start, int64_t length, Site site) const {
  return flow::narrow({self(), site}, dim, start, length);
}

Tensor ShapeMethods::select(int64_t dim, int64_t index, Site site) const {
  return flow::select({self(), site}, dim, index);
}

Tensor IndexMethods::slice_scatter(const TensorArg& source, int64_t dim,
                                   std::optional<int64_t> start, std::optional<int64_t> end,
                                   int64_t step) const {
  return flow::slice_scatter(TensorArg(self(), source.site()), source, dim, start, end, step);
}

Tensor IndexMethods::select_scatter(const TensorArg& source, int64_t dim, int64_t index) const {
  return flow::select_scatter(TensorArg(self(), source.site()), source, dim, index);
}

Tensor ShapeMethods::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                           int64_t step, Site site) const {
  return flow::slice(TensorArg(self(), site), dim, start, end, step);
}

std::vector<Tensor> ShapeMethods::unbind(int64_t dim, Site site) const {
  return flow::unbind(TensorArg(self(), site), dim);
}

std::vector<Tensor> ShapeMethods::split(const Sections& sections, int64_t dim, Site site) const {
  return flow::split(TensorArg(self(), site), sections, dim);
}

std::vector<Tensor> ShapeMethods::chunk(int64_t chunks, int64_t dim, Site site) const {
  return flow::chunk(TensorArg(self(), site), chunks, dim);
}

}  // namespace flow
