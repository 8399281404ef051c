#include "ops/linear/matmul.h"

#include <cmath>

#include "core/dispatch.h"
#include "ops/autocast.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/old_value.h"
#include "ops/linear/matmul_op.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/reduce/reduce.h"

namespace flow {
namespace ops {
namespace {

// Both operands must have the same dtype: PyTorch rejects mixed dtypes too, and a hidden cast of a
// weight would be expensive.
void check_dtypes(const OpContext& ctx) {
  const DType dtype = ctx.input(0).dtype;
  ctx.check(dtype != DType::kBool, "bool operands have no product; cast to an integer dtype");
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    if (!ctx.has_input(i)) continue;
    ctx.check(ctx.input(i).dtype == dtype, "operands have different dtypes, ", dtype, " and ",
              ctx.input(i).dtype, "; cast one of them");
  }
}

// ---- matmul

// The roles of the dims of a, b and the output; -1: absent.
struct MatmulDims {
  int64_t a_m, a_k, b_k, b_n, out_m, out_n, num_batch;
  int64_t a_shift, b_shift;  // output batch dim i is dim i - shift of a / b, absent when negative
};

MatmulDims matmul_dims(const Shape& a, const Shape& b) {
  MatmulDims dims{};
  dims.a_k = a.size() - 1;
  dims.a_m = a.size() - 2;
  dims.b_n = b.size() > 1 ? b.size() - 1 : -1;
  dims.b_k = b.size() > 1 ? b.size() - 2 : 0;
  const int64_t a_batch = std::max<int64_t>(a.size() - 2, 0);
  const int64_t b_batch = std::max<int64_t>(b.size() - 2, 0);
  dims.num_batch = std::max(a_batch, b_batch);
  dims.a_shift = dims.num_batch - a_batch;
  dims.b_shift = dims.num_batch - b_batch;
  dims.out_m = dims.a_m >= 0 ? dims.num_batch : -1;
  dims.out_n = dims.b_n >= 0 ? dims.num_batch + (dims.a_m >= 0 ? 1 : 0) : -1;
  return dims;
}

void infer_matmul(InferContext& ctx) {
  const Shape& a = ctx.input(0).shape;
  const Shape& b = ctx.input(1).shape;
  ctx.check(!a.empty() && !b.empty(), "operands need at least one dim; multiply scalars with *");
  check_dtypes(ctx);
  const MatmulDims dims = matmul_dims(a, b);
  ctx.check(a[dims.a_k] == b[dims.b_k], "inner sizes differ: ", a[dims.a_k], " and ", b[dims.b_k],
            "; the last dim of the first operand must equal the ",
            b.size() > 1 ? "second-last" : "only", " dim of the second");
  Shape out;
  for (int64_t i = 0; i < dims.num_batch; ++i) {
    const int64_t da = i < dims.a_shift ? 1 : a[i - dims.a_shift];
    const int64_t db = i < dims.b_shift ? 1 : b[i - dims.b_shift];
    ctx.check(da == db || da == 1 || db == 1, "batch sizes ", da, " and ", db,
              " do not broadcast; make them equal, or one of them 1");
    out.push_back(da == 1 ? db : da);
  }
  if (dims.a_m >= 0) out.push_back(a[dims.a_m]);
  if (dims.b_n >= 0) out.push_back(b[dims.b_n]);
  ctx.add_output(out, ctx.input(0).dtype);
}

// A product is linear in each operand, rows of a and columns of b are independent, and the sum
// over k splits into partial sums.
void sbp_matmul(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const Shape& a = ctx.input(0).shape;
  const Shape& b = ctx.input(1).shape;
  const MatmulDims dims = matmul_dims(a, b);
  for (int64_t i = 0; i < dims.num_batch; ++i) {
    const int64_t ia = i - dims.a_shift;
    const int64_t ib = i - dims.b_shift;
    const bool in_a = ia >= 0 && (ib < 0 || a[ia] != 1 || b[ib] == 1);
    const bool in_b = ib >= 0 && (ia < 0 || b[ib] != 1 || a[ia] == 1);
    ctx.add({in_a ? split(ia) : broadcast, in_b ? split(ib) : broadcast}, {split(i)});
  }
  if (dims.a_m >= 0) ctx.add({split(dims.a_m), broadcast}, {split(dims.out_m)});
  if (dims.b_n >= 0) ctx.add({broadcast, split(dims.b_n)}, {split(dims.out_n)});
  ctx.add({split(dims.a_k), split(dims.b_k)}, {partial_sum});
  ctx.add({partial_sum, broadcast}, {partial_sum});
  ctx.add({broadcast, partial_sum}, {partial_sum});
}

Tensor transposed(const Tensor& x) {
  return x.transpose(-2, -1);
}

// y = a b:  da = dy b^T,  db = a^T dy, summed over the batch dims that were broadcast. One-dim
// operands are rows (a) or columns (b) of their products.
void grad_matmul(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const MetaPtr a_meta = ctx.input_meta(0);
  const MetaPtr b_meta = ctx.input_meta(1);
  Tensor dy = ctx.dy();
  if (a_meta->dim() == 1) dy = dy.unsqueeze(b_meta->dim() == 1 ? -1 : -2);
  if (b_meta->dim() == 1) dy = dy.unsqueeze(-1);
  if (ctx.needs(0)) {
    const Tensor b = ctx.input(1);
    const Tensor da = matmul(dy, b_meta->dim() == 1 ? b.unsqueeze(0) : transposed(b));
    ctx.set(0, sum_to(da, a_meta->dim() == 1 ? Shape{1, a_meta->shape[0]} : a_meta->shape)
                   .reshape(a_meta->shape));
  }
  if (!ctx.needs(1)) return;
  const Tensor a = a_meta->dim() == 1 ? ctx.input(0).unsqueeze(0) : ctx.input(0);
  if (b_meta->dim() <= 2) {
    ctx.set(1, contract_leading(a, dy).reshape(b_meta->shape));
  } else {
    ctx.set(1, sum_to(matmul(transposed(a), dy), b_meta->shape));
  }
}

Cost matmul_cost(const SbpContext& ctx) {
  const Shape& a = ctx.input(0).shape;
  return {.flops = 2.0 * static_cast<double>(ctx.output(0).shape.numel()) *
                   static_cast<double>(a.back())};
}

// ---- linear

void infer_linear(InferContext& ctx) {
  const Shape& x = ctx.input(0).shape;
  const Shape& weight = ctx.input(1).shape;
  ctx.check(!x.empty() && weight.size() == 2,
            "takes x (..., in) of at least one dim and weight (out, in) of exactly two");
  check_dtypes(ctx);
  ctx.check(x.back() == weight[1], "inner sizes differ: x has ", x.back(),
            " features and weight (out, in) expects ", weight[1],
            "; change in_features or the input");
  ctx.check(!ctx.has_input(2) || ctx.input(2).shape == Shape{weight[0]},
            "bias must have one element for each of the ", weight[0],
            " output features; give such a vector");
  Shape out = x;
  out[x.size() - 1] = weight[0];
  ctx.add_output(out, ctx.input(0).dtype);
}

// The same as matmul. A bias is added once, so it is a partial sum wherever the product is one; the
// result increases with it (integers wrap around).
void sbp_linear(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t last = ctx.input(0).shape.size() - 1;
  const bool has_bias = ctx.has_input(2);
  const Sbp partial_bias = has_bias ? partial_sum : broadcast;
  for (int64_t i = 0; i < last; ++i)
    ctx.add({split(i), broadcast, broadcast}, {split(i)});
  ctx.add({broadcast, split(0), has_bias ? split(0) : broadcast}, {split(last)});
  ctx.add({split(last), split(1), partial_bias}, {partial_sum});
  ctx.add({partial_sum, broadcast, partial_bias}, {partial_sum});
  ctx.add({broadcast, partial_sum, partial_bias}, {partial_sum});
  if (!has_bias || !is_floating(ctx.input(2).dtype)) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({broadcast, broadcast, partial}, {partial});
}

// y = x w^T + b:  dx = dy w,  dw = dy^T x,  db = dy, the latter two summed over the leading dims.
void grad_linear(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) ctx.set(0, matmul(dy, ctx.input(1)));
  if (ctx.needs(1)) ctx.set(1, contract_leading(dy, ctx.input(0)));
  if (ctx.needs(2)) ctx.set(2, sum_to(dy, ctx.input_meta(2)->shape));
}

// ---- contract_leading

void infer_contract_leading(InferContext& ctx) {
  const Shape& a = ctx.input(0).shape;
  const Shape& b = ctx.input(1).shape;
  check_dtypes(ctx);
  ctx.check(!a.empty() && a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin()),
            "operands must agree in all dims but the last");
  ctx.add_output(Shape{a.back(), b.back()}, ctx.input(0).dtype);
}

