// Methods that factorise matrices, which are the last two dims, and Fourier transforms of windows.
// They are defined in ops/linalg and ops/fft.
#pragma once

#include <cstdint>

#include "core/methods/method_family.h"
#include "core/site.h"

namespace flow {

class Tensor;
class TensorArg;
struct IstftOptions;
struct StftOptions;

namespace linalg {
struct CholeskyOptions;
struct Geqrf;
struct OrmqrOptions;
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
  linalg::Geqrf geqrf(Site site = Site::here()) const;
  Tensor inverse(Site site = Site::here()) const;
  Tensor logdet(Site site = Site::here()) const;
  Tensor matrix_exp(Site site = Site::here()) const;
  Tensor matrix_power(int64_t n, Site site = Site::here()) const;
  Tensor orgqr(const TensorArg& tau) const;
  Tensor ormqr(const TensorArg& tau, const TensorArg& y) const;
  Tensor ormqr(const TensorArg& tau, const TensorArg& y, const linalg::OrmqrOptions& options) const;
  Tensor pinverse(double rcond = 1e-15, Site site = Site::here()) const;
  linalg::Qr qr(Site site = Site::here()) const;
  linalg::Qr qr(const linalg::QrOptions& options, Site site = Site::here()) const;
  linalg::Slogdet slogdet(Site site = Site::here()) const;

  Tensor stft(int64_t n_fft, Site site = Site::here()) const;
  Tensor stft(int64_t n_fft, const StftOptions& options, Site site = Site::here()) const;
  Tensor istft(int64_t n_fft, Site site = Site::here()) const;
  Tensor istft(int64_t n_fft, const IstftOptions& options, Site site = Site::here()) const;
};

}  // namespace flow
