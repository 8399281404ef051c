#include "ops/elementwise/row_table.h"

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/reduce/reduce.h"

namespace flow::ops {

namespace {

// ---- shapes and dtypes

void check_taken(const InferContext& ctx, Takes takes, DType dtype) {
  switch (takes) {
    case Takes::kAll:
      return;
    case Takes::kNumbers:
    case Takes::kBoolsPromoted:
      ctx.check(dtype != DType::kBool,
                "is not defined for bool; use a logical function, or cast first");
      return;
    case Takes::kFloats:
    case Takes::kPromoted:
    case Takes::kPromotedNumbers:
      ctx.check(is_floating(dtype), "needs a floating dtype; cast first");
      return;
    case Takes::kIntegers:
      ctx.check(dtype != DType::kBool, "is not defined for bool; cast first");
      [[fallthrough]];
    case Takes::kBits:
      ctx.check(!is_floating(dtype), "needs integers or bools; cast first");
      return;
  }
}

// The inputs broadcast together and, masks aside, have one dtype.
void infer_inputs(InferContext& ctx, Takes takes, uint32_t masks, bool gives_bools) {
  const int typed = (masks & 1U) != 0 ? 1 : 0;
  const DType dtype = ctx.input(typed).dtype;
  check_taken(ctx, takes, dtype);
  Shape shape = ctx.input(0).shape;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if ((masks >> i & 1U) != 0) {
      ctx.check(ctx.input(i).dtype == DType::kBool,
                "the condition must be bool; compare, or cast it first");
    } else {
      ctx.check(ctx.input(i).dtype == dtype,
                "dtypes differ; cast one, or call the public function, which promotes");
    }
    if (i > 0) shape = broadcast_shapes(shape, ctx.input(i).shape, ctx.op().name);
  }
  ctx.add_output(shape, gives_bools ? DType::kBool : dtype);
}

template <class Row>
void infer(InferContext& ctx) {
  constexpr auto kFacts = Row::kFacts;
  infer_inputs(ctx, kFacts.takes, kFacts.masks, kFacts.gives_bools);
}

// ---- gradients of functions of one tensor

template <class Row>
constexpr bool kHasGradOfX = requires {
  Row::kGradOfX;
};

template <class Row>
constexpr bool kHasGradOfY = requires {
  Row::kGradOfY;
};

template <class Row>
constexpr bool kReadsX = kHasGradOfX<Row> || requires(const Tensor& t) {
  Row::dx_of_x(t, t);
};

template <class Row>
constexpr bool kReadsOutput = kHasGradOfY<Row> || requires(const Tensor& t) {
  Row::dx_of_y(t, t);
};

// A function of one tensor without any of these, which is no step function, is not differentiable.
template <class Row>
constexpr bool kHasSlope = requires {
  Row::kFacts.reads;
}

|| kReadsX<Row> || kReadsOutput<Row> || requires(const Tensor& t) {
  Row::dx(t);
}

|| requires {
  requires Row::kFacts.is_step;
};

template <class Row>
Tensor slope(const Tensor& dy, const GradContext& ctx) {
  if constexpr (kHasGradOfX<Row>) {
    const Tensor x = ctx.input(0);
    return dispatch(*Row::kGradOfX, {&dy, &x}, Site::here());
  } else if constexpr (kHasGradOfY<Row>) {
    const Tensor y = ctx.output();
    return dispatch(*Row::kGradOfY, {&dy, &y}, Site::here());
  } else if constexpr (kReadsX<Row>) {
    return Row::dx_of_x(dy, ctx.input(0));
  } else if constexpr (kReadsOutput<Row>) {
    return Row::dx_of_y(dy, ctx.output());
  } else {
    return Row::dx(dy);
  }
}

// The gradient of a step function is 0. It is set nevertheless, because x is part of the result.
template <class Row>
void grad_of_one(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  if constexpr (Row::kFacts.is_step) {
    ctx.set(0, zeros_like(ctx.dy()));
  } else {
    ctx.set(0, slope<Row>(ctx.dy(), ctx));
  }
}

// ---- gradients of functions of several operands

struct NoAttrs {};

template <class Row>
struct AttrsOfRow {
  using Type = NoAttrs;
};

template <HasAttrs Row>
struct AttrsOfRow<Row> {
  using Type = typename Row::Attrs;
};

// What the gradients of a row read.
template <class Row>
class GradInputs {
 public:
  explicit GradInputs(const GradContext& ctx) : ctx_(ctx) {}

