#include "ops/elementwise/compare.h"

#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/row_calls.h"
#include "ops/elementwise/unary.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/reduce/reduce.h"

namespace flow {

namespace ops {

void register_compare(OpTable& table) {
  add_ops(table, CompareRows());
}

}  // namespace ops

namespace {

// int64 holds the numbers that x's dtype does not hold, and it holds x.
template <class Row>
Tensor compare_number(const TensorArg& x, const Scalar& number) {
  const bool is_wide = !number.is_floating() && !ops::holds_number(x->dtype(), number);
  return ops::run<Row>(is_wide ? TensorArg(cast(x, DType::kInt64), x.site()) : x,
                       ops::rounded_like(x, number));
}

// Differences of integers would wrap around, and bools have none.
Tensor as_subtractable(const TensorArg& x) {
  return is_floating(x->dtype()) ? x.tensor() : cast(x, DType::kFloat64);
}

}  // namespace

Tensor eq(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Eq>(a, b);
}

Tensor eq(const TensorArg& a, const Scalar& b) {
  return compare_number<ops::EqNumber>(a, b);
}

Tensor ne(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Ne>(a, b);
}

Tensor ne(const TensorArg& a, const Scalar& b) {
  return compare_number<ops::NeNumber>(a, b);
}

Tensor lt(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Lt>(a, b);
}

Tensor lt(const TensorArg& a, const Scalar& b) {
  return compare_number<ops::LtNumber>(a, b);
}

Tensor le(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Le>(a, b);
}

Tensor le(const TensorArg& a, const Scalar& b) {
  return compare_number<ops::LeNumber>(a, b);
}

Tensor gt(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Gt>(a, b);
}

Tensor gt(const TensorArg& a, const Scalar& b) {
  return compare_number<ops::GtNumber>(a, b);
}

Tensor ge(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::Ge>(a, b);
}

Tensor ge(const TensorArg& a, const Scalar& b) {
  return compare_number<ops::GeNumber>(a, b);
}

Tensor operator==(const TensorArg& a, const TensorArg& b) {
  return eq(a, b);
}

Tensor operator==(const TensorArg& a, const Scalar& b) {
  return eq(a, b);
}

Tensor operator==(const Scalar& a, const TensorArg& b) {
  return eq(b, a);
}

Tensor operator!=(const TensorArg& a, const TensorArg& b) {
  return ne(a, b);
}

Tensor operator!=(const TensorArg& a, const Scalar& b) {
  return ne(a, b);
}

Tensor operator!=(const Scalar& a, const TensorArg& b) {
  return ne(b, a);
}

Tensor operator<(const TensorArg& a, const TensorArg& b) {
  return lt(a, b);
}

Tensor operator<(const TensorArg& a, const Scalar& b) {
  return lt(a, b);
}

Tensor operator<(const Scalar& a, const TensorArg& b) {
  return gt(b, a);
}

Tensor operator<=(const TensorArg& a, const TensorArg& b) {
  return le(a, b);
}

Tensor operator<=(const TensorArg& a, const Scalar& b) {
  return le(a, b);
}

Tensor operator<=(const Scalar& a, const TensorArg& b) {
  return ge(b, a);
}

Tensor operator>(const TensorArg& a, const TensorArg& b) {
  return gt(a, b);
}

Tensor operator>(const TensorArg& a, const Scalar& b) {
  return gt(a, b);
}

Tensor operator>(const Scalar& a, const TensorArg& b) {
  return lt(b, a);
}

Tensor operator>=(const TensorArg& a, const TensorArg& b) {
  return ge(a, b);
}

Tensor operator>=(const TensorArg& a, const Scalar& b) {
  return ge(a, b);
}

Tensor operator>=(const Scalar& a, const TensorArg& b) {
  return le(b, a);
}

Tensor logical_and(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::LogicalAnd>(a, b);
}

Tensor logical_or(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::LogicalOr>(a, b);
}

Tensor logical_xor(const TensorArg& a, const TensorArg& b) {
  return ops::run<ops::LogicalXor>(a, b);
}

Tensor isclose(const TensorArg& a, const TensorArg& b, const CloseOptions& options) {
  return ops::named("isclose", a.site(), [&]() -> Tensor {
    const Site site = a.site();
    if (a->dtype() != b->dtype()) {
      throw InvalidArgument(str("[isclose] the tensors must have one dtype; received ", a->meta(),
                                " and ", b->meta(), "; cast one of them"),
                            site);
    }
    if (!(options.rtol >= 0 && options.atol >= 0)) {
      throw InvalidArgument(str("[isclose] the tolerances are rtol ", options.rtol, " and atol ",
                                options.atol, "; give 0 or more"),
                            site);
    }
    const Tensor expected = as_subtractable(b);
    const Tensor distance = abs({sub({as_subtractable(a), site}, {expected, site}), site});
    const Tensor size = abs({expected, site});
    const Tensor allowed = add({mul({size, site}, options.rtol), site}, options.atol);
    const Tensor is_near = logical_and({isfinite(distance), site}, le({distance, site}, allowed));
    Tensor is_close = logical_or({is_near, site}, eq(a, b));
    if (!options.equal_nan) return is_close;
    return logical_or({is_close, site}, logical_and({isnan(a), site}, isnan(b)));
  });
}

bool allclose(const TensorArg& a, const TensorArg& b, const CloseOptions& options) {
  return ops::named("allclose", a.site(), [&]() -> bool {
    return all({isclose(a, b, options), a.site()}).item<bool>(a.site());
  });
}

bool equal(const TensorArg& a, const TensorArg& b) {
  return ops::named("equal", a.site(), [&]() -> bool {
    return a->shape() == b->shape() && all({eq(a, b), a.site()}).item<bool>(a.site());
  });
}

Tensor PointwiseMethods::eq(const TensorArg& other) const {
  return flow::eq(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::eq(const Scalar& other, Site site) const {
  return flow::eq(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::ne(const TensorArg& other) const {
  return flow::ne(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::ne(const Scalar& other, Site site) const {
  return flow::ne(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::lt(const TensorArg& other) const {
  return flow::lt(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::lt(const Scalar& other, Site site) const {
  return flow::lt(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::le(const TensorArg& other) const {
  return flow::le(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::le(const Scalar& other, Site site) const {
  return flow::le(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::gt(const TensorArg& other) const {
  return flow::gt(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::gt(const Scalar& other, Site site) const {
  return flow::gt(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::ge(const TensorArg& other) const {
  return flow::ge(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::ge(const Scalar& other, Site site) const {
  return flow::ge(TensorArg(self(), site), other);
}

Tensor PointwiseMethods::logical_and(const TensorArg& other) const {
  return flow::logical_and(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::logical_or(const TensorArg& other) const {
  return flow::logical_or(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::logical_xor(const TensorArg& other) const {
  return flow::logical_xor(TensorArg(self(), other.site()), other);
}

Tensor PointwiseMethods::isclose(const TensorArg& other, const CloseOptions& options) const {
  return flow::isclose(TensorArg(self(), other.site()), other, options);
}

bool PointwiseMethods::allclose(const TensorArg& other, const CloseOptions& options) const {
  return flow::allclose(TensorArg(self(), other.site()), other, options);
}

bool PointwiseMethods::equal(const TensorArg& other) const {
  return flow::equal(TensorArg(self(), other.site()), other);
}

}  // namespace flow
