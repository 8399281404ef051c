// The discrete Fourier transform of one line of complex numbers by plain loops, in double.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace flow::ops {

// Splits off one prime factor of the length after another (Cooley, Tukey 1965). Correct for all
// lengths; a large prime factor takes as many steps for each point. Immutable.
class PlainLine {
 public:
  using Real = double;
  // Real signals are transformed as complex ones.
  static constexpr bool kHalves = false;

  PlainLine(int64_t points, bool inverse);

  // A line for a single thread.
  PlainLine for_thread() const { return *this; }

  // The bytes of scratch memory of run().
  int64_t scratch_bytes() const;
  // out[k] = sum over j of in[j] exp(∓2 π i j k / points), where the sign is + if `inverse`.
  // Requires: `out` is other memory than `in`.
  void run(const std::complex<double>* in, std::complex<double>* out, std::byte* scratch) const;

 private:
  void transform(const std::complex<double>* in, int64_t stride, int64_t points,
                 std::complex<double>* out, std::complex<double>* parts) const;

  std::shared_ptr<const std::vector<std::complex<double>>> roots_;  // exp(∓2 π i j / points)
};

}  // namespace flow::ops
