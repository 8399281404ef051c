#include "ops/fft/stft.h"

#include <algorithm>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/conv/fold.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/fft/complex.h"
#include "ops/fft/fft.h"
#include "ops/fft/fft_op.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

struct Windows {
  int64_t n_fft;
  int64_t hop;
  Tensor weights;  // (n_fft); undefined: ones
};

// Checks what both directions have in common.
template <class Options>
Windows windows_of(const Tensor& x, int64_t n_fft, const Options& options, const char* function) {
  const int64_t hop = options.hop_length.value_or(n_fft / 4);
  const int64_t width = options.win_length.value_or(n_fft);
  if (n_fft < 1 || hop < 1 || width < 1 || width > n_fft) {
    throw InvalidArgument(str("[", function,
                              "] needs n_fft >= 1, hop_length >= 1 and 1 <= "
                              "win_length <= n_fft; received ",
                              n_fft, ", ", hop, " and ", width));
  }
  if (x.dtype() != DType::kFloat32 && x.dtype() != DType::kFloat64) {
    throw InvalidArgument(
        str("[", function, "] takes float32 or float64; received ", x.meta(), "; cast it"));
  }
  Tensor weights = options.window;
  if (weights.defined() && (weights.shape() != Shape{width} || weights.dtype() != x.dtype())) {
    throw InvalidArgument(str("[", function, "] window must have the shape (win_length), (", width,
                              "), and the dtype of the input, ", x.dtype(), "; received ",
                              weights.meta()));
  }
  if (width < n_fft) {
    if (!weights.defined()) weights = new_ones(x, {width});
    const int64_t before = (n_fft - width) / 2;
    weights = pad(weights, {before, n_fft - width - before});
  }
  return {n_fft, hop, weights};
}

// The windows y (B, T, n_fft), added up at their places: (B, n_fft + hop (T - 1)).
Tensor added_up(const Tensor& y, int64_t hop) {
  const int64_t width = y.size(2), length = width + hop * (y.size(1) - 1);
  const Tensor rows = fold(transpose(y, 1, 2), {1, length}, {1, width}, {.stride = {1, hop}});
  return reshape(rows, {y.size(0), length});
}

}  // namespace

Tensor stft(const TensorArg& x, int64_t n_fft, const StftOptions& options) {
  return ops::named("stft", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() != 1 && x->dim() != 2) {
      throw InvalidArgument(str("[stft] takes a signal (L) or (B, L); received ", x->meta()));
    }
    const Windows windows = windows_of(x, n_fft, options, "stft");
    Tensor signal = x->dim() == 1 ? unsqueeze(x, 0) : x.tensor();
    if (options.center)
      signal = pad({signal, site}, {n_fft / 2, n_fft / 2}, {.mode = options.pad_mode});
    if (signal.size(-1) < n_fft) {
      throw InvalidArgument(str("[stft] the signal has ", signal.size(-1),
                                " elements, fewer than n_fft, which is ", n_fft,
                                "; pad it, or give center = true"));
    }
    Tensor frames = signal.unfold(-1, n_fft, windows.hop, site);  // (B, T, n_fft)
    if (windows.weights.defined()) frames = mul({frames, site}, windows.weights);
    const fft::FftOptions own{.norm = options.normalized ? "ortho" : "backward"};
    const Tensor y = options.onesided ? fft::rfft({frames, site}, own)
                                      : fft::fft({fft::complex({frames, site}), site}, own);
    const Tensor turned = transpose({y, site}, -3, -2);
    return x->dim() == 1 ? squeeze({turned, site}, 0) : turned;
  });
}

Tensor istft(const TensorArg& x, int64_t n_fft, const IstftOptions& options) {
  return ops::named("istft", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    const int64_t half = n_fft / 2 + 1;
    const bool is_whole = x->dim() >= 3 && x->size(-3) == n_fft;
    const bool onesided = options.onesided.value_or(!is_whole);
    if ((x->dim() != 3 && x->dim() != 4) || x->size(-1) != 2 || x->numel() == 0 ||
        x->size(-3) != (onesided ? half : n_fft)) {
      throw InvalidArgument(str(
          "[istft] takes (N, T, 2) or (B, N, T, 2) with ", onesided ? "n_fft / 2 + 1" : "n_fft",
          " frequencies N and at least one window; received ", x->meta(), " for n_fft ", n_fft));
    }
    const Windows windows = windows_of(x, n_fft, options, "istft");
    const Tensor batch = x->dim() == 3 ? unsqueeze(x, 0) : x.tensor();
    // Of all frequencies, the second half is taken for the conjugate of the first.
    const Tensor spectra = transpose(narrow({batch, site}, 1, 0, half), 1, 2);
    Tensor frames = fft::irfft({spectra, site},
                               {.n = n_fft, .norm = options.normalized ? "ortho" : "backward"});
    if (windows.weights.defined()) frames = mul({frames, site}, windows.weights);
    const Tensor weights =
        windows.weights.defined() ? square(windows.weights) : new_ones(x, {n_fft});
    const int64_t count = frames.size(1), reach = n_fft + windows.hop * (count - 1);
    const int64_t begin = options.center ? n_fft / 2 : 0;
    const int64_t end =
        options.length ? begin + *options.length : reach - (options.center ? n_fft / 2 : 0);
    if (end <= begin) {
      throw InvalidArgument(str("[istft] the signal has no elements: length is ",
                                options.length.value_or(end - begin), "; give more windows"));
    }
    const int64_t known = std::min(end, reach);
    if (known <= begin) {
      throw InvalidArgument(
          str("[istft] ", count, " windows do not reach the signal; give more windows"));
    }
    const auto part = [&](const Tensor& y) { return narrow({y, site}, 1, begin, known - begin); };
    const Tensor reached = part(added_up(expand({weights, site}, {1, count, n_fft}), windows.hop));
    const Tensor sums = dispatch(ops::kCheckedOverlap, {&reached}, site);
    Tensor y = div({part(added_up(frames, windows.hop)), site}, sums);
    if (end > known) y = pad({y, site}, {0, end - known});
    return x->dim() == 3 ? squeeze({y, site}, 0) : y;
  });
}

Tensor LinalgMethods::stft(int64_t n_fft, Site site) const {
  return flow::stft({self(), site}, n_fft);
}

Tensor LinalgMethods::stft(int64_t n_fft, const StftOptions& options, Site site) const {
  return flow::stft({self(), site}, n_fft, options);
}

Tensor LinalgMethods::istft(int64_t n_fft, Site site) const {
  return flow::istft({self(), site}, n_fft);
}

Tensor LinalgMethods::istft(int64_t n_fft, const IstftOptions& options, Site site) const {
  return flow::istft({self(), site}, n_fft, options);
}

}  // namespace flow
