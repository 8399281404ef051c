#include "ops/shape/view.h"

#include <algorithm>

#include "core/dispatch.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view_op.h"

namespace flow {

namespace ops {

void add_all_partials(SbpContext& ctx) {
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial}, {partial});
}

namespace {

void infer_reshape(InferContext& ctx) {
  const Shape& shape = ctx.attrs<ShapeAttrs>().shape;
  ctx.check(shape.numel() == ctx.input(0).numel, "shape ", shape, " has ", shape.numel(),
            " elements, but the input has ", ctx.input(0).numel,
            "; give a shape with the same number");
  ctx.add_output(shape, ctx.input(0).dtype);
}

// Returns true if splitting `a` rows of `a_inner` elements and `b` rows of `b_inner` elements into
// the same number of balanced parts puts the boundaries at the same elements.
bool cuts_alike(int64_t a, int64_t a_inner, int64_t b, int64_t b_inner, int64_t parts) {
  if (a == b && a_inner == b_inner) return true;
  for (int64_t part = 1; part < parts; ++part) {
    if (balanced_part(a, parts, part).begin * a_inner !=
        balanced_part(b, parts, part).begin * b_inner)
      return false;
  }
  return parts > 0;
}

// Splitting dim i of the input and dim j of the output splits the flat order of elements in the
// same way if the same number of elements is outside both dims (in front of all smaller dims) and
// the boundaries are at the same elements.
void sbp_reshape(SbpContext& ctx) {
  const Shape& in = ctx.input(0).shape;
  const Shape& out = ctx.output(0).shape;
  int64_t in_outer = 1;
  for (int64_t i = 0; i < in.size(); in_outer *= in[i++]) {
    int64_t out_outer = 1;
    for (int64_t j = 0; j < out.size(); out_outer *= out[j++]) {
      if (in[i] == 1 && out[j] == 1) {  // either way the first rank holds everything
        ctx.add({sbp::split(i)}, {sbp::split(j)});
        continue;
      }
      if (in_outer != out_outer || in.numel() == 0) continue;
      const int64_t in_inner = in.numel() / (in_outer * in[i]);
      const int64_t out_inner = out.numel() / (out_outer * out[j]);
      if (cuts_alike(in[i], in_inner, out[j], out_inner, ctx.num_ranks())) {
        ctx.add({sbp::split(i)}, {sbp::split(j)});
      }
    }
  }
  add_all_partials(ctx);
}

// dx = dy in the shape of x.
void grad_reshape(GradContext& ctx) {
  ctx.set(0, reshape(ctx.dy(), ctx.input_meta(0)->shape));
}

void infer_permute(InferContext& ctx) {
  const Shape& dims = ctx.attrs<PermuteAttrs>().dims;
  Shape shape;
  for (const int64_t dim : dims)
    shape.push_back(ctx.input(0).shape[dim]);
  ctx.add_output(shape, ctx.input(0).dtype);
}

void sbp_permute(SbpContext& ctx) {
  const Shape& dims = ctx.attrs<PermuteAttrs>().dims;
  for (int64_t i = 0; i < dims.size(); ++i)
    ctx.add({sbp::split(dims[i])}, {sbp::split(i)});
  add_all_partials(ctx);
}

// dx = dy with the inverse permutation.
void grad_permute(GradContext& ctx) {
  const Shape& dims = ctx.attrs<PermuteAttrs>().dims;
  std::vector<int64_t> inverse(static_cast<size_t>(dims.size()));
  for (int64_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<size_t>(dims[i])] = i;
  ctx.set(0, permute(ctx.dy(), std::move(inverse)));
}

void infer_expand(InferContext& ctx) {
  const Shape& shape = ctx.attrs<ShapeAttrs>().shape;
  const TensorMeta& x = ctx.input(0);
  const int64_t added = shape.size() - x.dim();
  ctx.check(added >= 0, "shape ", shape,
            " has fewer dims than the input; give every size, where -1 keeps one");
  for (int64_t i = added; i < shape.size(); ++i) {
    const int64_t size = x.shape[i - added];
    ctx.check(size == shape[i] || size == 1, "dim ", i - added, " of size ", size,
              " cannot be expanded to ", shape[i], " of shape ", shape,
              "; only dims of size 1 repeat");
  }
  ctx.add_output(shape, x.dtype);
}

// A repeated dim may be split anywhere, because each of its elements is the whole input.
void sbp_expand(SbpContext& ctx) {
  const Shape& in = ctx.input(0).shape;
  const Shape& out = ctx.output(0).shape;
  const int64_t added = out.size() - in.size();
  for (int64_t i = 0; i < out.size(); ++i) {
    const bool is_kept = i >= added && in[i - added] == out[i];
    ctx.add({is_kept ? sbp::split(i - added) : sbp::broadcast}, {sbp::split(i)});
  }
  add_all_partials(ctx);
}

// dx = dy summed over the repetitions.
void grad_expand(GradContext& ctx) {
  ctx.set(0, sum_to(ctx.dy(), ctx.input_meta(0)->shape));
}

// True, with plain strides, for a rank that holds no part.
bool is_absent(const TensorMeta& input, const Shape& output, ViewSpec& view) {
  if (input.is_held) return false;
  view = {contiguous_strides(output), 0};
  return true;
}

}  // namespace