// The same as matmul: the leading dims are summed over.
void sbp_contract_leading(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t last = ctx.input(0).shape.size() - 1;
  for (int64_t i = 0; i < last; ++i)
    ctx.add({split(i), split(i)}, {partial_sum});
  ctx.add({split(last), broadcast}, {split(0)});
  ctx.add({broadcast, split(last)}, {split(1)});
  ctx.add({partial_sum, broadcast}, {partial_sum});
  ctx.add({broadcast, partial_sum}, {partial_sum});
}

// y = sum a^T b:  da = b dy^T,  db = a dy.
void grad_contract_leading(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  if (ctx.needs(0)) ctx.set(0, matmul(ctx.input(1), transposed(dy)));
  if (ctx.needs(1)) ctx.set(1, matmul(ctx.input(0), dy));
}

Cost contract_leading_cost(const SbpContext& ctx) {
  return {.flops = 2.0 * static_cast<double>(ctx.input(0).shape.numel()) *
                   static_cast<double>(ctx.input(1).shape.back())};
}

}  // namespace

const OpDef kMatmul{.name = "matmul",
                    .num_inputs = 2,
                    .infer = infer_matmul,
                    .sbp = sbp_matmul,
                    .grad = grad_matmul,
                    .cost = matmul_cost,
                    .saved_inputs = 0b11,
                    .autocast = AutocastRule::kLower};

