#include "ops/shape/concat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/dispatch.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/index/index.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/reduce/reduce_op.h"
#include "ops/shape/border_op.h"
#include "ops/shape/concat_op.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"
#include "ops/shape/view_op.h"

namespace flow {

namespace ops {

namespace {

void infer_cat(InferContext& ctx) {
  const int64_t dim = ctx.attrs<CatAttrs>().dim;
  Shape shape = ctx.input(0).shape;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const TensorMeta& x = ctx.input(i);
    ctx.check(x.dim() == shape.size() && x.dtype == ctx.input(0).dtype,
              "tensors differ in dims or dtype; reshape or cast them");
    for (int64_t d = 0; d < shape.size(); ++d) {
      ctx.check(d == dim || x.shape[d] == shape[d], "sizes differ in dim ", d, "; only dim ", dim,
                " may differ: narrow or pad the tensors");
    }
    shape[dim] += x.shape[dim];
  }
  ctx.add_output(shape, ctx.input(0).dtype);
}

std::vector<Sbp> all_inputs(const SbpContext& ctx, Sbp sbp) {
  return std::vector<Sbp>(static_cast<size_t>(ctx.num_inputs()), sbp);
}

// Each element of the result is one element of one input.
void sbp_cat(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.output(0).shape.size(); ++i) {
    const Sbp split = sbp::split(i);
    if (i != ctx.attrs<CatAttrs>().dim) ctx.add(all_inputs(ctx, split), {split});
  }
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add(all_inputs(ctx, partial), {partial});
}

// dx_i = the part of dy that came from x_i.
void grad_cat(GradContext& ctx) {
  const int64_t dim = ctx.attrs<CatAttrs>().dim;
  int64_t start = 0;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const int64_t size = ctx.input_meta(i)->shape[dim];
    if (ctx.needs(i)) ctx.set(i, narrow(ctx.dy(), dim, start, size));
    start += size;
  }
}

void infer_same(InferContext& ctx) {
  ctx.add_output_like(0);
}

void sbp_flip(SbpContext& ctx) {
  const DimSet flipped = dim_set(ctx.attrs<FlipAttrs>().dims);
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if ((flipped >> i & 1U) == 0) ctx.add({sbp::split(i)}, {sbp::split(i)});
  }
  add_all_partials(ctx);
}

void grad_flip(GradContext& ctx) {
  const Shape& dims = ctx.attrs<FlipAttrs>().dims;
  ctx.set(0, flip(ctx.dy(), std::vector<int64_t>(dims.begin(), dims.end())));
}

void infer_pad(InferContext& ctx) {
  const auto& attrs = ctx.attrs<PadAttrs>();
  Shape shape = ctx.input(0).shape;
  for (int64_t i = 0; i < shape.size(); ++i) {
    int64_t added = 0;
    if (__builtin_add_overflow(attrs.before[i], attrs.after[i], &added) ||
        __builtin_add_overflow(shape[i], added, &shape[i])) {
      throw InvalidArgument(str("[pad] padding (", attrs.before[i], ", ", attrs.after[i],
                                ") makes dim ", i, " of shape ", ctx.input(0).shape,
                                " larger than can be addressed; add fewer elements"));
    }
  }
  ctx.add_output(shape, ctx.input(0).dtype);
}

// The padding is the same on every rank: it is its own maximum, but its own sum only if it is zero.
void sbp_pad(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<PadAttrs>();
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (attrs.before[i] == 0 && attrs.after[i] == 0) ctx.add({sbp::split(i)}, {sbp::split(i)});
  }
  if (attrs.value == 0) ctx.add({sbp::partial_sum}, {sbp::partial_sum});
  ctx.add({sbp::partial_max}, {sbp::partial_max});
  ctx.add({sbp::partial_min}, {sbp::partial_min});
}

// dx = dy without the padding.
void grad_pad(GradContext& ctx) {
  const auto& attrs = ctx.attrs<PadAttrs>();
  const Shape& shape = ctx.input_meta(0)->shape;
  Tensor dx = ctx.dy();
  for (int64_t i = 0; i < shape.size(); ++i) {
    if (attrs.before[i] != 0 || attrs.after[i] != 0) dx = narrow(dx, i, attrs.before[i], shape[i]);
  }
  ctx.set(0, dx);
}

void infer_triangle(InferContext& ctx) {
  ctx.check(ctx.input(0).dim() >= 2, "needs at least two dims; reshape the tensor");
  ctx.add_output_like(0);
}

