#include "ops/index/sort.h"

#include <array>

#include "core/dispatch.h"
#include "ops/index/gather_op.h"
#include "ops/index/sort_op.h"
#include "ops/named_errors.h"

namespace flow {

namespace ops {

namespace {

void infer_sort(InferContext& ctx) {
  ctx.add_output_like(0);
  ctx.add_output(ctx.input(0).shape, DType::kInt64);
}

void infer_topk(InferContext& ctx) {
  const auto& attrs = ctx.attrs<TopkAttrs>();
  Shape shape = ctx.input(0).shape;
  const int64_t size = shape.empty() ? 1 : shape[attrs.dim];
  ctx.check(attrs.k >= 0 && attrs.k <= size, "k is ", attrs.k, "; dim ", attrs.dim, " has ", size,
            " elements; give a k from 0 to that number");
  if (!shape.empty()) shape[attrs.dim] = attrs.k;
  ctx.add_output(shape, ctx.input(0).dtype);
  ctx.add_output(shape, DType::kInt64);
}

// Lines along `dim` are independent of each other.
template <class Attrs>
void sbp_lines(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (i != ctx.attrs<Attrs>().dim) ctx.add({sbp::split(i)}, {sbp::split(i), sbp::split(i)});
  }
}

// dx = dy at the positions of the values.
template <class Attrs>
void grad_lines(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Shape& shape = ctx.input_meta(0)->shape;
  ctx.set(0, shape.empty() ? ctx.dy()
                           : ungather(ctx.dy(), ctx.attrs<Attrs>().dim, ctx.output(1), shape));
}

}  // namespace

const OpDef kSort{.name = "sort",
                  .num_outputs = 2,
                  .attrs = attrs_def<SortAttrs>(),
                  .infer = infer_sort,
                  .sbp = sbp_lines<SortAttrs>,
                  .grad = grad_lines<SortAttrs>,
                  .saved_outputs = 0b10};
const OpDef kTopk{.name = "topk",
                  .num_outputs = 2,
                  .attrs = attrs_def<TopkAttrs>(),
                  .infer = infer_topk,
                  .sbp = sbp_lines<TopkAttrs>,
                  .grad = grad_lines<TopkAttrs>,
                  .saved_outputs = 0b10};

void register_sort(OpTable& table) {
  table.add(kSort);
  table.add(kTopk);
}

}  // namespace ops

ValuesIndices sort(const TensorArg& x, const SortOptions& options) {
  return ops::located(x.site(), [&]() -> ValuesIndices {
    const ops::SortAttrs attrs{normalize_dim(options.dim, x->dim(), "sort"), options.descending};
    std::array<Tensor, 2> outputs = dispatch_multi<2>(ops::kSort, {&x.tensor()}, attrs, x.site());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

Tensor argsort(const TensorArg& x, const SortOptions& options) {
  return ops::named("argsort", x.site(), [&]() -> Tensor { return sort(x, options).indices; });
}

ValuesIndices topk(const TensorArg& x, int64_t k, const TopkOptions& options) {
  return ops::located(x.site(), [&]() -> ValuesIndices {
    const ops::TopkAttrs attrs{k, normalize_dim(options.dim, x->dim(), "topk"), options.largest};
    std::array<Tensor, 2> outputs = dispatch_multi<2>(ops::kTopk, {&x.tensor()}, attrs, x.site());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

ValuesIndices ReduceMethods::sort(Site site) const {
  return flow::sort(TensorArg(self(), site));
}

ValuesIndices ReduceMethods::sort(const SortOptions& options, Site site) const {
  return flow::sort(TensorArg(self(), site), options);
}

Tensor ReduceMethods::argsort(Site site) const {
  return flow::argsort(TensorArg(self(), site));
}

Tensor ReduceMethods::argsort(const SortOptions& options, Site site) const {
  return flow::argsort(TensorArg(self(), site), options);
}

ValuesIndices ReduceMethods::topk(int64_t k, Site site) const {
  return flow::topk(TensorArg(self(), site), k);
}

ValuesIndices ReduceMethods::topk(int64_t k, const TopkOptions& options, Site site) const {
  return flow::topk(TensorArg(self(), site), k, options);
}

}  // namespace flow
