#include "ops/elementwise/ternary.h"

#include <algorithm>
#include <array>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/row_table.h"
#include "ops/elementwise/ternary_op.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/promotion.h"

namespace flow {

namespace ops {

void register_ternary(OpTable& table) {
  add_ops(table, TernaryRows());
}

}  // namespace ops

namespace {

template <size_t N>
using Operands = std::array<const Tensor*, N>;

// The operands, cast if they have another dtype.
template <size_t N>
class Promoted {
 public:
  Promoted(const Operands<N>& operands, DType dtype, Site site) : operands_(operands) {
    for (size_t i = 0; i < N; ++i) {
      if (operands[i]->dtype() == dtype) continue;
      casts_[i] = cast({*operands[i], site}, dtype);
      operands_[i] = &casts_[i];
    }
  }

  const Operands<N>& operands() const { return operands_; }

 private:
  Operands<N> operands_;
  std::array<Tensor, N> casts_;
};

template <size_t N>
Tensor call(const OpDef& op, const Operands<N>& operands, const void* attrs, Site site) {
  const Promoted<N> promoted(operands, ops::result_dtype(operands), site);
  return dispatch_raw(op, promoted.operands(), attrs, site);
}

// Writes over the first operand, whose dtype must hold the result.
template <size_t N>
void call_in_place(const OpDef& op, const Operands<N>& operands, const void* attrs, Site site) {
  const Tensor& x = *operands[0];
  const DType dtype = ops::result_dtype(operands);
  if (!ops::fits(dtype, x.dtype())) ops::throw_unfit(in_place_name(op), dtype, x.dtype(), site);
  ops::named_in_place(op, site, [&] {
    if (dtype != x.dtype()) {
      x.copy_({call<N>(op, operands, attrs, site), site});
      return;
    }
    const Promoted<N> promoted(operands, dtype, site);
    const bool reads_old =
        std::any_of(operands.begin(), operands.end(),
                    [&](const Tensor* operand) { return ops::reads_old_value(op, {operand}); });
    if (reads_old) {
      ops::write_from_copy({x, site}, [&](const TensorArg& old) {
        Operands<N> inputs = promoted.operands();
        inputs[0] = &old.tensor();
        return dispatch_raw(op, inputs, attrs, site);
      });
      return;
    }
    Tensor output;
    Call written{op, promoted.operands(), attrs, site, 1};
    dispatch(written, &output);
  });
}

ops::AddcAttrs addc_attrs(const char* name, const TensorArg& x, const AddcOptions& options) {
  if (!is_floating(x->dtype()) && !ops::is_whole_number(options.value)) {
    throw InvalidArgument(str("[", name, "] value is ", options.value, " for a tensor of ",
                              x->dtype(), "; give a whole number or cast to a floating dtype"),
                          x.site());
  }
  return {options.value};
}

void check_quotient(const char* name, const Tensor& a, const Tensor& b, Site site) {
  if (is_floating(a.dtype()) || is_floating(b.dtype())) return;
  throw InvalidArgument(str("[", name, "] divides floating tensors; received ", a.dtype(), " and ",
                            b.dtype(), "; cast one"),
                        site);
}

}  // namespace

Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs = addc_attrs("addcmul", x, options);
  return call(ops::op_of<ops::Addcmul>(), operands, &attrs, x.site());
}

Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b,
               const AddcOptions& options) {
  check_quotient("addcdiv", a, b, x.site());
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs{options.value};
  return call(ops::op_of<ops::Addcdiv>(), operands, &attrs, x.site());
}

Tensor lerp(const TensorArg& start, const TensorArg& end, const Scalar& weight) {
  const Operands<2> operands{&start.tensor(), &end.tensor()};
  const ops::ScalarAttrs attrs{weight};
  return ops::named("lerp", start.site(), [&] {
    return call(ops::op_of<ops::LerpNumber>(), operands, &attrs, start.site());
  });
}

Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  const Operands<3> operands{&start.tensor(), &end.tensor(), &weight.tensor()};
  return call(ops::op_of<ops::Lerp>(), operands, nullptr, start.site());
}

const Tensor& addcmul_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options) {
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs = addc_attrs("addcmul_", x, options);
  call_in_place(ops::op_of<ops::Addcmul>(), operands, &attrs, x.site());
  return x;
}

const Tensor& addcdiv_(const TensorArg& x, const TensorArg& a, const TensorArg& b,
                       const AddcOptions& options) {
  check_quotient("addcdiv_", a, b, x.site());
  const Operands<3> operands{&x.tensor(), &a.tensor(), &b.tensor()};
  const ops::AddcAttrs attrs{options.value};
  call_in_place(ops::op_of<ops::Addcdiv>(), operands, &attrs, x.site());
  return x;
}

const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  const Operands<3> operands{&start.tensor(), &end.tensor(), &weight.tensor()};
  call_in_place(ops::op_of<ops::Lerp>(), operands, nullptr, start.site());
  return start;
}

const Tensor& lerp_(const TensorArg& start, const TensorArg& end, const Scalar& weight) {
  const Operands<2> operands{&start.tensor(), &end.tensor()};
  const ops::ScalarAttrs attrs{weight};
  call_in_place(ops::op_of<ops::LerpNumber>(), operands, &attrs, start.site());
  return start;
}

const Tensor& InPlaceMethods::addcmul_(const TensorArg& a, const TensorArg& b,
                                       const AddcOptions& options) const {
  flow::addcmul_(TensorArg(self(), a.site()), a, b, options);
  return self();
}

const Tensor& InPlaceMethods::addcdiv_(const TensorArg& a, const TensorArg& b,
                                       const AddcOptions& options) const {
  flow::addcdiv_(TensorArg(self(), a.site()), a, b, options);
  return self();
}

const Tensor& InPlaceMethods::lerp_(const TensorArg& end, const TensorArg& weight) const {
  flow::lerp_(TensorArg(self(), end.site()), end, weight);
  return self();
}

const Tensor& InPlaceMethods::lerp_(const TensorArg& end, const Scalar& weight) const {
  flow::lerp_(TensorArg(self(), end.site()), end, weight);
  return self();
}

Tensor PointwiseMethods::addcmul(const TensorArg& a, const TensorArg& b,
                                 const AddcOptions& options) const {
  return flow::addcmul(TensorArg(self(), a.site()), a, b, options);
}

Tensor PointwiseMethods::addcdiv(const TensorArg& a, const TensorArg& b,
                                 const AddcOptions& options) const {
  return flow::addcdiv(TensorArg(self(), a.site()), a, b, options);
}

Tensor PointwiseMethods::lerp(const TensorArg& end, const TensorArg& weight) const {
  return flow::lerp(TensorArg(self(), end.site()), end, weight);
}

Tensor PointwiseMethods::lerp(const TensorArg& end, const Scalar& weight) const {
  return flow::lerp(TensorArg(self(), end.site()), end, weight);
}

}  // namespace flow
