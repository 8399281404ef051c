// Methods that write to the tensor: the handle and all views of its storage see the change. Each
// returns the tensor itself and is defined with the function of its name.
#pragma once

#include <cstdint>
#include <string>

#include "core/methods/index.h"
#include "core/methods/method_family.h"
#include "core/methods/pointwise.h"
#include "core/scalar.h"
#include "core/site.h"

namespace flow {

class IndexList;
class Tensor;
class TensorArg;
struct AddOptions;
struct AddmmOptions;
struct ClampOptions;
struct DivOptions;
struct NanToNumOptions;

class InPlaceMethods : public MethodFamily<InPlaceMethods> {
 public:
  // ---- arithmetic
  const Tensor& add_(const TensorArg& other) const;
  const Tensor& add_(const TensorArg& other, const AddOptions& options) const;
  const Tensor& add_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& sub_(const TensorArg& other) const;
  const Tensor& sub_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& sub_(const TensorArg& other, const AddOptions& options) const;
  const Tensor& mul_(const TensorArg& other) const;
  const Tensor& mul_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& div_(const TensorArg& other) const;
  const Tensor& div_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& div_(const TensorArg& other, const DivOptions& options) const;
  const Tensor& div_(const Scalar& other, const DivOptions& options,
                     Site site = Site::here()) const;
  const Tensor& pow_(const TensorArg& exponent) const;
  const Tensor& pow_(const Scalar& exponent, Site site = Site::here()) const;
  const Tensor& fmod_(const TensorArg& other) const;
  const Tensor& fmod_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& remainder_(const TensorArg& other) const;
  const Tensor& remainder_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& floor_divide_(const TensorArg& other) const;
  const Tensor& floor_divide_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& addcmul_(const TensorArg& a, const TensorArg& b,
                         const AddcOptions& options = {}) const;
  const Tensor& addcdiv_(const TensorArg& a, const TensorArg& b,
                         const AddcOptions& options = {}) const;
  const Tensor& lerp_(const TensorArg& end, const TensorArg& weight) const;
  const Tensor& lerp_(const TensorArg& end, const Scalar& weight) const;

  // ---- functions of each element
  const Tensor& exp_(Site site = Site::here()) const;
  const Tensor& exp2_(Site site = Site::here()) const;
  const Tensor& expm1_(Site site = Site::here()) const;
  const Tensor& log_(Site site = Site::here()) const;
  const Tensor& log2_(Site site = Site::here()) const;
  const Tensor& log10_(Site site = Site::here()) const;
  const Tensor& log1p_(Site site = Site::here()) const;
  const Tensor& sqrt_(Site site = Site::here()) const;
  const Tensor& rsqrt_(Site site = Site::here()) const;
  const Tensor& reciprocal_(Site site = Site::here()) const;
  const Tensor& square_(Site site = Site::here()) const;
  const Tensor& abs_(Site site = Site::here()) const;
  const Tensor& neg_(Site site = Site::here()) const;
  const Tensor& sign_(Site site = Site::here()) const;
  const Tensor& floor_(Site site = Site::here()) const;
  const Tensor& ceil_(Site site = Site::here()) const;
  const Tensor& round_(Site site = Site::here()) const;
  const Tensor& trunc_(Site site = Site::here()) const;
  const Tensor& frac_(Site site = Site::here()) const;
  const Tensor& sin_(Site site = Site::here()) const;
  const Tensor& cos_(Site site = Site::here()) const;
  const Tensor& tan_(Site site = Site::here()) const;
  const Tensor& tanh_(Site site = Site::here()) const;
  const Tensor& erf_(Site site = Site::here()) const;
  const Tensor& erfc_(Site site = Site::here()) const;
  const Tensor& sigmoid_(Site site = Site::here()) const;
  const Tensor& relu_(Site site = Site::here()) const;
  const Tensor& clamp_(const ClampOptions& options, Site site = Site::here()) const;
  const Tensor& clamp_(const Scalar& min, const Scalar& max, Site site = Site::here()) const;
  const Tensor& clamp_min_(const Scalar& min, Site site = Site::here()) const;
  const Tensor& clamp_max_(const Scalar& max, Site site = Site::here()) const;

