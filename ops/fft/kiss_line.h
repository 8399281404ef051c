// The discrete Fourier transform of one line of complex numbers by KissFFT. Only in a library that
// was built with it.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace flow::ops {

// T is float or double. A length with a large prime factor is computed as a convolution of a length
// that is a power of two (Bluestein 1970), in double.
template <class T>
class KissLine {
 public:
  using Real = T;
  // A real signal of an even number of points is transformed as half as many complex ones.
  static constexpr bool kHalves = true;

  KissLine(int64_t points, bool inverse);

  // A line for a single thread: KissFFT's butterflies of radix 7 and more write into the plan.
  KissLine for_thread() const;

  // As PlainLine has them.
  int64_t scratch_bytes() const;
  void run(const std::complex<T>* in, std::complex<T>* out, std::byte* scratch) const;

 private:
  struct Plan;
  struct Chirp;
  std::shared_ptr<const Plan> plan_;  // null if the length has a large prime factor
  std::shared_ptr<const Chirp> chirp_;
};

}  // namespace flow::ops