// Dims are matched in groups of equal element counts, from the right. A group of the input must be
// stored as one run of constant stride.
bool view_reshape(const TensorMeta& input, const Shape& output, const void* /*attrs*/,
                  ViewSpec& view) {
  if (is_absent(input, output, view)) return true;
  view = {contiguous_strides(output), 0};
  if (input.is_contiguous || input.local_numel == 0) return true;
  const Shape& shape = input.local_shape;
  int64_t j = output.size() - 1;
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    const int64_t stride = input.strides[i];
    int64_t run = shape[i];  // elements of the group [i', i], all `stride` apart
    while (i > 0 && (shape[i - 1] == 1 || input.strides[i - 1] == run * stride))
      run *= shape[--i];
    int64_t taken = 1;
    for (; j >= 0 && (taken < run || output[j] == 1); --j) {
      view.strides[j] = stride * taken;
      taken *= output[j];
    }
    if (taken != run) return false;
  }
  return true;
}

bool view_permute(const TensorMeta& input, const Shape& output, const void* attrs, ViewSpec& view) {
  if (is_absent(input, output, view)) return true;
  const Shape& dims = static_cast<const PermuteAttrs*>(attrs)->dims;
  for (const int64_t dim : dims)
    view.strides.push_back(input.strides[dim]);
  return true;
}

bool view_expand(const TensorMeta& input, const Shape& output, const void* /*attrs*/,
                 ViewSpec& view) {
  if (is_absent(input, output, view)) return true;
  const Shape& shape = input.local_shape;
  const int64_t added = output.size() - shape.size();
  for (int64_t i = 0; i < output.size(); ++i) {
    const bool repeats = i < added || (shape[i - added] == 1 && output[i] != 1);
    view.strides.push_back(repeats ? 0 : input.strides[i - added]);
  }
  return true;
}

namespace {

void write_back_reshape(const Tensor& base, const Tensor& part, const void* /*attrs*/, Site site) {
  base.copy_({reshape(TensorArg(part, site), base.shape()), site});
}

void write_back_permute(const Tensor& base, const Tensor& part, const void* attrs, Site site) {
  const Shape& dims = static_cast<const PermuteAttrs*>(attrs)->dims;
  std::vector<int64_t> inverse(static_cast<size_t>(dims.size()));
  for (int64_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<size_t>(dims[i])] = i;
  base.copy_({permute(TensorArg(part, site), inverse), site});
}

}  // namespace

const OpDef kReshape{.name = "reshape",
                     .attrs = attrs_def<ShapeAttrs>(),
                     .infer = infer_reshape,
                     .sbp = sbp_reshape,
                     .grad = grad_reshape,
                     .view = view_reshape,
                     .write_back = write_back_reshape};
const OpDef kPermute{.name = "permute",
                     .attrs = attrs_def<PermuteAttrs>(),
                     .infer = infer_permute,
                     .sbp = sbp_permute,
                     .grad = grad_permute,
                     .view = view_permute,
                     .write_back = write_back_permute};
const OpDef kExpand{.name = "expand",
                    .attrs = attrs_def<ShapeAttrs>(),
                    .infer = infer_expand,
                    .sbp = sbp_expand,
                    .grad = grad_expand,
                    .view = view_expand,
                    .write_back = cannot_write_back};

void register_view(OpTable& table) {
  for (const OpDef* op : {&kReshape, &kPermute, &kExpand})
    table.add(*op);
}