const OpDef kLinear{.name = "linear",
                    .num_inputs = 3,
                    .infer = infer_linear,
                    .sbp = sbp_linear,
                    .grad = grad_linear,
                    .cost = matmul_cost,
                    .saved_inputs = 0b011,
                    .autocast = AutocastRule::kLower};

const OpDef kContractLeading{.name = "contract_leading",
                             .num_inputs = 2,
                             .infer = infer_contract_leading,
                             .sbp = sbp_contract_leading,
                             .grad = grad_contract_leading,
                             .cost = contract_leading_cost,
                             .saved_inputs = 0b11};

Tensor contract_leading(const TensorArg& a, const TensorArg& b) {
  return dispatch(kContractLeading, {&a.tensor(), &b.tensor()}, a.site());
}

void register_matmul(OpTable& table);

void register_matmul(OpTable& table) {
  table.add(kMatmul);
  table.add(kLinear);
  table.add(kContractLeading);
}

}  // namespace ops

namespace {

// matmul restricted to operands of these numbers of dims.
Tensor matmul_of(const char* name, const TensorArg& a, int64_t a_dims, const TensorArg& b,
                 int64_t b_dims) {
  if (a->dim() != a_dims || b->dim() != b_dims) {
    throw InvalidArgument(
        str("[", name, "] takes a tensor of ", a_dims, " and one of ", b_dims, " dims; received ",
            a->meta(), ", ", b->meta(), "; use matmul for other dims"),
        a.site());
  }
  return ops::named(name, a.site(), [&] { return matmul(a, b); });
}

// Integer products accept only integer factors and remain integers.
Scalar factor(const char* op, const char* name, double value, const Tensor& product) {
  if (is_floating(product.dtype())) return value;
  if (value != std::floor(value) || !ops::holds_number(int64, value)) {
    throw InvalidArgument(str("[", op, "] ", name, " is ", value, " for a product of ",
                              product.meta(), "; use an integer or cast the operands"));
  }
  return static_cast<int64_t>(value);
}

Tensor add_product(const char* op, const TensorArg& input, const Tensor& product,
                   const AddmmOptions& options) {
  return ops::named(op, input.site(), [&]() -> Tensor {
    if (broadcast_shapes(input->shape(), product.shape(), op) != product.shape()) {
      throw InvalidArgument(
          str("[", op, "] adds ", input->meta(), " to a product of ", product.meta(),
              "; the input must broadcast to the shape of the product"),
          input.site());
    }
    const TensorArg scaled(product, input.site());
    const Scalar beta = factor(op, "beta", options.beta, product);
    const Scalar alpha = factor(op, "alpha", options.alpha, product);
    if (options.beta == 0) return options.alpha == 1 ? product : mul(scaled, alpha);
    const Tensor own = ops::autocast(input, ops::kMatmul.autocast);
    const Tensor base = options.beta == 1 ? own : mul({own, input.site()}, beta);
    return add(TensorArg(base, input.site()), product, {.alpha = options.alpha});
  });
}

}  // namespace

