// Windows for signals: vectors of weights that fall towards both ends.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct WindowOptions {
  // Whether the window is one period of a function, for spectra; else its two halves mirror each
  // other, for filters.
  bool periodic = true;
};

// `length` weights w[i] with t = i / (length if periodic, else length - 1). The dtype is float32
// unless options give another floating one. Throws InvalidArgument for a negative length.
//   bartlett   1 - |2 t - 1|
//   hann       0.5 - 0.5 cos(2 π t)
//   hamming    0.54 - 0.46 cos(2 π t)
//   blackman   0.42 - 0.5 cos(2 π t) + 0.08 cos(4 π t)
//
//   Tensor w = hann_window(400);
Tensor bartlett_window(int64_t length, const WindowOptions& window = {},
                       const TensorOptions& options = {}, Site site = Site::here());
Tensor hann_window(int64_t length, const WindowOptions& window = {},
                   const TensorOptions& options = {}, Site site = Site::here());
Tensor hamming_window(int64_t length, const WindowOptions& window = {},
                      const TensorOptions& options = {}, Site site = Site::here());
Tensor blackman_window(int64_t length, const WindowOptions& window = {},
                       const TensorOptions& options = {}, Site site = Site::here());

struct KaiserWindowOptions {
  bool periodic = true;  // as in WindowOptions
  double beta = 12;      // how fast the weights fall towards the ends
};

// The weights I_0(beta sqrt(1 - (2 t - 1)^2)) / I_0(beta) (Kaiser 1974).
Tensor kaiser_window(int64_t length, const KaiserWindowOptions& window = {},
                     const TensorOptions& options = {}, Site site = Site::here());

// The windows of torch.signal.windows: M weights w[i], of the dtype of the options. The centre of a
// window is M / 2 if it is periodic, else (M - 1) / 2. Throws InvalidArgument for a negative M.
namespace signal::windows {

struct SymmetryOptions {
  bool sym = true;  // the two halves mirror each other; else one period of a function
};

struct ExponentialOptions {
  std::optional<double> center = {};  // unset: that of the window; not with sym
  double tau = 1;                     // where the weight has fallen to 1 / e; above 0
  bool sym = true;
};

struct GaussianOptions {
  double std = 1;  // above 0
  bool sym = true;
};

struct GeneralHammingOptions {
  double alpha = 0.54;
  bool sym = true;
};

struct KaiserOptions {
  double beta = 12;
  bool sym = true;
};

// The functions above, and with t as there
//   cosine           sin(π (i + 1 / 2) / M), or M + 1 for a periodic one
//   exponential      exp(-|i - center| / tau)
//   gaussian         exp(-((i - centre) / std)^2 / 2)
//   general_cosine   the sum of (-1)^k a[k] cos(2 π k t); a must not be empty
//   general_hamming  alpha - (1 - alpha) cos(2 π t)
//   nuttall          general_cosine with the four terms of Nuttall (1981)
Tensor bartlett(int64_t M, const SymmetryOptions& window = {}, const TensorOptions& options = {},
                Site site = Site::here());
Tensor blackman(int64_t M, const SymmetryOptions& window = {}, const TensorOptions& options = {},
                Site site = Site::here());
Tensor cosine(int64_t M, const SymmetryOptions& window = {}, const TensorOptions& options = {},
              Site site = Site::here());
Tensor exponential(int64_t M, const ExponentialOptions& window = {},
                   const TensorOptions& options = {}, Site site = Site::here());
Tensor gaussian(int64_t M, const GaussianOptions& window = {}, const TensorOptions& options = {},
                Site site = Site::here());
Tensor general_cosine(int64_t M, const std::vector<double>& a, const SymmetryOptions& window = {},
                      const TensorOptions& options = {}, Site site = Site::here());
Tensor general_hamming(int64_t M, const GeneralHammingOptions& window = {},
                       const TensorOptions& options = {}, Site site = Site::here());
Tensor hamming(int64_t M, const SymmetryOptions& window = {}, const TensorOptions& options = {},
               Site site = Site::here());
Tensor hann(int64_t M, const SymmetryOptions& window = {}, const TensorOptions& options = {},
            Site site = Site::here());
Tensor kaiser(int64_t M, const KaiserOptions& window = {}, const TensorOptions& options = {},
              Site site = Site::here());
Tensor nuttall(int64_t M, const SymmetryOptions& window = {}, const TensorOptions& options = {},
               Site site = Site::here());

}  // namespace signal::windows

}  // namespace flow