namespace {

// Replaces the one -1 of a shape.
Shape fill_in_shape(const Tensor& x, const Shape& shape, const char* op) {
  Shape result = shape;
  int64_t unknown = -1;
  int64_t known = 1;
  for (int64_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && unknown == -1) {
      unknown = i;
    } else if (shape[i] < 0) {
      throw InvalidArgument(str("[", op, "] shape ", shape,
                                shape[i] == -1 ? " has more than one -1" : " has a negative size",
                                "; received a tensor of shape ", x.shape(),
                                "; give every size, or one as -1"));
    } else {
      known *= shape[i];
    }
  }
  if (unknown >= 0) {
    if (known == 0 || x.numel() % known != 0) {
      throw InvalidArgument(str("[", op, "] the -1 of shape ", shape, " has no value that gives ",
                                x.numel(), " elements; received a tensor of shape ", x.shape(),
                                "; give sizes that divide them"));
    }
    result[unknown] = x.numel() / known;
  }
  return result;
}

Tensor reshape_to(const TensorArg& x, const Shape& shape) {
  return dispatch(kReshape, {&x.tensor()}, ShapeAttrs{shape}, x.site());
}

// True if `out` has the dims of `in` behind new ones of size 1.
bool only_adds_ones(const Shape& in, const Shape& out) {
  const int64_t added = out.size() - in.size();
  if (added < 0) return false;
  for (int64_t i = 0; i < out.size(); ++i) {
    if (out[i] != (i < added ? 1 : in[i - added])) return false;
  }
  return true;
}

Tensor permute_to(const TensorArg& x, const Shape& dims) {
  return dispatch(kPermute, {&x.tensor()}, PermuteAttrs{dims}, x.site());
}

Shape identity_permutation(int64_t ndim) {
  Shape dims;
  for (int64_t i = 0; i < ndim; ++i)
    dims.push_back(i);
  return dims;
}

Tensor swap_dims(const TensorArg& x, int64_t dim0, int64_t dim1, const char* op) {
  return located(x.site(), [&] {
    const int64_t a = normalize_dim(dim0, x->dim(), op);
    const int64_t b = normalize_dim(dim1, x->dim(), op);
    Shape dims = identity_permutation(x->dim());
    if (x->dim() > 0) std::swap(dims[a], dims[b]);
    return permute_to(x, dims);
  });
}

}  // namespace

}  // namespace ops

Tensor reshape(const TensorArg& x, const Shape& shape) {
  return ops::located(x.site(), [&]() -> Tensor {
    return ops::reshape_to(x, ops::fill_in_shape(x, shape, "reshape"));
  });
}

Tensor view(const TensorArg& x, const Shape& shape) {
  return ops::named("view", x.site(), [&]() -> Tensor {
    const Shape filled = ops::fill_in_shape(x, shape, "view");
    ViewSpec spec;
    const TensorMeta& meta = x->meta();
    if (!meta.is_global() && filled.numel() == meta.numel &&
        !ops::view_reshape(meta, filled, nullptr, spec)) {
      throw InvalidArgument(str("[view] strides ", meta.strides, " of a tensor of shape ",
                                meta.shape, " cannot express shape ", filled,
                                " without copying; use reshape, or contiguous() first"),
                            x.site());
    }
    return ops::reshape_to(x, filled);
  });
}

Tensor view_as(const TensorArg& x, const TensorArg& other) {
  return ops::named("view_as", x.site(), [&]() -> Tensor { return view(x, other->shape()); });
}

Tensor reshape_as(const TensorArg& x, const TensorArg& other) {
  return ops::named("reshape_as", x.site(), [&]() -> Tensor { return reshape(x, other->shape()); });
}

Tensor flatten(const TensorArg& x, int64_t start_dim, int64_t end_dim) {
  return ops::located(x.site(), [&]() -> Tensor {
    const int64_t ndim = x->dim();
    const int64_t start = normalize_dim(start_dim, ndim, "flatten");
    const int64_t end = normalize_dim(end_dim, ndim, "flatten");
    if (ndim == 0) return ops::reshape_to(x, {1});
    if (start > end) {
      throw InvalidArgument(str("[flatten] start_dim ", start_dim, " comes after end_dim ", end_dim,
                                "; received a tensor of shape ", x->shape(), "; swap them"),
                            x.site());
    }
    if (start == end) return x;
    Shape shape;
    for (int64_t i = 0; i < ndim; ++i) {
      if (i > start && i <= end) {
        shape[start] *= x->shape()[i];
      } else {
        shape.push_back(x->shape()[i]);
      }
    }
    return ops::reshape_to(x, shape);
  });
}

Tensor squeeze(const TensorArg& x) {
  Shape shape;
  for (const int64_t size : x->shape()) {
    if (size != 1) shape.push_back(size);
  }
  return ops::reshape_to(x, shape);
}