// Each kernel writes its part at its logical position; the zeros elsewhere are their own sum,
// maximum and minimum.
void sbp_triangle(SbpContext& ctx) {
  const int64_t ndim = ctx.input(0).dim();
  for (int64_t i = 0; i < ndim; ++i)
    ctx.add({{sbp::split(i)}, {sbp::split(i)}, i >= ndim - 2});
  add_all_partials(ctx);
}

void grad_tril(GradContext& ctx) {
  ctx.set(0, tril(ctx.dy(), ctx.attrs<TriangleAttrs>().diagonal));
}

void grad_triu(GradContext& ctx) {
  ctx.set(0, triu(ctx.dy(), ctx.attrs<TriangleAttrs>().diagonal));
}

}  // namespace

const OpDef kCat{.name = "cat",
                 .num_inputs = kVariadic,
                 .attrs = attrs_def<CatAttrs>(),
                 .infer = infer_cat,
                 .sbp = sbp_cat,
                 .grad = grad_cat};
const OpDef kFlip{.name = "flip",
                  .attrs = attrs_def<FlipAttrs>(),
                  .infer = infer_same,
                  .sbp = sbp_flip,
                  .grad = grad_flip};
const OpDef kPad{.name = "pad",
                 .attrs = attrs_def<PadAttrs>(),
                 .infer = infer_pad,
                 .sbp = sbp_pad,
                 .grad = grad_pad};
const OpDef kTril{.name = "tril",
                  .attrs = attrs_def<TriangleAttrs>(),
                  .infer = infer_triangle,
                  .sbp = sbp_triangle,
                  .grad = grad_tril};
const OpDef kTriu{.name = "triu",
                  .attrs = attrs_def<TriangleAttrs>(),
                  .infer = infer_triangle,
                  .sbp = sbp_triangle,
                  .grad = grad_triu};

void register_concat(OpTable& table) {
  for (const OpDef* op : {&kCat, &kFlip, &kPad, &kTril, &kTriu})
    table.add(*op);
}

