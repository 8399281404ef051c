#include "ops/linear/attention.h"

#include <algorithm>
#include <cmath>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/linear/attention_op.h"
#include "ops/linear/matmul.h"
#include "ops/named_errors.h"
#include "ops/norm/softmax.h"
#include "ops/random/dropout.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace ops {
namespace {

DType score_dtype(DType operand) {
  return is_half(operand) ? DType::kFloat32 : operand;
}

// Returns true if all dims except the last two are equal.
bool same_batch(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

// q, k, v are inputs `first` ... `first` + 2.
void check_operands(const OpContext& ctx, int first) {
  const TensorMeta& q = ctx.input(first);
  const TensorMeta& k = ctx.input(first + 1);
  const TensorMeta& v = ctx.input(first + 2);
  ctx.check(is_floating(q.dtype) && k.dtype == q.dtype && v.dtype == q.dtype,
            "query, key and value must have one floating dtype");
  ctx.check(q.dim() >= 2 && same_batch(q.shape, k.shape) && same_batch(q.shape, v.shape),
            "query, key and value must be (..., rows, width) with the same leading dims");
  ctx.check(q.shape.back() == k.shape.back(), "query and key have widths ", q.shape.back(), " and ",
            k.shape.back(), "; they must be equal");
  ctx.check(k.shape[k.dim() - 2] == v.shape[v.dim() - 2],
            "key and value must have one row for each source position");
}

Shape output_shape(const Shape& q, const Shape& v) {
  Shape shape = q;
  shape[q.size() - 1] = v.back();
  return shape;
}

Shape row_shape(Shape q) {
  q.erase(q.size() - 1);
  return q;
}

void infer_attention(InferContext& ctx) {
  check_operands(ctx, 0);
  const TensorMeta& q = ctx.input(0);
  ctx.add_output(output_shape(q.shape, ctx.input(2).shape), q.dtype);
  ctx.add_output(row_shape(q.shape), score_dtype(q.dtype));
}

// Batches and queries are independent. Columns of the values are independent too, and the result is
// linear in them.
void sbp_attention(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t rows = ctx.input(0).dim() - 2;
  for (int64_t i = 0; i < rows; ++i)
    ctx.add({split(i), split(i), split(i)}, {split(i), split(i)});
  const bool is_causal = ctx.attrs<AttentionAttrs>().is_causal;
  ctx.add({{split(rows), broadcast, broadcast}, {split(rows), split(rows)}, is_causal});
  ctx.add({broadcast, broadcast, split(rows + 1)}, {split(rows + 1), broadcast});
  ctx.add({broadcast, broadcast, partial_sum}, {partial_sum, broadcast});
}

Tensor transposed(const Tensor& x) {
  return x.transpose(-2, -1);
}

// exp(scores - logsumexp), 0 where masked.
Tensor weights_of(const Tensor& q, const Tensor& k, const Tensor& lse,
                  const AttentionAttrs& attrs) {
  const Tensor scores = mul(matmul(q, transposed(k)), attrs.scale);
  Tensor weights = exp(sub(scores, lse.unsqueeze(-1)));
  if (!attrs.is_causal) return weights;
  const TensorOptions options = ops::whole_like(q, DType::kInt64);
  const Tensor query = arange(q.size(-2), options).unsqueeze(-1);
  return where(ge(query, arange(k.size(-2), options)), weights, 0);
}

std::array<Tensor, 3> backward(const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v,
                               const Tensor& y, const Tensor& lse, const AttentionAttrs& attrs) {
  return dispatch_multi<3>(kAttentionBackward, {&dy, &q, &k, &v, &y, &lse}, attrs, Site::here());
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return a.defined() ? add(a, b) : b;
}

// With p the weights and d = sum(dy y) of each row:  ds = p (dy v^T - d + dlse),
// dq = scale ds k,  dk = scale ds^T q,  dv = p^T dy
void grad_attention(GradContext& ctx) {
  const auto& attrs = ctx.attrs<AttentionAttrs>();
  const Tensor q = ctx.input(0);
  const Tensor k = ctx.input(1);
  std::array<Tensor, 3> dx;
  if (ctx.dy(0).defined()) {
    dx = backward(ctx.dy(0), q, k, ctx.input(2), ctx.output(0), ctx.output(1), attrs);
  }
  if (ctx.dy(1).defined()) {
    const DType dtype = ctx.output(1).dtype();
    const Tensor p = weights_of(q.to(dtype), k.to(dtype), ctx.output(1), attrs);
    const Tensor ds = mul(mul(p, ctx.dy(1).unsqueeze(-1)), attrs.scale);
    dx[0] = sum_of(dx[0], matmul(ds, k.to(dtype)).to(q.dtype()));
    dx[1] = sum_of(dx[1], matmul(transposed(ds), q.to(dtype)).to(q.dtype()));
  }
  for (int i = 0; i < 3; ++i) {
    const Tensor& gradient = dx[static_cast<size_t>(i)];
    if (ctx.needs(i) && gradient.defined()) ctx.set(i, gradient);
  }
}

void infer_backward(InferContext& ctx) {
  check_operands(ctx, 1);
  const TensorMeta& q = ctx.input(1);
  const Shape y = output_shape(q.shape, ctx.input(3).shape);
  ctx.check(ctx.input(0).shape == y && ctx.input(4).shape == y && ctx.input(0).dtype == q.dtype &&
                ctx.input(4).dtype == q.dtype && ctx.input(5).shape == row_shape(q.shape) &&
                ctx.input(5).dtype == score_dtype(q.dtype),
            "result, its gradient and logsumexp must be those of the operands");
  for (int i = 1; i < 4; ++i)
    ctx.add_output_like(i);
}

// The same as forward. Queries add up in dk and dv, keys in dq, and columns of the values in the
// scores' gradient, which is linear in dy and in (v, y) together.
void sbp_backward(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t rows = ctx.input(1).dim() - 2;
  for (int64_t i = 0; i < rows; ++i)
    ctx.add(std::vector<Sbp>(6, split(i)), std::vector<Sbp>(3, split(i)));
  const Sbp row = split(rows);
  const Sbp column = split(rows + 1);
  const bool is_causal = ctx.attrs<AttentionAttrs>().is_causal;
  ctx.add({{row, row, broadcast, broadcast, row, row}, {row, partial_sum, partial_sum}, is_causal});
  ctx.add(
      {{broadcast, broadcast, row, row, broadcast, broadcast}, {partial_sum, row, row}, is_causal});
  ctx.add({column, broadcast, broadcast, column, column, broadcast},
          {partial_sum, partial_sum, column});
  ctx.add({partial_sum, broadcast, broadcast, broadcast, broadcast, broadcast},
          {partial_sum, partial_sum, partial_sum});
  ctx.add({broadcast, broadcast, broadcast, partial_sum, partial_sum, broadcast},
          {partial_sum, partial_sum, broadcast});
}

// With upstream (u, w, z) of (dq, dk, dv), a = scale (u k^T + q w^T) that of ds, b = a p that of
// dy v^T, e = -sum(b) of each row that of d, and c = p (a (dy v^T - d) + dy z^T) that of the
// scores:
//   d(dy) = p z + b v + e y,  dq = scale (c k + ds w),  dk = scale (c^T q + ds^T u),
//   dv = b^T dy,  dy_saved = e dy,  dlse = -sum(c)
void grad_backward(GradContext& ctx) {
  const auto& attrs = ctx.attrs<AttentionAttrs>();
  const Tensor dy = ctx.input(0);
  const Tensor q = ctx.input(1);
  const Tensor k = ctx.input(2);
  const Tensor v = ctx.input(3);
  const Tensor y = ctx.input(4);
  const Tensor& u = ctx.dy(0);
  const Tensor& w = ctx.dy(1);
  const Tensor& z = ctx.dy(2);
  if (!u.defined() && !w.defined() && !z.defined()) return;
  const Tensor p = weights_of(q, k, ctx.input(5), attrs).to(q.dtype());
  const Tensor d = sum(mul(dy, y), -1, {.keepdim = true});
  const Tensor excess = sub(matmul(dy, transposed(v)), d);
  Tensor a;
  if (u.defined()) a = matmul(u, transposed(k));
  if (w.defined()) a = sum_of(a, matmul(q, transposed(w)));
  Tensor b;
  Tensor e;
  Tensor upstream_p;
  if (a.defined()) {
    a = mul(a, attrs.scale);
    b = mul(a, p);
    e = neg(sum(b, -1, {.keepdim = true}));
    upstream_p = mul(a, excess);
  }
  if (z.defined()) upstream_p = sum_of(upstream_p, matmul(dy, transposed(z)));
  const Tensor c = mul(p, upstream_p);
  const Tensor ds = mul(p, excess);
  Tensor ddy;
  if (a.defined()) ddy = add(matmul(b, v), mul(e, y));
  if (z.defined()) ddy = sum_of(ddy, matmul(p, z));
  if (ctx.needs(0)) ctx.set(0, ddy);
  Tensor dq = matmul(c, k);
  if (w.defined()) dq = add(dq, matmul(ds, w));
  if (ctx.needs(1)) ctx.set(1, mul(dq, attrs.scale));
  Tensor dk = matmul(transposed(c), q);
  if (u.defined()) dk = add(dk, matmul(transposed(ds), u));
  if (ctx.needs(2)) ctx.set(2, mul(dk, attrs.scale));
  if (a.defined()) {
    if (ctx.needs(3)) ctx.set(3, matmul(transposed(b), dy));
    if (ctx.needs(4)) ctx.set(4, mul(e, dy));
  }
  if (ctx.needs(5)) ctx.set(5, neg(sum(c, -1)).to(ctx.input_meta(5)->dtype));
}

// The multiply-adds of the products, halved if causal.
double product_flops(const SbpContext& ctx, int q, int products) {
  const Shape& shape = ctx.input(q).shape;
  const double scores = static_cast<double>(row_shape(shape).numel()) *
                        static_cast<double>(ctx.input(q + 1).shape[shape.size() - 2]);
  const double all = 2.0 * products * scores * static_cast<double>(shape.back());
  return ctx.attrs<AttentionAttrs>().is_causal ? all / 2 : all;
}

Cost cost_attention(const SbpContext& ctx) {
  return {.flops = product_flops(ctx, 0, 2)};
}

Cost cost_backward(const SbpContext& ctx) {
  return {.flops = product_flops(ctx, 1, 5)};
}

}  // namespace

const OpDef kAttention{.name = "attention",
                       .num_inputs = 3,
                       .num_outputs = 2,
                       .attrs = attrs_def<AttentionAttrs>(),
                       .infer = infer_attention,
                       .sbp = sbp_attention,
                       .grad = grad_attention,
                       .cost = cost_attention,
                       .saved_inputs = 0b111,
                       .saved_outputs = 0b11,
                       .autocast = AutocastRule::kLower};

const OpDef kAttentionBackward{.name = "attention_backward",
                               .num_inputs = 6,
                               .num_outputs = 3,
                               .attrs = attrs_def<AttentionAttrs>(),
                               .infer = infer_backward,
                               .sbp = sbp_backward,
                               .grad = grad_backward,
                               .cost = cost_backward,
                               .saved_inputs = 0b111111};

void register_attention(OpTable& table);

void register_attention(OpTable& table) {
  table.add(kAttention);
  table.add(kAttentionBackward);
}

}  // namespace ops

