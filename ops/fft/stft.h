// Fourier transforms of short windows of a signal (torch.stft, torch.istft).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow {

struct StftOptions {
  std::optional<int64_t> hop_length = {};  // distance of windows; unset: n_fft / 4
  std::optional<int64_t> win_length = {};  // unset: n_fft
  // The weights (win_length) of a window, which stands in the middle of n_fft points; unset: ones.
  Tensor window = {};
  // Window t has its middle at t hop_length, and the signal continues at both ends as `pad_mode`
  // says (flow::pad); else the window begins there.
  bool center = true;
  std::string pad_mode = "reflect";
  bool normalized = false;  // divides by sqrt(n_fft)
  bool onesided = true;     // the first n_fft / 2 + 1 frequencies; else all
};

// The Fourier transforms of windows of n_fft points of a real signal x (L) or (B, L): (…, N, T, 2)
// with N frequencies and T windows, as complex numbers in the form of ops/fft/fft.h, which is what
// torch.stft gives with return_complex=False. float32 or float64; not on CUDA devices.
//   stft(x (16000), 400, {.window = hann_window(400)}): (201, 161, 2)
Tensor stft(const TensorArg& x, int64_t n_fft, const StftOptions& options = {});

struct IstftOptions {
  std::optional<int64_t> hop_length = {};
  std::optional<int64_t> win_length = {};
  Tensor window = {};
  bool center = true;
  bool normalized = false;
  // x has the first n_fft / 2 + 1 frequencies; else all. Unset: as many as x has.
  std::optional<bool> onesided = {};
  // The length of the signal, which the windows need not reach: the rest is 0. Unset: as far as the
  // windows reach, less n_fft / 2 at both ends if `center`.
  std::optional<int64_t> length = {};
};

// The signal (…, L) whose transforms come closest to x (…, N, T, 2) in the sense of least squares
// (Griffin, Lim 1984): the windows of the inverse transforms, weighted and added up, divided by the
// sum of squares of the weights. Throws InvalidArgument where that sum is 0.
Tensor istft(const TensorArg& x, int64_t n_fft, const IstftOptions& options = {});

}  // namespace flow