namespace {

// Replicated padding has no size limit.
constexpr int64_t kMaxPadding = std::numeric_limits<int64_t>::max();

// Casts the tensors to the promoted dtype and drops those of shape (0) if others remain.
std::vector<Tensor> operands_of(const TensorListArg& list, const char* op, bool skips_empty) {
  if (list.tensors.empty()) {
    throw InvalidArgument(str("[", op, "] there is no tensor to join; give at least one"),
                          list.site);
  }
  const Shape empty{0};
  std::vector<Tensor> operands;
  DType dtype = list.tensors.front().dtype();
  for (const Tensor& x : list.tensors) {
    dtype = promote(dtype, x.dtype());
    if (!skips_empty || x.shape() != empty) operands.push_back(x);
  }
  if (operands.empty()) operands.push_back(list.tensors.front());
  for (Tensor& x : operands) {
    if (x.dtype() != dtype) x = cast({x, list.site}, dtype);
  }
  return operands;
}

Tensor join(const std::vector<Tensor>& tensors, int64_t dim, Site site) {
  std::vector<const Tensor*> inputs;
  inputs.reserve(tensors.size());
  for (const Tensor& x : tensors)
    inputs.push_back(&x);
  const CatAttrs attrs{dim};
  return dispatch_raw(kCat, inputs, &attrs, site);
}

void check_padding(const TensorArg& x, const Ints& padding, const PadOptions& options) {
  const std::string& mode = options.mode;
  if (mode != "constant" && mode != "reflect" && mode != "replicate" && mode != "circular") {
    throw InvalidArgument(str("[pad] mode '", mode,
                              "' is not known; use constant, reflect, "
                              "replicate or circular"),
                          x.site());
  }
  if (mode != "constant" && options.value != 0) {
    throw InvalidArgument(str("[pad] mode '", mode, "' takes no value; received ", options.value),
                          x.site());
  }
  const int64_t padded_dims = padding.size() / 2;
  if (mode != "constant" && x->dim() != padded_dims + 1 && x->dim() != padded_dims + 2) {
    throw InvalidArgument(
        str("[pad] mode '", mode, "' pads all dims after (N, C) or (C); received ", padding.size(),
            " numbers for shape ", x->shape(), "; give two for each of them, or add dims"),
        x.site());
  }
  if (padding.size() % 2 != 0 || padding.size() > 2 * x->dim()) {
    throw InvalidArgument(
        str("[pad] padding holds two numbers for each of the last dims; received ", padding.size(),
            " numbers for shape ", x->shape(), "; give (before, after) of the last dim first"),
        x.site());
  }
  constexpr int64_t kMost = int64_t{1} << 61;
  for (const int64_t count : padding) {
    if (count >= -kMost && count <= kMost) continue;
    throw InvalidArgument(
        str("[pad] padding ", count, " is not a number of elements; received ", padding.size(),
            " numbers for shape ", x->shape(), "; give numbers of at most ", kMost),
        x.site());
  }
}

BorderMode border_mode(const std::string& mode) {
  if (mode == "reflect") return BorderMode::kReflect;
  return mode == "replicate" ? BorderMode::kReplicate : BorderMode::kCircular;
}

void check_border(const TensorArg& x, int64_t dim, int64_t before, int64_t after,
                  const std::string& mode) {
  const int64_t size = x->shape()[dim];
  const int64_t most = mode == "reflect" ? size - 1 : mode == "circular" ? size : kMaxPadding;
  if (size == 0 || std::max(before, after) > most) {
    throw InvalidArgument(
        str("[pad] mode '", mode, "' adds at most ", most, " elements to dim ", dim, " of shape ",
            x->shape(), "; received padding (", before, ", ", after, ")"),
        x.site());
  }
}

// Returns y without the elements that negative numbers of `padding` remove. `x` is what pad() got.
Tensor without_cut(const TensorArg& x, const Tensor& y, const Ints& padding) {
  Tensor rest = y;
  for (int64_t i = 0; i < padding.size() / 2; ++i) {
    const int64_t dim = x->dim() - 1 - i;
    const int64_t front = std::max<int64_t>(0, -padding[2 * i]);
    const int64_t back = std::max<int64_t>(0, -padding[2 * i + 1]);
    const int64_t left = y.size(dim) - front - back;
    if (left < 0) {
      throw InvalidArgument(str("[pad] padding (", padding[2 * i], ", ", padding[2 * i + 1],
                                ") removes more elements than dim ", dim, " has; received shape ",
                                x->shape(), "; remove fewer"),
                            x.site());
    }
    if (left != y.size(dim)) rest = narrow({rest, x.site()}, dim, front, left);
  }
  return rest;
}

// Returns x with elements of x added to its dims. Devices without a kernel select them, dim by dim.
Tensor pad_from_inside(const TensorArg& x, const BorderAttrs& attrs) {
  if (x->device() == DeviceType::kCpu) return dispatch(kBorder, {&x.tensor()}, attrs, x.site());
  Tensor y = x;
  for (int64_t dim = x->dim() - 1; dim >= 0; --dim) {
    if (attrs.before[dim] + attrs.after[dim] == 0) continue;
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < x->shape()[dim] + attrs.before[dim] + attrs.after[dim]; ++i)
      positions.push_back(border_source(attrs, dim, x->shape()[dim], i));
    TensorOptions options = options_like(x);
    options.dtype = int64;
    options.sbp = {};
    const auto count = static_cast<int64_t>(positions.size());
    y = index_select({y, x.site()}, dim, tensor(positions, {count}, options, x.site()));
  }
  return y;
}

// True if all dims can be repeated by one copy, whose rows are not short.
bool repeats_long_rows(const Tensor& x, const Ints& repeats) {
  constexpr int64_t kLong = 64;
  int64_t num_dims = x.dim();
  for (const int64_t count : repeats)
    num_dims += count == 1 ? 0 : 1;
  return num_dims > x.dim() && num_dims <= kMaxDims && x.size(-1) >= kLong;
}

// (m, n) -> (1, m, 1, n) -> (counts[0], m, counts[1], n) -> (counts[0] * m, counts[1] * n)
Tensor repeat_at_once(const TensorArg& x, const Ints& counts) {
  Shape narrow_shape;
  Shape wide;
  Shape shape = x->shape();
  for (int64_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 1) {
      narrow_shape.push_back(1);
      wide.push_back(counts[i]);
    }
    narrow_shape.push_back(shape[i]);
    wide.push_back(shape[i]);
    shape[i] *= counts[i];
  }
  const Tensor spread = reshape(x, narrow_shape);
  const Tensor laid_out = clone({expand({spread, x.site()}, wide), x.site()});
  return reshape({laid_out, x.site()}, shape);
}

