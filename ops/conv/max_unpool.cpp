#include "ops/conv/max_unpool.h"

#include "core/dispatch.h"
#include "ops/conv/max_unpool_op.h"
#include "ops/conv/window.h"
#include "ops/index/gather.h"
#include "ops/named_errors.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {
namespace {

void infer(InferContext& ctx) {
  const TensorMeta& x = ctx.input(0);
  const TensorMeta& indices = ctx.input(1);
  ctx.check(x.dim() > 0 && is_floating(x.dtype), "takes floating dtypes; cast the input");
  ctx.check(indices.dtype == DType::kInt64 && indices.shape == x.shape,
            "indices must be int64 and have the shape of the input; give those that the pooling "
            "returned");
  Shape y = x.shape;
  y[y.size() - 1] = ctx.attrs<MaxUnpoolAttrs>().size;
  ctx.add_output(y, x.dtype);
}

// Planes are independent. Elements are only moved, and the rest is zero.
void sbp(SbpContext& ctx) {
  for (int64_t i = 0; i + 1 < ctx.input(0).dim(); ++i)
    ctx.add({sbp::split(i), sbp::split(i)}, {sbp::split(i)});
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, sbp::broadcast}, {partial});
}

// dx[..., i] = dy[..., indices[..., i]]
void grad(GradContext& ctx) {
  if (!ctx.needs(0) || !ctx.dy().defined()) return;
  ctx.set(0, gather(ctx.dy(), -1, ctx.input(1)));
}

}  // namespace

const OpDef kMaxUnpool{.name = "max_unpool",
                       .num_inputs = 2,
                       .attrs = attrs_def<MaxUnpoolAttrs>(),
                       .infer = infer,
                       .sbp = sbp,
                       .grad = grad,
                       .saved_inputs = 0b10};

void register_max_unpool(OpTable& table);

void register_max_unpool(OpTable& table) {
  table.add(kMaxUnpool);
}

}  // namespace ops

namespace {

using ops::SpatialInts;

// Returns the last dims of y. Throws InvalidArgument if output_size is not a size that pools to x.
Shape unpooled_size(const char* name, const TensorArg& x, int64_t num_dims, const Ints& kernel,
                    const MaxUnpoolOptions& options) {
  const Ints& steps = options.stride.empty() ? kernel : options.stride;
  const SpatialInts window = ops::spatial_numbers(kernel, num_dims, 1, 1, name, "kernel");
  const SpatialInts stride = ops::spatial_numbers(steps, num_dims, 1, 1, name, "stride");
  const SpatialInts padding =
      ops::spatial_numbers(options.padding, num_dims, 0, 0, name, "padding");
  const int64_t given = options.output_size.size();
  if (given != 0 && given != num_dims && given != x->dim()) {
    throw InvalidArgument(
        str("[", name, "] output_size has ", num_dims, " numbers, or ", x->dim(),
            " with the leading dims; received ", given, "; give the sizes before pooling"),
        x.site());
  }
  Shape size;
  for (int64_t i = 0; i < num_dims; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t in = x->shape()[x->dim() - num_dims + i];
    const int64_t usual = (in - 1) * stride[at] - 2 * padding[at] + window[at];
    const int64_t wanted = given == 0 ? usual : options.output_size[given - num_dims + i];
    if (wanted < 0 || wanted <= usual - stride[at] || wanted >= usual + stride[at]) {
      throw InvalidArgument(str("[", name, "] ", in, " elements cannot be unpooled to ", wanted,
                                "; give output_size between ", usual - stride[at] + 1, " and ",
                                usual + stride[at] - 1),
                            x.site());
    }
    size.push_back(wanted);
  }
  return size;
}

// Returns x with its last dims merged into one.
Tensor flat_planes(const TensorArg& x, int64_t num_dims) {
  return flatten(x, x->dim() - num_dims, -1);
}

Tensor unpool(const char* name, int64_t num_dims, const TensorArg& x, const TensorArg& indices,
              const Ints& kernel, const MaxUnpoolOptions& options) {
  const Site site = x.site();
  if (!is_floating(x->dtype()) || (x->dim() != num_dims + 1 && x->dim() != num_dims + 2)) {
    throw InvalidArgument(str("[", name, "] takes floating tensors with ", num_dims,
                              " spatial dims after (N, C) or (C); received ", x->meta()),
                          site);
  }
  if (indices->dtype() != DType::kInt64 || !(indices->shape() == x->shape())) {
    throw InvalidArgument(
        str("[", name, "] indices are int64 and have the shape of the input ", x->shape(),
            "; received ", indices->meta(), "; give those of the pooling"),
        site);
  }
  const Shape size = unpooled_size(name, x, num_dims, kernel, options);
  const Tensor values = flat_planes(x, num_dims);
  const Tensor places = flat_planes({indices, site}, num_dims);
  const ops::MaxUnpoolAttrs attrs{size.numel(), num_dims};
  const Tensor y = dispatch(ops::kMaxUnpool, {&values, &places}, attrs, site);
  Shape shape = x->shape();
  for (int64_t i = 0; i < num_dims; ++i)
    shape[x->dim() - num_dims + i] = size[i];
  return reshape({y, site}, shape);
}

}  // namespace

Tensor max_unpool1d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options) {
  return ops::located(x.site(),
                      [&] { return unpool("max_unpool1d", 1, x, indices, kernel, options); });
}

Tensor max_unpool2d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options) {
  return ops::located(x.site(),
                      [&] { return unpool("max_unpool2d", 2, x, indices, kernel, options); });
}

Tensor max_unpool3d(const TensorArg& x, const TensorArg& indices, const Ints& kernel,
                    const MaxUnpoolOptions& options) {
  return ops::located(x.site(),
                      [&] { return unpool("max_unpool3d", 3, x, indices, kernel, options); });
}

}  // namespace flow