namespace {

// Returns `x` with all leading dims expanded to `batch`.
Tensor with_batch(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return shape == x.shape() ? x : x.expand(shape);
}

Shape batch_of(const Tensor& x) {
  Shape shape = x.shape();
  shape.erase(shape.size() - 1);
  shape.erase(shape.size() - 1);
  return shape;
}

// Returns `x` with each of its heads (dim -3) repeated to give `heads` heads.
Tensor with_heads(const TensorArg& x, int64_t heads) {
  const int64_t own = x->dim() < 3 ? 0 : x->size(-3);
  if (own == 0 || heads % own != 0) {
    throw InvalidArgument(str("[scaled_dot_product_attention] enable_gqa takes (..., heads, rows, ",
                              "width), the query's heads a multiple of the others'; received ",
                              heads, " heads and ", x->meta()),
                          x.site());
  }
  if (own == heads) return x;
  Shape repeated = x->shape();
  repeated.insert(repeated.size() - 2, heads / own);
  Shape joined = x->shape();
  joined[joined.size() - 3] = heads;
  return x->unsqueeze(-3, x.site()).expand(repeated, x.site()).reshape(joined, x.site());
}

// True for each query that sees any key: (..., T or 1, 1).
Tensor sees_a_key(const Tensor& mask) {
  if (mask.dtype() == DType::kBool) return any(mask, -1, {.keepdim = true});
  return ne(amax(mask, -1, {.keepdim = true}), -INFINITY);
}

// Broadcasting would compare one query with the rows of several.
void check_mask_sizes(const Tensor& mask, const TensorArg& query, const Tensor& key) {
  const int64_t dims = mask.defined() ? mask.dim() : 0;
  const auto fits = [&](int64_t dim, int64_t size) {
    return dims < -dim || mask.size(dim) == 1 || mask.size(dim) == size;
  };
  if (fits(-2, query->size(-2)) && fits(-1, key.size(-2))) return;
  throw InvalidArgument(
      str("[scaled_dot_product_attention] attn_mask must be (..., ", query->size(-2), ", ",
          key.size(-2), "), queries by keys; received ", mask.meta()),
      query.site());
}

// Computes the scores as a tensor, for masks and dropout. Queries that see no key are not masked,
// because softmax and its gradient would be NaN for them; their results are set to zero at the end.
Tensor explicit_attention(const TensorArg& query, const Tensor& key, const Tensor& value,
                          const AttentionOptions& options, double scale) {
  Tensor scores = matmul(mul(query, scale), key.transpose(-2, -1));
  Tensor sees;
  if (options.is_causal) {
    const TensorOptions layout = ops::whole_like(query, DType::kInt64);
    const Tensor position = arange(query->size(-2), layout).unsqueeze(-1);
    scores = where(ge(position, arange(key.size(-2), layout)), scores, -INFINITY);
  } else if (options.attn_mask.defined()) {
    Tensor mask = options.attn_mask;
    const bool is_bool = mask.dtype() == DType::kBool;
    if (key.size(-2) > 0) {
      sees = sees_a_key(mask);
      mask = is_bool ? logical_or(mask, logical_not(sees)) : where(sees, mask, 0);
    }
    scores = is_bool ? where(mask, scores, -INFINITY) : add(scores, mask);
  }
  const Tensor y = matmul(dropout(softmax(scores, -1), {.p = options.dropout_p}), value);
  return sees.defined() ? where(sees, y, 0) : y;
}

}  // namespace

Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key,
                                    const TensorArg& value, const AttentionOptions& options) {
  return ops::named("scaled_dot_product_attention", query.site(), [&]() -> Tensor {
    constexpr const char* kName = "scaled_dot_product_attention";
    if (query->dim() < 2 || key->dim() < 2 || value->dim() < 2) {
      throw InvalidArgument(str("[", kName, "] takes (..., rows, width); received ", query->meta(),
                                ", ", key->meta(), ", ", value->meta()),
                            query.site());
    }
    if (options.is_causal && options.attn_mask.defined()) {
      throw InvalidArgument(
          str("[", kName, "] is_causal and attn_mask exclude each other; give the ", "mask alone"),
          query.site());
    }
    // Products over no elements are 0 at any scale.
    const auto width = static_cast<double>(std::max<int64_t>(query->size(-1), 1));
    const double scale = options.scale.value_or(1 / std::sqrt(width));
    if (options.attn_mask.defined() && options.attn_mask.dtype() != DType::kBool &&
        !is_floating(options.attn_mask.dtype())) {
      throw InvalidArgument(
          str("[", kName, "] attn_mask must be bool (true: takes part) or floating ",
              "(added); received ", options.attn_mask.meta(), "; cast it"),
          query.site());
    }
    check_mask_sizes(options.attn_mask, query, key);
    if (options.enable_gqa) {
      if (query->dim() < 3) {
        throw InvalidArgument(str("[", kName, "] enable_gqa takes (..., heads, rows, width); ",
                                  "received ", query->meta()),
                              query.site());
      }
      AttentionOptions rest = options;
      rest.enable_gqa = false;
      const Tensor k = with_heads(key, query->size(-3));
      const Tensor v = with_heads(value, query->size(-3));
      return scaled_dot_product_attention(query, {k, key.site()}, {v, value.site()}, rest);
    }
    if (options.attn_mask.defined() || options.dropout_p != 0 || key->size(-2) == 0) {
      return explicit_attention(query, key, value, options, scale);
    }
    const Shape batch = broadcast_shapes(broadcast_shapes(batch_of(query), batch_of(key), kName),
                                         batch_of(value), kName);
    const Tensor q = with_batch(query, batch);
    const Tensor k = with_batch(key, batch);
    const Tensor v = with_batch(value, batch);
    return dispatch_multi<2>(ops::kAttention, {&q, &k, &v},
                             ops::AttentionAttrs{options.is_causal, scale}, query.site())[0];
  });
}

}  // namespace flow