// All diagonals outside the matrix mean the same, and one next to it cannot overflow in a kernel.
TriangleAttrs triangle_attrs(const TensorArg& x, int64_t diagonal) {
  if (x->dim() < 2) return {diagonal};  // an error of the shape rule
  return {std::clamp(diagonal, -x->size(-2), x->size(-1))};
}

}  // namespace

}  // namespace ops

Tensor cat(const TensorListArg& tensors, int64_t dim) {
  return ops::located(tensors.site, [&]() -> Tensor {
    const std::vector<Tensor> operands = ops::operands_of(tensors, "cat", true);
    const int64_t ndim = operands.front().dim();
    if (ndim == 0) {
      throw InvalidArgument(
          "[cat] scalars have no dim to join along; received a tensor of shape (); "
          "use stack",
          tensors.site);
    }
    return ops::join(operands, normalize_dim(dim, ndim, "cat"), tensors.site);
  });
}

Tensor concat(const TensorListArg& tensors, int64_t dim) {
  return ops::named("concat", tensors.site, [&]() -> Tensor { return cat(tensors, dim); });
}

Tensor stack(const TensorListArg& tensors, int64_t dim) {
  return ops::located(tensors.site, [&]() -> Tensor {
    std::vector<Tensor> operands = ops::operands_of(tensors, "stack", false);
    const Shape& shape = operands.front().shape();
    const int64_t d = normalize_dim(dim, shape.size() + 1, "stack");
    for (Tensor& x : operands) {
      if (x.shape() != tensors.tensors.front().shape()) {
        throw InvalidArgument(str("[stack] tensors must have the same shape; received ",
                                  tensors.tensors.front().shape(), " and ", x.shape()),
                              tensors.site);
      }
      x = unsqueeze({x, tensors.site}, d);
    }
    return ops::join(operands, d, tensors.site);
  });
}

Tensor repeat(const TensorArg& x, const Ints& repeats) {
  const int64_t added = repeats.size() - x->dim();
  bool is_valid = added >= 0;
  for (const int64_t count : repeats)
    is_valid &= count >= 0;
  if (!is_valid) {
    throw InvalidArgument(str("[repeat] one count >= 0 is needed for each dim of shape ",
                              x->shape(), "; received ", Shape(repeats.values())),
                          x.site());
  }
  Tensor y = x;
  for (int64_t i = 0; i < repeats.size(); ++i) {
    if (i < added) y = unsqueeze({y, x.site()}, 0);
  }
  if (ops::repeats_long_rows(y, repeats)) return ops::repeat_at_once({y, x.site()}, repeats);
  // (n) -> (1, n) -> (count, n) -> (count * n), one dim at a time, because the number of dims is
  // limited. The last dim comes first, so that most copies are small and their rows long.
  bool is_copied = false;
  for (int64_t i = repeats.size() - 1; i >= 0; --i) {
    if (repeats[i] == 1) continue;
    Shape shape = y.shape();
    const int64_t size = shape[i];
    Shape wide = shape;
    shape[i] = repeats[i] * size;
    wide.insert(i, repeats[i]);
    const Tensor laid_out =
        clone({expand({unsqueeze({y, x.site()}, i), x.site()}, wide), x.site()});
    y = reshape({laid_out, x.site()}, shape);
    is_copied = true;
  }
  return is_copied ? y : clone({y, x.site()});
}

Tensor tile(const TensorArg& x, const Ints& repeats) {
  return ops::named("tile", x.site(), [&]() -> Tensor {
    std::vector<int64_t> counts = repeats.values();
    while (static_cast<int64_t>(counts.size()) < x->dim())
      counts.insert(counts.begin(), 1);
    return repeat(x, std::move(counts));
  });
}

Tensor flip(const TensorArg& x, const Ints& dims) {
  return ops::located(x.site(), [&]() -> Tensor {
    const ops::FlipAttrs attrs{dims.empty() ? Shape()
                                            : ops::reduction_dims(dims, x->dim(), "flip")};
    return dispatch(ops::kFlip, {&x.tensor()}, attrs, x.site());
  });
}

