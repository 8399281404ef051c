#include "ops/fft/kiss_line.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include <kissfft/kissfft.hh>

namespace flow::ops {

namespace {

using Wide = std::complex<double>;

// A radix p takes p multiplications per point, a convolution three transforms of two to four times
// the length.
constexpr int64_t kLargestRadix = 31;
// The butterflies of radix 2 to 5 keep their intermediate results on the stack.
constexpr int64_t kLargestSharedRadix = 5;

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p)
      largest = p;
  }
  return n > 1 ? n : largest;
}

}  // namespace

template <class T>
struct KissLine<T>::Plan {
  Plan(int64_t points, bool inverse)
      : radix(largest_prime_factor(points)), fft(static_cast<size_t>(points), inverse) {}

  int64_t radix;
  kissfft<T> fft;
};

// As 2 j k = j^2 + k^2 - (k - j)^2, y[k] = c[k] sum over j of x[j] c[j] / c[k - j] with the chirp
// c[j] = exp(∓π i j^2 / points).
template <class T>
struct KissLine<T>::Chirp {
  Chirp(int64_t points, bool inverse)
      : padded(std::bit_ceil(2 * static_cast<size_t>(points) - 1)),
        forward(padded, false),
        backward(padded, true),
        chirp(static_cast<size_t>(points)),
        filter(padded) {
    const double step = (inverse ? 1 : -1) * std::numbers::pi / static_cast<double>(points);
    std::vector<Wide> kernel(padded);
    int64_t square = 0;  // j^2 modulo 2 points, as the exponential has this period
    for (int64_t j = 0; j < points; ++j) {
      const auto at = static_cast<size_t>(j);
      chirp[at] = std::polar(1.0, step * static_cast<double>(square));
      kernel[at] = std::conj(chirp[at]);
      if (j > 0) kernel[padded - at] = kernel[at];
      square = (square + 2 * j + 1) % (2 * points);
    }
    forward.transform(kernel.data(), filter.data());
    for (Wide& factor : filter)
      factor /= static_cast<double>(padded);
  }

  size_t padded;
  kissfft<double> forward, backward;
  std::vector<Wide> chirp, filter;
};

template <class T>
KissLine<T>::KissLine(int64_t points, bool inverse) {
  if (largest_prime_factor(points) <= kLargestRadix) {
    plan_ = std::make_shared<const Plan>(points, inverse);
  } else {
    chirp_ = std::make_shared<const Chirp>(points, inverse);
  }
}

template <class T>
KissLine<T> KissLine<T>::for_thread() const {
  KissLine own = *this;
  if (plan_ && plan_->radix > kLargestSharedRadix) own.plan_ = std::make_shared<const Plan>(*plan_);
  return own;
}

template <class T>
int64_t KissLine<T>::scratch_bytes() const {
  return chirp_ ? static_cast<int64_t>(2 * chirp_->padded * sizeof(Wide)) : 0;
}

template <class T>
void KissLine<T>::run(const std::complex<T>* in, std::complex<T>* out, std::byte* scratch) const {
  if (plan_ && plan_->radix == 1) {  // KissFFT would take its general butterfly
    *out = *in;
    return;
  }
  if (plan_) return plan_->fft.transform(in, out);
  const size_t points = chirp_->chirp.size(), padded = chirp_->padded;
  Wide* const signal = reinterpret_cast<Wide*>(scratch);
  Wide* const spectrum = signal + padded;
  for (size_t j = 0; j < points; ++j)
    signal[j] = Wide(in[j]) * chirp_->chirp[j];
  for (size_t j = points; j < padded; ++j)
    signal[j] = 0;
  chirp_->forward.transform(signal, spectrum);
  for (size_t j = 0; j < padded; ++j)
    spectrum[j] *= chirp_->filter[j];
  chirp_->backward.transform(spectrum, signal);
  for (size_t k = 0; k < points; ++k)
    out[k] = std::complex<T>(signal[k] * chirp_->chirp[k]);
}

template class KissLine<float>;
template class KissLine<double>;

}  // namespace flow::ops