Tensor matmul(const TensorArg& a, const TensorArg& b) {
  return dispatch(ops::kMatmul, {&a.tensor(), &b.tensor()}, a.site());
}

Tensor mm(const TensorArg& a, const TensorArg& b) {
  return matmul_of("mm", a, 2, b, 2);
}

Tensor bmm(const TensorArg& a, const TensorArg& b) {
  if (a->dim() == 3 && b->dim() == 3 && a->size(0) != b->size(0)) {
    throw InvalidArgument(str("[bmm] batch sizes differ; received ", a->meta(), ", ", b->meta(),
                              "; use matmul to broadcast"),
                          a.site());
  }
  return matmul_of("bmm", a, 3, b, 3);
}

Tensor mv(const TensorArg& a, const TensorArg& b) {
  return matmul_of("mv", a, 2, b, 1);
}

Tensor dot(const TensorArg& a, const TensorArg& b) {
  return ops::in_widest_dtype(
      [](const TensorArg& x, const TensorArg& y) { return matmul_of("dot", x, 1, y, 1); }, a, b);
}

Tensor addmm(const TensorArg& input, const TensorArg& mat1, const TensorArg& mat2,
             const AddmmOptions& options) {
  return add_product("addmm", input, matmul_of("addmm", mat1, 2, mat2, 2), options);
}

Tensor baddbmm(const TensorArg& input, const TensorArg& batch1, const TensorArg& batch2,
               const AddmmOptions& options) {
  return add_product("baddbmm", input, matmul_of("baddbmm", batch1, 3, batch2, 3), options);
}

Tensor linear(const TensorArg& x, const TensorArg& weight, const TensorArg& bias) {
  if (weight->dim() == 1) {
    return ops::named("linear", x.site(), [&] {
      Tensor y = matmul(x, weight);
      if (!bias.defined()) return y;
      return add(TensorArg(y, x.site()), ops::autocast(bias, ops::kLinear.autocast));
    });
  }
  return dispatch(ops::kLinear, {&x.tensor(), &weight.tensor(), &bias.tensor()}, x.site());
}

Tensor ReduceMethods::matmul(const TensorArg& other) const {
  return flow::matmul(TensorArg(self(), other.site()), other);
}

Tensor ReduceMethods::mm(const TensorArg& other) const {
  return flow::mm(TensorArg(self(), other.site()), other);
}

Tensor ReduceMethods::bmm(const TensorArg& other) const {
  return flow::bmm(TensorArg(self(), other.site()), other);
}

Tensor ReduceMethods::mv(const TensorArg& other) const {
  return flow::mv(TensorArg(self(), other.site()), other);
}

Tensor ReduceMethods::dot(const TensorArg& other) const {
  return flow::dot(TensorArg(self(), other.site()), other);
}

Tensor ReduceMethods::addmm(const TensorArg& mat1, const TensorArg& mat2,
                            const AddmmOptions& options) const {
  return flow::addmm(TensorArg(self(), mat1.site()), mat1, mat2, options);
}

Tensor ReduceMethods::baddbmm(const TensorArg& batch1, const TensorArg& batch2,
                              const AddmmOptions& options) const {
  return flow::baddbmm(TensorArg(self(), batch1.site()), batch1, batch2, options);
}

const Tensor& InPlaceMethods::addmm_(const TensorArg& mat1, const TensorArg& mat2) const {
  return addmm_(mat1, mat2, AddmmOptions{});
}

const Tensor& InPlaceMethods::baddbmm_(const TensorArg& batch1, const TensorArg& batch2) const {
  return baddbmm_(batch1, batch2, AddmmOptions{});
}

const Tensor& InPlaceMethods::addmm_(const TensorArg& mat1, const TensorArg& mat2,
                                     const AddmmOptions& options) const {
  return ops::write_over(
      "addmm_", {self(), mat1.site()}, {&mat1.tensor(), &mat2.tensor()},
      [&](const TensorArg& old) { return flow::addmm(old, mat1, mat2, options); });
}

const Tensor& InPlaceMethods::baddbmm_(const TensorArg& batch1, const TensorArg& batch2,
                                       const AddmmOptions& options) const {
  return ops::write_over(
      "baddbmm_", {self(), batch1.site()}, {&batch1.tensor(), &batch2.tensor()},
      [&](const TensorArg& old) { return flow::baddbmm(old, batch1, batch2, options); });
}

}  // namespace flow
