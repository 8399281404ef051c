// Padding with a tensor's own elements.
#include <algorithm>
#include <cstdlib>

#include "core/dispatch.h"
#include "ops/shape/border_op.h"
#include "ops/shape/view_op.h"

namespace flow::ops {

int64_t border_source(const BorderAttrs& attrs, int64_t dim, int64_t size, int64_t i) {
  const int64_t at = i - attrs.before[dim];
  switch (attrs.mode) {
    case BorderMode::kReflect:
      return size - 1 - std::abs(size - 1 - std::abs(at));
    case BorderMode::kReplicate:
      return std::clamp<int64_t>(at, 0, size - 1);
    case BorderMode::kCircular:
      break;
  }
  return at < 0 ? at + size : at >= size ? at - size : at;
}

namespace {

// The number of elements that may be added to one end of a dim of `size` elements.
int64_t most_added(BorderMode mode, int64_t size) {
  if (mode == BorderMode::kReplicate) return size == 0 ? 0 : INT64_MAX;
  return mode == BorderMode::kReflect ? size - 1 : size;
}

void check_added(const OpContext& ctx, const Shape& x) {
  const auto& attrs = ctx.attrs<BorderAttrs>();
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t added = std::max(attrs.before[i], attrs.after[i]);
    ctx.check(added == 0 || added <= most_added(attrs.mode, x[i]), "dim ", i,
              " is too small for padding (", attrs.before[i], ", ", attrs.after[i], ")");
  }
}

void infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<BorderAttrs>();
  Shape shape = ctx.input(0).shape;
  check_added(ctx, shape);
  for (int64_t i = 0; i < shape.size(); ++i) {
    ctx.check(!__builtin_add_overflow(shape[i], attrs.before[i] + attrs.after[i], &shape[i]),
              "padding (", attrs.before[i], ", ", attrs.after[i], ") makes dim ", i,
              " larger than can be addressed; add fewer elements");
  }
  ctx.add_output(shape, ctx.input(0).dtype);
}

void infer_backward(InferContext& ctx) {
  const auto& attrs = ctx.attrs<BorderAttrs>();
  ctx.check(is_floating(ctx.input(0).dtype), "takes a floating dtype; cast the gradient");
  Shape shape = ctx.input(0).shape;
  for (int64_t i = 0; i < shape.size(); ++i)
    shape[i] -= attrs.before[i] + attrs.after[i];
  check_added(ctx, shape);
  ctx.add_output(shape, ctx.input(0).dtype);
}

void add_splits(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<BorderAttrs>();
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (attrs.before[i] == 0 && attrs.after[i] == 0) ctx.add({sbp::split(i)}, {sbp::split(i)});
  }
}

// Each element of y is an element of x.
void sbp_border(SbpContext& ctx) {
  add_splits(ctx);
  add_all_partials(ctx);
}

void sbp_backward(SbpContext& ctx) {
  add_splits(ctx);
  ctx.add({sbp::partial_sum}, {sbp::partial_sum});
}

// y = A x:  dx = A^T dy
template <const OpDef& kAdjoint>
void grad(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  ctx.set(0, dispatch(kAdjoint, {&ctx.dy()}, ctx.attrs<BorderAttrs>(), Site::here()));
}

}  // namespace

const OpDef kBorder{.name = "border",
                    .attrs = attrs_def<BorderAttrs>(),
                    .infer = infer,
                    .sbp = sbp_border,
                    .grad = grad<kBorderBackward>};

const OpDef kBorderBackward{.name = "border_backward",
                            .attrs = attrs_def<BorderAttrs>(),
                            .infer = infer_backward,
                            .sbp = sbp_backward,
                            .grad = grad<kBorder>};

void register_border(OpTable& table);

void register_border(OpTable& table) {
  table.add(kBorder);
  table.add(kBorderBackward);
}

}  // namespace flow::ops