Tensor squeeze(const TensorArg& x, int64_t dim) {
  return ops::located(x.site(), [&]() -> Tensor {
    Shape shape = x->shape();
    const int64_t d = normalize_dim(dim, x->dim(), "squeeze");
    if (x->dim() > 0 && shape[d] == 1) shape.erase(d);
    return ops::reshape_to(x, shape);
  });
}

Tensor squeeze(const TensorArg& x, const std::vector<int64_t>& dims) {
  return ops::located(x.site(), [&]() -> Tensor {
    std::vector<int64_t> dropped;
    for (const int64_t dim : dims) {
      const int64_t d = normalize_dim(dim, x->dim(), "squeeze");
      if (std::find(dropped.begin(), dropped.end(), d) != dropped.end()) {
        throw InvalidArgument(str("[squeeze] dim ", d, " occurs twice in ", Shape(dims),
                                  "; give each dim once; received ", x->meta()),
                              x.site());
      }
      dropped.push_back(d);
    }
    Shape shape;
    for (int64_t i = 0; i < x->dim(); ++i) {
      const bool is_named = std::find(dropped.begin(), dropped.end(), i) != dropped.end();
      if (!is_named || x->shape()[i] != 1) shape.push_back(x->shape()[i]);
    }
    return ops::reshape_to(x, shape);
  });
}

Tensor unsqueeze(const TensorArg& x, int64_t dim) {
  return ops::located(x.site(), [&]() -> Tensor {
    Shape shape = x->shape();
    shape.insert(normalize_dim(dim, x->dim() + 1, "unsqueeze"), 1);
    return ops::reshape_to(x, shape);
  });
}

Tensor permute(const TensorArg& x, const Ints& dims) {
  return ops::located(x.site(), [&]() -> Tensor {
    const int64_t ndim = x->dim();
    Shape order;
    for (const int64_t d : dims) {
      const int64_t dim = normalize_dim(d, ndim, "permute");
      if (std::find(order.begin(), order.end(), dim) == order.end()) order.push_back(dim);
    }
    if (dims.size() != ndim || order.size() != ndim) {
      throw InvalidArgument(
          str("[permute] dims must name each of the ", ndim, " dims once; received ",
              Shape(dims.values()), " for a tensor of shape ", x->shape()),
          x.site());
    }
    return ops::permute_to(x, order);
  });
}

Tensor transpose(const TensorArg& x, int64_t dim0, int64_t dim1) {
  return ops::swap_dims(x, dim0, dim1, "transpose");
}

Tensor swapaxes(const TensorArg& x, int64_t axis0, int64_t axis1) {
  return ops::swap_dims(x, axis0, axis1, "swapaxes");
}

Tensor swapdims(const TensorArg& x, int64_t dim0, int64_t dim1) {
  return ops::swap_dims(x, dim0, dim1, "swapdims");
}

Tensor t(const TensorArg& x) {
  if (x->dim() > 2) {
    throw InvalidArgument(str("[t] expects a matrix, vector or scalar; received shape ", x->shape(),
                              "; use transpose(x, dim0, dim1)"),
                          x.site());
  }
  return x->dim() == 2 ? ops::permute_to(x, {1, 0})
                       : ops::permute_to(x, ops::identity_permutation(x->dim()));
}

Tensor movedim(const TensorArg& x, const Ints& source, const Ints& destination) {
  return ops::located(x.site(), [&]() -> Tensor {
    const int64_t ndim = x->dim();
    Shape order = Shape::filled(ndim, -1);
    Shape rest = ops::identity_permutation(ndim);
    bool is_valid = source.size() == destination.size();
    for (int64_t i = 0; is_valid && i < source.size(); ++i) {
      const int64_t from = normalize_dim(source[i], ndim, "movedim");
      const int64_t to = normalize_dim(destination[i], ndim, "movedim");
      const auto* found = std::find(rest.begin(), rest.end(), from);
      is_valid = found != rest.end() && order[to] == -1;
      if (!is_valid) break;
      rest.erase(found - rest.begin());
      order[to] = from;
    }
    if (!is_valid) {
      throw InvalidArgument(
          str("[movedim] source and destination must name the same number of different dims; ",
              "received ", Shape(source.values()), " and ", Shape(destination.values()),
              " for a tensor of shape ", x->shape()),
          x.site());
    }
    int64_t next = 0;
    for (int64_t& dim : order) {
      if (dim == -1) dim = rest[next++];
    }
    return ops::permute_to(x, order);
  });
}

