// Methods of Tensor in place.
#include "core/tensor.h"
#include "ops/elementwise/in_place.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/named_errors.h"
#include "ops/shape/arrange.h"

namespace flow {

const Tensor& Tensor::neg_(Site site) const {
  flow::neg_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::abs_(Site site) const {
  flow::abs_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::sign_(Site site) const {
  flow::sign_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::square_(Site site) const {
  flow::square_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::floor_(Site site) const {
  flow::floor_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::ceil_(Site site) const {
  flow::ceil_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::round_(Site site) const {
  flow::round_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::trunc_(Site site) const {
  flow::trunc_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::frac_(Site site) const {
  flow::frac_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::exp_(Site site) const {
  flow::exp_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::exp2_(Site site) const {
  flow::exp2_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::expm1_(Site site) const {
  flow::expm1_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::log_(Site site) const {
  flow::log_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::log2_(Site site) const {
  flow::log2_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::log10_(Site site) const {
  flow::log10_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::log1p_(Site site) const {
  flow::log1p_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::sqrt_(Site site) const {
  flow::sqrt_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::rsqrt_(Site site) const {
  flow::rsqrt_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::reciprocal_(Site site) const {
  flow::reciprocal_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::sin_(Site site) const {
  flow::sin_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::cos_(Site site) const {
  flow::cos_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::tan_(Site site) const {
  flow::tan_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::tanh_(Site site) const {
  flow::tanh_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::erf_(Site site) const {
  flow::erf_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::erfc_(Site site) const {
  flow::erfc_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::sigmoid_(Site site) const {
  flow::sigmoid_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::relu_(Site site) const {
  flow::relu_(TensorArg(*this, site));
  return *this;
}

const Tensor& Tensor::clamp_(const ClampOptions& options, Site site) const {
  flow::clamp_(TensorArg(*this, site), options);
  return *this;
}

const Tensor& Tensor::clamp_min_(const Scalar& min, Site site) const {
  flow::clamp_min_(TensorArg(*this, site), min);
  return *this;
}

const Tensor& Tensor::clamp_max_(const Scalar& max, Site site) const {
  flow::clamp_max_(TensorArg(*this, site), max);
  return *this;
}

const Tensor& Tensor::masked_fill_(const TensorArg& mask, const Scalar& value) const {
  flow::masked_fill_(TensorArg(*this, mask.site()), mask, value);
  return *this;
}

const Tensor& Tensor::sub_(const TensorArg& other, const AddOptions& options) const {
  flow::sub_(TensorArg(*this, other.site()), other, options);
  return *this;
}

const Tensor& Tensor::div_(const TensorArg& other, const DivOptions& options) const {
  flow::div_(TensorArg(*this, other.site()), other, options);
  return *this;
}

const Tensor& Tensor::div_(const Scalar& other, const DivOptions& options, Site site) const {
  flow::div_(TensorArg(*this, site), other, options);
  return *this;
}

const Tensor& Tensor::pow_(const TensorArg& exponent) const {
  flow::pow_(TensorArg(*this, exponent.site()), exponent);
  return *this;
}

const Tensor& Tensor::pow_(const Scalar& exponent, Site site) const {
  flow::pow_(TensorArg(*this, site), exponent);
  return *this;
}

const Tensor& Tensor::fmod_(const TensorArg& other) const {
  flow::fmod_(TensorArg(*this, other.site()), other);
  return *this;
}

const Tensor& Tensor::fmod_(const Scalar& other, Site site) const {
  flow::fmod_(TensorArg(*this, site), other);
  return *this;
}

const Tensor& Tensor::remainder_(const TensorArg& other) const {
  flow::remainder_(TensorArg(*this, other.site()), other);
  return *this;
}

const Tensor& Tensor::remainder_(const Scalar& other, Site site) const {
  flow::remainder_(TensorArg(*this, site), other);
  return *this;
}

const Tensor& Tensor::floor_divide_(const TensorArg& other) const {
  flow::floor_divide_(TensorArg(*this, other.site()), other);
  return *this;
}

const Tensor& Tensor::floor_divide_(const Scalar& other, Site site) const {
  flow::floor_divide_(TensorArg(*this, site), other);
  return *this;
}

const Tensor& Tensor::addcmul_(const TensorArg& a, const TensorArg& b) const {
  flow::addcmul_(TensorArg(*this, a.site()), a, b);
  return *this;
}

const Tensor& Tensor::addcmul_(const TensorArg& a, const TensorArg& b,
                               const AddcOptions& options) const {
  flow::addcmul_(TensorArg(*this, a.site()), a, b, options);
  return *this;
}

const Tensor& Tensor::addcdiv_(const TensorArg& a, const TensorArg& b) const {
  flow::addcdiv_(TensorArg(*this, a.site()), a, b);
  return *this;
}

const Tensor& Tensor::addcdiv_(const TensorArg& a, const TensorArg& b,
                               const AddcOptions& options) const {
  flow::addcdiv_(TensorArg(*this, a.site()), a, b, options);
  return *this;
}

const Tensor& Tensor::lerp_(const TensorArg& end, const TensorArg& weight) const {
  flow::lerp_(TensorArg(*this, end.site()), end, weight);
  return *this;
}

const Tensor& Tensor::lerp_(const TensorArg& end, const Scalar& weight) const {
  flow::lerp_(TensorArg(*this, end.site()), end, weight);
  return *this;
}

const Tensor& Tensor::tril_(int64_t diagonal, Site site) const {
  flow::tril_(TensorArg(*this, site), diagonal);
  return *this;
}

const Tensor& Tensor::triu_(int64_t diagonal, Site site) const {
  flow::triu_(TensorArg(*this, site), diagonal);
  return *this;
}

const Tensor& Tensor::index_put_(const IndexList& indices, const TensorArg& values) const {
  return flow::index_put_(*this, indices, values);
}

const Tensor& Tensor::index_put_(const IndexList& indices, const TensorArg& values,
                                 const IndexPutOptions& options) const {
  return flow::index_put_(*this, indices, values, options);
}

const Tensor& Tensor::index_put_(const IndexList& indices, const Scalar& value, Site site) const {
  return flow::index_put_(*this, indices, value, site);
}

const Tensor& Tensor::index_add_(int64_t dim, const TensorArg& index, const TensorArg& source,
                                 double alpha) const {
  return ops::named("index_add_", [&]() -> const Tensor& {
    return copy_(
        {flow::index_add(TensorArg(*this, index.site()), dim, index, source, alpha), index.site()});
  });
}

const Tensor& Tensor::scatter_(int64_t dim, const TensorArg& index, const TensorArg& src) const {
  return ops::named("scatter_", [&]() -> const Tensor& {
    return copy_({flow::scatter(TensorArg(*this, index.site()), dim, index, src), index.site()});
  });
}

const Tensor& Tensor::scatter_(int64_t dim, const TensorArg& index, const Scalar& value) const {
  return ops::named("scatter_", [&]() -> const Tensor& {
    return copy_({flow::scatter(TensorArg(*this, index.site()), dim, index, value), index.site()});
  });
}

const Tensor& Tensor::scatter_add_(int64_t dim, const TensorArg& index,
                                   const TensorArg& src) const {
  return ops::named("scatter_add_", [&]() -> const Tensor& {
    return copy_(
        {flow::scatter_add(TensorArg(*this, index.site()), dim, index, src), index.site()});
  });
}

}  // namespace flow