Tensor roll(const TensorArg& x, const Ints& shifts, const Ints& dims) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (dims.empty()) {
      if (shifts.size() != 1) {
        throw InvalidArgument(str("[roll] without dims there is one shift; received ",
                                  Shape(shifts.values()), "; name a dim for each"),
                              x.site());
      }
      return reshape({roll({reshape(x, {-1}), x.site()}, shifts, 0), x.site()}, x->shape());
    }
    if (shifts.size() != dims.size()) {
      throw InvalidArgument(str("[roll] each dim needs one shift; received shifts ",
                                Shape(shifts.values()), " and dims ", Shape(dims.values())),
                            x.site());
    }
    if (x->dim() == 0) {
      throw InvalidArgument(
          str("[roll] a scalar has no dim to roll along; received ", x->meta(), "; leave out dims"),
          x.site());
    }
    Tensor y = x;
    for (int64_t i = 0; i < dims.size(); ++i) {
      const int64_t dim = normalize_dim(dims[i], x->dim(), "roll");
      const int64_t size = x->shape()[dim];
      const int64_t shift = size == 0 ? 0 : (shifts[i] % size + size) % size;
      if (shift == 0) continue;
      const TensorArg now(y, x.site());
      y = ops::join({narrow(now, dim, size - shift, shift), narrow(now, dim, 0, size - shift)}, dim,
                    x.site());
    }
    return y.is_same(x) ? clone(x) : y;
  });
}

Tensor pad(const TensorArg& x, const Ints& padding, const PadOptions& options) {
  ops::check_padding(x, padding, options);
  ops::PadAttrs attrs{Shape::filled(x->dim(), 0), Shape::filled(x->dim(), 0), options.value};
  for (int64_t i = 0; i < padding.size() / 2; ++i) {
    const int64_t dim = x->dim() - 1 - i;
    attrs.before[dim] = std::max<int64_t>(0, padding[2 * i]);
    attrs.after[dim] = std::max<int64_t>(0, padding[2 * i + 1]);
  }
  if (options.mode == "constant") {
    const bool is_whole = std::trunc(options.value) == options.value;
    const bool fits = is_whole && std::abs(options.value) < 0x1p63;
    const Scalar value = fits ? Scalar(static_cast<int64_t>(options.value)) : options.value;
    ops::check_fill_value(x->dtype(), value, "pad", x.site());
    const Tensor y = ops::without_cut(x, x, padding);
    return dispatch(ops::kPad, {&y}, attrs, x.site());
  }
  // Elements that are cut off may be those that the other side repeats. A circle consists of what
  // is left.
  const bool cuts_first = options.mode == "circular";
  Tensor y = cuts_first ? ops::without_cut(x, x, padding) : x.tensor();
  bool is_padded = false;
  for (int64_t dim = x->dim() - 1; dim >= 0; --dim) {
    if (attrs.before[dim] + attrs.after[dim] == 0) continue;
    ops::check_border({y, x.site()}, dim, attrs.before[dim], attrs.after[dim], options.mode);
    is_padded = true;
  }
  if (is_padded) {
    y = ops::pad_from_inside({y, x.site()},
                             {attrs.before, attrs.after, ops::border_mode(options.mode)});
  }
  if (!cuts_first) y = ops::without_cut(x, y, padding);
  return is_padded ? y : clone({y, x.site()});
}

Tensor tril(const TensorArg& x, int64_t diagonal) {
  return dispatch(ops::kTril, {&x.tensor()}, ops::triangle_attrs(x, diagonal), x.site());
}

Tensor triu(const TensorArg& x, int64_t diagonal) {
  return dispatch(ops::kTriu, {&x.tensor()}, ops::triangle_attrs(x, diagonal), x.site());
}

Tensor ShapeMethods::repeat(const Ints& repeats, Site site) const {
  return flow::repeat(TensorArg(self(), site), repeats);
}

Tensor ShapeMethods::tile(const Ints& repeats, Site site) const {
  return flow::tile(TensorArg(self(), site), repeats);
}

Tensor ShapeMethods::flip(const Ints& dims, Site site) const {
  return flow::flip(TensorArg(self(), site), dims);
}

Tensor ShapeMethods::roll(const Ints& shifts, const Ints& dims, Site site) const {
  return flow::roll(TensorArg(self(), site), shifts, dims);
}

Tensor ShapeMethods::tril(int64_t diagonal, Site site) const {
  return flow::tril(TensorArg(self(), site), diagonal);
}

Tensor ShapeMethods::triu(int64_t diagonal, Site site) const {
  return flow::triu(TensorArg(self(), site), diagonal);
}

}  // namespace flow