Tensor expand(const TensorArg& x, const Shape& shape) {
  Shape filled = shape;
  const int64_t added = shape.size() - x->dim();
  for (int64_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != -1) continue;
    if (i < added) {
      throw InvalidArgument(str("[expand] -1 stands for a new leading dim of shape ", shape,
                                "; received a tensor of shape ", x->shape(), "; give its size"),
                            x.site());
    }
    filled[i] = added < 0 ? 0 : x->shape()[i - added];
  }
  // A write to a view that repeats nothing reaches x.
  if (ops::only_adds_ones(x->shape(), filled)) return ops::reshape_to(x, filled);
  return dispatch(ops::kExpand, {&x.tensor()}, ops::ShapeAttrs{filled}, x.site());
}

Tensor broadcast_to(const TensorArg& x, const Shape& shape) {
  return ops::named("broadcast_to", x.site(), [&]() -> Tensor { return expand(x, shape); });
}

Tensor expand_as(const TensorArg& x, const TensorArg& other) {
  return ops::named("expand_as", x.site(), [&]() -> Tensor { return expand(x, other->shape()); });
}

Tensor ShapeMethods::reshape(const Shape& shape, Site site) const {
  return flow::reshape({self(), site}, shape);
}

Tensor ShapeMethods::view(const Shape& shape, Site site) const {
  return flow::view({self(), site}, shape);
}

Tensor ShapeMethods::flatten(int64_t start_dim, int64_t end_dim, Site site) const {
  return flow::flatten({self(), site}, start_dim, end_dim);
}

Tensor ShapeMethods::squeeze(Site site) const {
  return flow::squeeze({self(), site});
}

Tensor ShapeMethods::squeeze(int64_t dim, Site site) const {
  return flow::squeeze({self(), site}, dim);
}

Tensor ShapeMethods::unsqueeze(int64_t dim, Site site) const {
  return flow::unsqueeze({self(), site}, dim);
}

Tensor ShapeMethods::transpose(int64_t dim0, int64_t dim1, Site site) const {
  return flow::transpose({self(), site}, dim0, dim1);
}

Tensor ShapeMethods::t(Site site) const {
  return flow::t({self(), site});
}

Tensor ShapeMethods::T(Site site) const {
  return ops::named("T", site, [&]() -> Tensor { return flow::t({self(), site}); });
}

Tensor ShapeMethods::H(Site site) const {
  if (self().dim() != 2) {
    throw InvalidArgument(
        str("[H] takes a matrix; received ", self().meta(), "; use mH for stacks"), site);
  }
  return mT(site);
}

Tensor ShapeMethods::mH(Site site) const {
  return mT(site);
}

Tensor ShapeMethods::mT(Site site) const {
  return ops::named("mT", site, [&]() -> Tensor {
    return flow::transpose({self(), site}, -2, -1);
  });
}

Tensor ShapeMethods::permute(const Ints& dims, Site site) const {
  return flow::permute({self(), site}, dims);
}

Tensor ShapeMethods::expand(const Shape& shape, Site site) const {
  return flow::expand({self(), site}, shape);
}

Tensor ShapeMethods::view_as(const TensorArg& other) const {
  return flow::view_as(TensorArg(self(), other.site()), other);
}

Tensor ShapeMethods::reshape_as(const TensorArg& other) const {
  return flow::reshape_as(TensorArg(self(), other.site()), other);
}

Tensor ShapeMethods::expand_as(const TensorArg& other) const {
  return flow::expand_as(TensorArg(self(), other.site()), other);
}

Tensor ShapeMethods::broadcast_to(const Shape& shape, Site site) const {
  return flow::broadcast_to(TensorArg(self(), site), shape);
}

Tensor ShapeMethods::squeeze(const std::vector<int64_t>& dims, Site site) const {
  return flow::squeeze(TensorArg(self(), site), dims);
}

Tensor ShapeMethods::swapaxes(int64_t axis0, int64_t axis1, Site site) const {
  return flow::swapaxes(TensorArg(self(), site), axis0, axis1);
}

Tensor ShapeMethods::swapdims(int64_t dim0, int64_t dim1, Site site) const {
  return flow::swapdims(TensorArg(self(), site), dim0, dim1);
}

Tensor ShapeMethods::movedim(const Ints& source, const Ints& destination, Site site) const {
  return flow::movedim(TensorArg(self(), site), source, destination);
}

}  // namespace flow
