// Discrete Fourier transforms (torch.fft).
//
// flow has no complex dtype. A complex tensor of shape S is a real tensor of shape (S, 2) whose
// last dim holds the real and the imaginary part, as torch.view_as_real gives it; the shapes below
// say (…, 2). `dim` counts the dims of S: -1 is the dim before the two parts. ops/fft/complex.h has
// functions of such tensors.
//
// All functions take float32 or float64; integers and bools are cast to default_dtype(). On CUDA
// devices they raise Unsupported. A transform of n points takes about n log n operations; without
// KissFFT (docs/dependencies.md), a prime factor p of n makes it n p. `norm` says by what a
// transform is multiplied:
//   "backward"  1 forward, 1 / n inverse
//   "ortho"     1 / sqrt(n) both ways
//   "forward"   1 / n forward, 1 inverse
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow::fft {

struct FftOptions {
  // The number of points: longer lines are cut, shorter ones continue with zeros. Unset: the size
  // of `dim`; for irfft and hfft, 2 (size - 1).
  std::optional<int64_t> n = {};
  int64_t dim = -1;
  std::string norm = "backward";
};

// y[k] = sum over j of x[j] exp(-2 π i j k / n) along one dim; x: (…, 2) -> (…, 2).
//   Tensor y = fft::fft(fft::complex(signal));
Tensor fft(const TensorArg& x, const FftOptions& options = {});
// The inverse: the same with exp(+2 π i j k / n), divided by n.
Tensor ifft(const TensorArg& x, const FftOptions& options = {});

// The transform of a real signal x (…, n): its first n / 2 + 1 frequencies (…, n / 2 + 1, 2). The
// others are conjugates of these.
Tensor rfft(const TensorArg& x, const FftOptions& options = {});
// The inverse of rfft: (…, m, 2) -> (…, n), where n is 2 (m - 1) unless given. The imaginary parts
// of frequencies 0 and n / 2 count as 0.
//   fft::irfft(fft::rfft(x), {.n = x.size(-1)})
Tensor irfft(const TensorArg& x, const FftOptions& options = {});

// The transform of a signal that is conjugate to itself in reverse order, of which x (…, m, 2)
// holds the first half: real (…, n), where n is 2 (m - 1) unless given.
Tensor hfft(const TensorArg& x, const FftOptions& options = {});
// The inverse of hfft: real (…, n) -> (…, n / 2 + 1, 2).
Tensor ihfft(const TensorArg& x, const FftOptions& options = {});

struct FftnOptions {
  // The number of points along each of `dim`; -1 is its size. Unset: their sizes.
  std::optional<Ints> s = {};
  // Unset: the last dims, as many as `s` has entries; without `s`, all.
  std::optional<Ints> dim = {};
  std::string norm = "backward";
};

// The transforms above along several dims, one after another. rfftn transforms the last of `dim` as
// rfft does and the others as fft; irfftn is its inverse.
Tensor fftn(const TensorArg& x, const FftnOptions& options = {});
Tensor ifftn(const TensorArg& x, const FftnOptions& options = {});
Tensor rfftn(const TensorArg& x, const FftnOptions& options = {});
Tensor irfftn(const TensorArg& x, const FftnOptions& options = {});
// hfftn transforms the last of `dim` as hfft does, after the others; ihfftn is its inverse.
Tensor hfftn(const TensorArg& x, const FftnOptions& options = {});
Tensor ihfftn(const TensorArg& x, const FftnOptions& options = {});

struct Fft2Options {
  std::optional<Ints> s = {};
  Ints dim = {-2, -1};
  std::string norm = "backward";
};

// The same along two dims.
Tensor fft2(const TensorArg& x, const Fft2Options& options = {});
Tensor ifft2(const TensorArg& x, const Fft2Options& options = {});
Tensor rfft2(const TensorArg& x, const Fft2Options& options = {});
Tensor irfft2(const TensorArg& x, const Fft2Options& options = {});
Tensor hfft2(const TensorArg& x, const Fft2Options& options = {});
Tensor ihfft2(const TensorArg& x, const Fft2Options& options = {});

// The frequencies of the n results of fft, in cycles per unit, for samples at distance d: 0, 1, …,
// -2, -1 divided by d n; of an even n, -n / 2 stands in the middle. The dtype is default_dtype()
// unless options give another floating one.  fftfreq(4): {0, 0.25, -0.5, -0.25}
Tensor fftfreq(int64_t n, double d = 1, const TensorOptions& options = {},
               Site site = Site::here());
// The n / 2 + 1 frequencies of rfft.  rfftfreq(4): {0, 0.25, 0.5}
Tensor rfftfreq(int64_t n, double d = 1, const TensorOptions& options = {},
                Site site = Site::here());

struct ShiftOptions {
  std::optional<Ints> dim = {};  // unset: all
  bool is_complex = false;  // x is (…, 2): `dim` counts the dims before, and the last one stays
};

// Moves frequency 0 from the start of each dim to its middle; ifftshift moves it back. x has any
// dtype.
Tensor fftshift(const TensorArg& x, const ShiftOptions& options = {});
Tensor ifftshift(const TensorArg& x, const ShiftOptions& options = {});

}  // namespace flow::fft