  // ---- the function without underscore, whose result must fit into the dtype of the tensor
  const Tensor& acos_(Site site = Site::here()) const;
  const Tensor& acosh_(Site site = Site::here()) const;
  const Tensor& asin_(Site site = Site::here()) const;
  const Tensor& asinh_(Site site = Site::here()) const;
  const Tensor& atan_(Site site = Site::here()) const;
  const Tensor& atanh_(Site site = Site::here()) const;
  const Tensor& sinh_(Site site = Site::here()) const;
  const Tensor& cosh_(Site site = Site::here()) const;
  const Tensor& sinc_(Site site = Site::here()) const;
  const Tensor& deg2rad_(Site site = Site::here()) const;
  const Tensor& rad2deg_(Site site = Site::here()) const;
  const Tensor& lgamma_(Site site = Site::here()) const;
  const Tensor& digamma_(Site site = Site::here()) const;
  const Tensor& erfinv_(Site site = Site::here()) const;
  const Tensor& logical_not_(Site site = Site::here()) const;
  const Tensor& bitwise_not_(Site site = Site::here()) const;
  const Tensor& i0_(Site site = Site::here()) const;
  const Tensor& mvlgamma_(int64_t p, Site site = Site::here()) const;
  const Tensor& gcd_(const TensorArg& other) const;
  const Tensor& lcm_(const TensorArg& other) const;
  const Tensor& nextafter_(const TensorArg& other) const;
  const Tensor& igamma_(const TensorArg& x) const;
  const Tensor& igammac_(const TensorArg& x) const;
  const Tensor& polygamma_(int64_t n, Site site = Site::here()) const;
  const Tensor& logit_(const LogitOptions& options = {}, Site site = Site::here()) const;
  const Tensor& nan_to_num_(Site site = Site::here()) const;
  const Tensor& nan_to_num_(const NanToNumOptions& options, Site site = Site::here()) const;
  const Tensor& atan2_(const TensorArg& other) const;
  const Tensor& hypot_(const TensorArg& other) const;
  const Tensor& heaviside_(const TensorArg& other) const;
  const Tensor& logical_and_(const TensorArg& other) const;
  const Tensor& logical_or_(const TensorArg& other) const;
  const Tensor& logical_xor_(const TensorArg& other) const;
  const Tensor& xlogy_(const TensorArg& other) const;
  const Tensor& xlogy_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& copysign_(const TensorArg& other) const;
  const Tensor& copysign_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& eq_(const TensorArg& other) const;
  const Tensor& eq_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& ne_(const TensorArg& other) const;
  const Tensor& ne_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& lt_(const TensorArg& other) const;
  const Tensor& lt_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& le_(const TensorArg& other) const;
  const Tensor& le_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& gt_(const TensorArg& other) const;
  const Tensor& gt_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& ge_(const TensorArg& other) const;
  const Tensor& ge_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& bitwise_and_(const TensorArg& other) const;
  const Tensor& bitwise_and_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& bitwise_or_(const TensorArg& other) const;
  const Tensor& bitwise_or_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& bitwise_xor_(const TensorArg& other) const;
  const Tensor& bitwise_xor_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& bitwise_left_shift_(const TensorArg& other) const;
  const Tensor& bitwise_left_shift_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& bitwise_right_shift_(const TensorArg& other) const;
  const Tensor& bitwise_right_shift_(const Scalar& other, Site site = Site::here()) const;
  const Tensor& cumsum_(int64_t dim, Site site = Site::here()) const;
  const Tensor& cumprod_(int64_t dim, Site site = Site::here()) const;
  const Tensor& renorm_(double p, int64_t dim, double maxnorm, Site site = Site::here()) const;
  const Tensor& addmm_(const TensorArg& mat1, const TensorArg& mat2) const;
  const Tensor& addmm_(const TensorArg& mat1, const TensorArg& mat2,
                       const AddmmOptions& options) const;
  const Tensor& baddbmm_(const TensorArg& batch1, const TensorArg& batch2) const;
  const Tensor& baddbmm_(const TensorArg& batch1, const TensorArg& batch2,
                         const AddmmOptions& options) const;

  // ---- values written
  const Tensor& copy_(const TensorArg& source) const;
  const Tensor& fill_(const Scalar& value, Site site = Site::here()) const;
  const Tensor& zero_(Site site = Site::here()) const;
  const Tensor& uniform_(double from = 0, double to = 1, Site site = Site::here()) const;
  const Tensor& normal_(double mean = 0, double std = 1, Site site = Site::here()) const;
  const Tensor& bernoulli_(double p = 0.5, Site site = Site::here()) const;
  // Numbers from the exponential, log-normal, Cauchy and geometric distributions; the last counts
  // trials until the first success, from 1.
  const Tensor& exponential_(double lambd = 1, Site site = Site::here()) const;
  const Tensor& log_normal_(double mean = 1, double std = 2, Site site = Site::here()) const;
  const Tensor& cauchy_(double median = 0, double sigma = 1, Site site = Site::here()) const;
  const Tensor& geometric_(double p, Site site = Site::here()) const;
  const Tensor& masked_fill_(const TensorArg& mask, const Scalar& value) const;
  const Tensor& masked_scatter_(const TensorArg& mask, const TensorArg& source) const;
  const Tensor& index_fill_(int64_t dim, const TensorArg& index, const Scalar& value) const;
  const Tensor& index_copy_(int64_t dim, const TensorArg& index, const TensorArg& source) const;
  // Writes values at positions of the flattened tensor.
  const Tensor& put_(const TensorArg& index, const TensorArg& source,
                     const IndexPutOptions& options = {}) const;
  const Tensor& index_put_(const IndexList& indices, const TensorArg& values,
                           const IndexPutOptions& options = {}) const;
  const Tensor& index_put_(const IndexList& indices, const Scalar& value,
                           Site site = Site::here()) const;
  const Tensor& index_add_(int64_t dim, const TensorArg& index, const TensorArg& source,
                           double alpha = 1) const;
  const Tensor& scatter_(int64_t dim, const TensorArg& index, const TensorArg& src) const;
  const Tensor& scatter_(int64_t dim, const TensorArg& index, const Scalar& value) const;
  const Tensor& scatter_add_(int64_t dim, const TensorArg& index, const TensorArg& src) const;
  const Tensor& scatter_reduce_(int64_t dim, const TensorArg& index, const TensorArg& src,
                                const std::string& reduce,
                                const ScatterReduceOptions& options = {}) const;
  const Tensor& tril_(int64_t diagonal = 0, Site site = Site::here()) const;
  const Tensor& triu_(int64_t diagonal = 0, Site site = Site::here()) const;

  // ---- the shape of the handle
  const Tensor& squeeze_(Site site = Site::here()) const;
  const Tensor& squeeze_(int64_t dim, Site site = Site::here()) const;
  const Tensor& unsqueeze_(int64_t dim, Site site = Site::here()) const;
  const Tensor& transpose_(int64_t dim0, int64_t dim1, Site site = Site::here()) const;
  const Tensor& t_(Site site = Site::here()) const;
};

}  // namespace flow
