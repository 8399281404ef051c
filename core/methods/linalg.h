// Methods that factorise matrices, which are the last two dims. They are defined in ops/linalg.
#pragma once

#include <cstdint>

#include "core/methods/method_family.h"
#include "core/site.h"

namespace flow {

class Tensor;
class TensorArg;

namespace linalg {
struct CholeskyOptions;
struct Qr;
struct QrOptions;
struct Slogdet;
}  // namespace linalg

class LinalgMethods : public MethodFamily<LinalgMethods> {
 public:
  Tensor cholesky(Site site = Site::here()) const;
  Tensor cholesky(const linalg::CholeskyOptions& options, Site site = Site::here()) const;
  Tensor cholesky_inverse(Site site = Site::here()) const;
  Tensor cholesky_inverse(const linalg::CholeskyOptions& options, Site site = Site::here()) const;
  Tensor cholesky_solve(const TensorArg& factor) const;
  Tensor cholesky_solve(const TensorArg& factor, const linalg::CholeskyOptions& options) const;
  Tensor det(Site site = Site::here()) const;
  Tensor inverse(Site site = Site::here()) const;
  Tensor logdet(Site site = Site::here()) const;
  Tensor matrix_exp(Site site = Site::here()) const;
  Tensor matrix_power(int64_t n, Site site = Site::here()) const;
  Tensor pinverse(double rcond = 1e-15, Site site = Site::here()) const;
  linalg::Qr qr(Site site = Site::here()) const;
  linalg::Qr qr(const linalg::QrOptions& options, Site site = Site::here()) const;
  linalg::Slogdet slogdet(Site site = Site::here()) const;
};

}  // namespace flow
