#include "ops/creation/windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <span>
#include <vector>

#include "core/default_dtype.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/special/bessel.h"
#include "ops/named_errors.h"

namespace flow {

namespace {

// weight(i, steps) at the positions i, of which `steps` make up the window; computed in double.
Tensor window_of(const char* name, int64_t length, bool is_periodic, TensorOptions options,
                 Site site, const std::function<double(double i, double steps)>& weight) {
  if (length < 0) {
    throw InvalidArgument(str("[", name, "] needs a length of at least 0; received ", length),
                          site);
  }
  if (options.dtype.has_value() && !is_floating(*options.dtype)) {
    throw InvalidArgument(str("[", name, "] needs a floating dtype; received ", *options.dtype),
                          site);
  }
  if (!options.dtype.has_value()) options.dtype = default_dtype();
  return ops::named(name, site, [&]() -> Tensor {
    // A single weight is 1, in the middle of a window of no width.
    const auto steps = static_cast<double>(std::max<int64_t>(1, is_periodic ? length : length - 1));
    std::vector<double> weights(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i)
      weights[static_cast<size_t>(i)] = length == 1 ? 1 : weight(static_cast<double>(i), steps);
    return tensor(weights, {length}, options, site);
  });
}

Tensor bartlett_of(const char* name, int64_t length, bool is_periodic, const TensorOptions& options,
                   Site site) {
  return window_of(name, length, is_periodic, options, site,
                   [](double i, double steps) { return 1 - std::abs(2 * i / steps - 1); });
}

Tensor cosines_of(const char* name, int64_t length, bool is_periodic, std::span<const double> a,
                  const TensorOptions& options, Site site) {
  return window_of(name, length, is_periodic, options, site, [&](double i, double steps) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      const double share =
          a[k] * std::cos(2 * std::numbers::pi * static_cast<double>(k) * i / steps);
      sum += k % 2 == 0 ? share : -share;
    }
    return sum;
  });
}

Tensor kaiser_of(const char* name, int64_t length, bool is_periodic, double beta,
                 const TensorOptions& options, Site site) {
  using ops::special::bessel_i0e;
  const double size = std::abs(beta);
  return window_of(name, length, is_periodic, options, site, [size](double i, double steps) {
    const double place = 2 * i / steps - 1;
    const double argument = size * std::sqrt(std::max(0.0, 1 - place * place));
    return std::exp(argument - size) * bessel_i0e(argument) / bessel_i0e(size);
  });
}

double centre(double steps) {
  return steps / 2;
}

void check_positive(const char* name, const char* what, double value, Site site) {
  if (value > 0) return;
  throw InvalidArgument(str("[", name, "] needs ", what, " > 0; received ", value), site);
}

constexpr std::array kHann = {0.5, 0.5};
constexpr std::array kHamming = {0.54, 0.46};
constexpr std::array kBlackman = {0.42, 0.5, 0.08};
constexpr std::array kNuttall = {0.3635819, 0.4891775, 0.1365995, 0.0106411};

}  // namespace

Tensor bartlett_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                       Site site) {
  return bartlett_of("bartlett_window", length, window.periodic, options, site);
}

Tensor hann_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                   Site site) {
  return cosines_of("hann_window", length, window.periodic, kHann, options, site);
}

Tensor hamming_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                      Site site) {
  return cosines_of("hamming_window", length, window.periodic, kHamming, options, site);
}

Tensor blackman_window(int64_t length, const WindowOptions& window, const TensorOptions& options,
                       Site site) {
  return cosines_of("blackman_window", length, window.periodic, kBlackman, options, site);
}

Tensor kaiser_window(int64_t length, const KaiserWindowOptions& window,
                     const TensorOptions& options, Site site) {
  return kaiser_of("kaiser_window", length, window.periodic, window.beta, options, site);
}

namespace signal::windows {

Tensor bartlett(int64_t M, const SymmetryOptions& window, const TensorOptions& options, Site site) {
  return bartlett_of("bartlett", M, !window.sym, options, site);
}

Tensor blackman(int64_t M, const SymmetryOptions& window, const TensorOptions& options, Site site) {
  return cosines_of("blackman", M, !window.sym, kBlackman, options, site);
}

Tensor cosine(int64_t M, const SymmetryOptions& window, const TensorOptions& options, Site site) {
  return window_of("cosine", M, !window.sym, options, site, [](double i, double steps) {
    return std::sin(std::numbers::pi * (i + 0.5) / (steps + 1));
  });
}

Tensor exponential(int64_t M, const ExponentialOptions& window, const TensorOptions& options,
                   Site site) {
  check_positive("exponential", "tau", window.tau, site);
  if (window.sym && window.center) {
    throw InvalidArgument(
        "[exponential] a symmetric window has its center in the middle; leave "
        "it out, or set sym = false",
        site);
  }
  return window_of("exponential", M, !window.sym, options, site, [&](double i, double steps) {
    return std::exp(-std::abs(i - window.center.value_or(centre(steps))) / window.tau);
  });
}

Tensor gaussian(int64_t M, const GaussianOptions& window, const TensorOptions& options, Site site) {
  check_positive("gaussian", "std", window.std, site);
  return window_of("gaussian", M, !window.sym, options, site, [&](double i, double steps) {
    const double distance = (i - centre(steps)) / window.std;
    return std::exp(-distance * distance / 2);
  });
}

Tensor general_cosine(int64_t M, const std::vector<double>& a, const SymmetryOptions& window,
                      const TensorOptions& options, Site site) {
  if (a.empty()) {
    throw InvalidArgument("[general_cosine] needs at least one coefficient; a is empty", site);
  }
  return cosines_of("general_cosine", M, !window.sym, a, options, site);
}

Tensor general_hamming(int64_t M, const GeneralHammingOptions& window, const TensorOptions& options,
                       Site site) {
  const std::array terms = {window.alpha, 1 - window.alpha};
  return cosines_of("general_hamming", M, !window.sym, terms, options, site);
}

Tensor hamming(int64_t M, const SymmetryOptions& window, const TensorOptions& options, Site site) {
  return cosines_of("hamming", M, !window.sym, kHamming, options, site);
}

Tensor hann(int64_t M, const SymmetryOptions& window, const TensorOptions& options, Site site) {
  return cosines_of("hann", M, !window.sym, kHann, options, site);
}

Tensor kaiser(int64_t M, const KaiserOptions& window, const TensorOptions& options, Site site) {
  return kaiser_of("kaiser", M, !window.sym, window.beta, options, site);
}

Tensor nuttall(int64_t M, const SymmetryOptions& window, const TensorOptions& options, Site site) {
  return cosines_of("nuttall", M, !window.sym, kNuttall, options, site);
}

}  // namespace signal::windows

}  // namespace flow
