#include "ops/creation/windows.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/default_dtype.h"
#include "core/error.h"
#include "ops/creation/creation.h"

namespace flow {

namespace {

// The weights at the positions t, computed in double.
Tensor window_of(const char* name, int64_t length, const WindowOptions& window,
                 TensorOptions options, Site site, double (*weight)(double t)) {
  if (length < 0) {
    throw InvalidArgument(str("[", name, "] needs a length of at least 0; received ", length),
                          site);
  }
  if (options.dtype.has_value() && !is_floating(*options.dtype)) {
    throw InvalidArgument(str("[", name, "] needs a floating dtype; received ", *options.dtype),
                          site);
  }
  if (!options.dtype.has_value()) options.dtype = default_dtype();
  // A single weight is 1, in the middle of a window of no width.
  const int64_t steps = std::max<int64_t>(1, window.periodic ? length : length - 1);
  std::vector<double> weights(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    weights[static_cast<size_t>(i)] =
        length == 1 ? 1 : weight(static_cast<double>(i) / static_cast<double>(steps));
  }
  return tensor(weights, {length}, options, site);
}

double cosine(double t) {
  return std::cos(2 * std::numbers::pi * t);
}

}  // namespace

Tensor bartlett_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                       Site site) {
  return window_of("bartlett_window", length, window, options, site,
                   [](double t) { return 1 - std::abs(2 * t - 1); });
}

Tensor hann_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                   Site site) {
  return window_of("hann_window", length, window, options, site,
                   [](double t) { return 0.5 - 0.5 * cosine(t); });
}

Tensor hamming_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                      Site site) {
  return window_of("hamming_window", length, window, options, site,
                   [](double t) { return 0.54 - 0.46 * cosine(t); });
}

Tensor blackman_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                       Site site) {
  return window_of("blackman_window", length, window, options, site,
                   [](double t) { return 0.42 - 0.5 * cosine(t) + 0.08 * cosine(2 * t); });
}

}  // namespace flow