  const Tensor& dy() const { return ctx_.dy(); }

  Tensor a() const { return ctx_.input(0); }

  Tensor b() const { return ctx_.input(1); }

  Tensor c() const { return ctx_.input(2); }

  Tensor y() const { return ctx_.output(); }

  const auto& attrs() const { return ctx_.attrs<typename AttrsOfRow<Row>::Type>(); }

  // Computed by the first gradient that asks for it.
  const Tensor& shared() const {
    if (!shared_.defined()) shared_ = Row::shared(*this);
    return shared_;
  }

 private:
  const GradContext& ctx_;
  mutable Tensor shared_;
};

// `dx` has the output's shape; undefined means zero. An input that was broadcast gets the sum over
// its repeats.
void set_unbroadcast(GradContext& ctx, int i, const Tensor& dx) {
  const Shape& shape = ctx.input_meta(i)->shape;
  const Tensor whole = dx.defined() ? dx : zeros_like(ctx.dy());
  ctx.set(i, whole.shape() == shape ? whole : sum_to(whole, shape));
}

void refuse_slopes(const GradContext& ctx, uint32_t inputs) {
  for (int i = 0; inputs >> i != 0; ++i) {
    if ((inputs >> i & 1U) == 0 || !ctx.needs(i)) continue;
    throw Unsupported(str("[", ctx.op_name(), "] the derivative by input ", i,
                          " is not implemented; detach that input"));
  }
}

// The gradient of input i, undefined if the row has none.
template <class Row, int i>
Tensor gradient([[maybe_unused]] const GradInputs<Row>& in) {
  if constexpr (i == 0 && requires { Row::da(in); }) return Row::da(in);
  if constexpr (i == 1 && requires { Row::db(in); }) return Row::db(in);
  if constexpr (i == 2 && requires { Row::dc(in); }) return Row::dc(in);
  return {};
}

template <class Row>
void grad_of_several(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const GradInputs<Row> in(ctx);
  refuse_slopes(ctx, Row::kFacts.without_slope);
  if (ctx.needs(0)) set_unbroadcast(ctx, 0, gradient<Row, 0>(in));
  if (ctx.needs(1)) set_unbroadcast(ctx, 1, gradient<Row, 1>(in));
  if (ctx.needs(2)) set_unbroadcast(ctx, 2, gradient<Row, 2>(in));
}

// ---- from a row to its op

template <class Row>
constexpr OpDef op_for() {
  constexpr auto kFacts = Row::kFacts;
  OpDef op = {.name = kFacts.name,
              .num_inputs = kFacts.inputs(),
              .infer = infer<Row>,
              .sbp = kFacts.sbp,
              .grad = not_differentiable};
  op.autocast = kFacts.autocast;
  op.allows_in_place = kFacts.allows_in_place && !kFacts.gives_bools;
  if constexpr (HasAttrs<Row>) op.attrs = attrs_def<typename Row::Attrs>();
  if constexpr (kFacts.gives_bools || kFacts.takes == Takes::kBits ||
                kFacts.takes == Takes::kIntegers || !kHasSlope<Row>) {
    return op;
  } else if constexpr (requires { kFacts.reads; }) {
    op.grad = grad_of_several<Row>;
    op.saved_inputs = kFacts.reads & (kReadsA | kReadsB | kReadsC);
    op.saved_outputs = (kFacts.reads & kReadsY) != 0 ? 1U : 0U;
  } else {
    op.grad = grad_of_one<Row>;
    op.saved_inputs = kReadsX<Row> ? 1U : 0U;
    op.saved_outputs = kReadsOutput<Row> ? 1U : 0U;
  }
  return op;
}

template <class... Row>
constexpr std::array<OpDef, sizeof...(Row)> ops_for(Rows<Row...> /*rows*/) {
  return {op_for<Row>()...};
}

}  // namespace

constexpr std::array<OpDef, TableRows::kSize> kTableOps = ops_for(TableRows());

}  // namespace flow::ops
